"""Which modules a checkpoint keeps in the model's dtype: exact names, wildcards and `re:` expressions.

Patterns come from callers, so they run in RE2, whose time is linear in the name, and are bounded in number,
length and size once compiled. What it does not have (lookaround, back-references) is refused.

Sources:
    vLLM 0.33 `model_executor/layers/quantization/utils/quant_utils.py` (`is_layer_skipped`),
    `compressed_tensors/utils.py` (`re:`), `modelopt.py` (wildcards by `fnmatch`).
"""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import re2

from service.engine.formats.hashed import Hashed
from service.engine.kept import Kept

MAX_NAMES: Final = 8_192  # published lists have below 800
MAX_EXPRESSIONS: Final = 64  # `re:` expressions, and wildcards that are more than a beginning
MAX_LENGTH: Final = 256
MAX_PROGRAM: Final = 2_000  # instructions of all of them together; published lists have below 600
MAX_MEMORY_BYTES: Final = 1 << 20
# What RE2 takes for letters where others count: `{,3}`, and repetitions of more than four digits.
ODD_REPETITION: Final = re.compile(r"\{(,|\d{5}|\d*,\d{5})")
STEM: Final = re.compile(r"[^*?\[]*\*")
PART: Final = re.compile(r"\*[^*?\[]*\*")
# Letters as they stand, and runs of anything: what one of these matches of one layer, it matches of every layer.
OF_ALL_LAYERS: Final = re.compile(r"re:(?:[A-Za-z_-]|\\\.|\.\*)*\$?|(?!re:)[A-Za-z_.*-]*")

# Names that checkpoints of other families give to the same modules.
_OTHER_ROOTS: Final = ("language_model.model.layers", "model.language_model.layers", "backbone.layers")
_OTHER_PARTS: Final = (
    (".mlp.", ".block_sparse_moe."),
    (".mlp.", ".mixer."),
    (".mlp.", ".feed_forward."),
    (".self_attn.", ".mixer."),
    ("linear_attn.in_proj_b", "linear_attn.in_proj_ba"),
    ("linear_attn.in_proj_qkv", "linear_attn.in_proj_qkvz"),
    ("shared_experts", "shared_expert"),
    ("experts.gate_up_proj", "experts.0.gate_proj"),
    ("mlp.experts.gate_up_proj", "mixer.experts.0.up_proj"),
    ("mlp.experts.down_proj", "mixer.experts.0.down_proj"),
    ("mlp.shared_experts", "mixer.shared_experts"),
    ("mlp.shared_experts", "feed_forward.shared_expert"),
    ("mlp.experts.gate_up_proj", "block_sparse_moe.experts.0.w1"),
    ("mlp.experts.down_proj", "block_sparse_moe.experts.0.w2"),
)


class UnusablePatternError(ValueError):
    """A pattern, or all together, that cannot be run within bounds; the message says which and why."""


def names_of(module: str) -> tuple[str, ...]:
    """Return the module's name and what other families call it."""
    if module == "lm_head":
        return module, "language_model.lm_head"
    parts = [module, *(module.replace(ours, theirs, 1) for ours, theirs in _OTHER_PARTS if ours in module)]
    roots = [name.replace("model.layers", root, 1) for root in _OTHER_ROOTS for name in parts]
    return *parts, *roots


class Named:
    """The modules that patterns name."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Sort patterns into exact names, beginnings such as `model.layers.0.*`, parts as `*attn*`, and expressions.

        Raises:
            UnusablePatternError: an expression that does not run here, or too much of it.
        """
        wildcards = {pattern for pattern in patterns if "*" in pattern and not pattern.startswith("re:")}
        expressions = [pattern for pattern in dict.fromkeys(patterns) if pattern.startswith("re:")]
        stems = {pattern for pattern in wildcards if STEM.fullmatch(pattern)}
        parts = {pattern for pattern in wildcards if PART.fullmatch(pattern)}
        if len(parts) > MAX_EXPRESSIONS:
            raise UnusablePatternError(f"{len(parts)} parts of names are more than {MAX_EXPRESSIONS}")
        self._exact = frozenset(patterns).difference(wildcards, expressions)
        self._stems = frozenset(stem[:-1] for stem in stems)
        self._parts = sorted(part[1:-1] for part in parts)
        self._lengths = sorted({len(name) for name in self._exact})
        self._stem_lengths = sorted({len(stem) for stem in self._stems})
        self._expression = _compiled((*expressions, *sorted(wildcards - stems - parts)))
        self.tells_layers_apart = not all(map(OF_ALL_LAYERS.fullmatch, patterns))  # by their numbers
        self._known: Kept[bool] = Kept(8_192)  # of the deepest model there may be

    def names(self, module: str) -> bool:
        """Return whether a module is among them, under any of its names."""
        known = self._known.get(module)
        if known is None:
            known = any(self._holds(name) for name in names_of(module))
            self._known.put(module, known)
        return known

    def _holds(self, name: str) -> bool:
        """Return whether a name, its last part or what it is inside is named, or a part or expression found in it."""
        if name[name.rfind(".") + 1 :] in self._exact:
            return True
        # Loops, as each name of a checkpoint is looked at: generators take twice as long.
        for length in self._lengths:
            if name[:length] in self._exact and name[length : length + 1] in ("", "."):
                return True
        for length in self._stem_lengths:
            if name[:length] in self._stems:
                return True
        for part in self._parts:
            if part in name:
                return True
        return self._expression is not None and self._expression.match(name) is not None


class Patterns(Hashed[str]):
    """Patterns, and the modules that they name."""

    @cached_property
    def named(self) -> Named:
        """Return the modules that these patterns name, which are sorted and compiled once."""
        return Named(self)


def check_patterns(patterns: Patterns) -> None:
    """Refuse what a caller states before it is kept.

    Raises:
        UnusablePatternError: too many, or an expression that does not run here.
    """
    if len(patterns) > MAX_NAMES:
        raise UnusablePatternError(f"{len(patterns)} entries are more than {MAX_NAMES}")
    _ = patterns.named


def _compiled(patterns: tuple[str, ...]) -> Any:
    """Return one expression for all patterns, matched from a name's beginning; None without any."""
    if not patterns:
        return None
    if len(patterns) > MAX_EXPRESSIONS:
        raise UnusablePatternError(f"{len(patterns)} expressions and wildcards are more than {MAX_EXPRESSIONS}")
    options = re2.Options()
    options.max_mem, options.never_capture, options.log_errors = MAX_MEMORY_BYTES, True, False
    size = sum(_instructions(pattern, options) for pattern in patterns)
    if size > MAX_PROGRAM:
        raise UnusablePatternError(f"expressions and wildcards take {size} instructions, more than {MAX_PROGRAM}")
    return re2.compile("|".join(f"(?:{_translated(pattern)})" for pattern in patterns), options)


def _instructions(pattern: str, options: "re2.Options") -> int:
    """Return the size of a pattern once compiled.

    Raises:
        UnusablePatternError: it is too long, not valid alone, or read otherwise than where it comes from.
    """
    if len(pattern) > MAX_LENGTH:
        raise UnusablePatternError(f"{pattern[:40]!r}... has more than {MAX_LENGTH} characters")
    if ODD_REPETITION.search(pattern):
        raise UnusablePatternError(f"{pattern[:80]!r} repeats too often, or without saying from where")
    try:
        size: int = re2.compile(_translated(pattern), options).programsize
    except re2.error:
        raise UnusablePatternError(f"{pattern[:80]!r} is no expression that runs in linear time") from None
    return size


def _translated(pattern: str) -> str:
    """Return an expression as it stands; a wildcard as one that has to end where a module's name may."""
    if pattern.startswith("re:"):
        return pattern.removeprefix("re:")
    return "".join(_piece(piece) for piece in re.findall(r"\*|\?|\[!?\]?[^\]]*\]|.", pattern, re.DOTALL)) + r"(?:\.|\z)"


def _piece(piece: str) -> str:
    """Return `*`, `?`, a set such as `[!0-3]`, or a letter as RE2 writes it."""
    if piece in ("*", "?"):
        return {"*": ".*", "?": "."}[piece]
    if len(piece) == 1:
        return str(re2.escape(piece))
    inside = piece[1:-1].replace("\\", r"\\").replace("[", r"\[")
    return f"[^{inside[1:]}]" if inside.startswith("!") else f"[{inside.replace('^', chr(92) + '^', 1)}]"


def patterns_of(stated: tuple[str, ...]) -> Patterns:
    """Return patterns as those that remember what they name; themselves where they do."""
    return stated if isinstance(stated, Patterns) else Patterns(stated)
