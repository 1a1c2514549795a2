"""How a checkpoint stores its weights: one closed description of every published scheme.

Sources:
    vLLM 0.33 `model_executor/layers/quantization/` (each scheme's `create_weights`),
    `utils/quant_utils.py` (`is_layer_skipped`), `compressed_tensors/utils.py` (`find_matched_target`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.errors import MissingConfigFieldError, UnsupportedModelError
from service.engine.formats.hashed import Hashed
from service.engine.formats.modules import Patterns, UnusablePatternError, check_patterns, names_of, patterns_of
from service.engine.inputs import DeclaredCacheDtype, WeightFormat

LINEAR_CLASSES: Final = ("Linear", "FusedMoE", "RoutedExperts")  # targets that speak for every linear layer
EXPERTS: Final = ".experts"
ASYMMETRIC: Final = "of asymmetric weights"
DIMENSIONS: Final = 2  # of a block: rows and columns
WHOLE_ROW: Final = -1  # how a group says so
WORD: Final = 8  # elements of four bits in a word
NVFP4_GROUP: Final = 16
MX_GROUP: Final = 32
MOST_GROUPS: Final = 16  # with schemes of their own; published checkpoints have two
LONGEST_GROUP: Final = 1 << 16  # published ones have 16 to 1,024
KNOWN_METHODS: Final = (
    "fp8, compressed-tensors, modelopt (FP8, NVFP4), awq, gptq, auto-round, quark, mxfp4, bitsandbytes, torchao, "
    "fbgemm_fp8"
)
BITS: Final = "4 or 8"  # of a packed integer
GROUPS: Final = f"-1 for whole rows, or a multiple of {WORD}, such as 32, 64 or 128"
Scheme = Literal[
    "none",
    "fp8-tensor",
    "fp8-channel",
    "fp8-block",
    "mxfp8",
    "int8-both",  # activations as well, token by token
    "int8-group",  # weights alone, which are multiplied in 16 bits
    "int4-group",
    "mxfp4",
    "nvfp4",
    "bitsandbytes-4bit",
]


class Mixed(Hashed[tuple[str, Scheme, int]]):
    """Modules with schemes of their own."""

    @cached_property
    def schemes(self) -> Mapping[str, tuple[Scheme, int]]:
        """Return scheme and block by module."""
        return {module: (scheme, block) for module, scheme, block in self}


def _mixed_of(stated: tuple[tuple[str, Scheme, int], ...]) -> Mixed:
    return stated if isinstance(stated, Mixed) else Mixed(stated)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """One scheme for most matrices, and the modules that keep the model's dtype.

    `ignored` holds the checkpoint's own patterns: exact names, prefixes, wildcards or `re:`
    expressions over module names such as `model.layers.0.self_attn.q_proj`.
    """

    scheme: Scheme
    method: str = ""  # as checkpoints name it; versions of the engine load some, on some GPUs
    variant: str = ""  # what versions tell apart beside the scheme
    expert_variant: str = ""  # the same of experts alone
    block: int = 0  # rows and columns of an fp8 block, or elements of a group; 0 where a row has one scale
    has_zero_points: bool = False
    scale_bytes: int = 0  # of a group of integers, where it is not the method's usual
    column_multiple: int = 1  # to which rows of integers are filled up [elements]
    has_row_scales: bool = False  # beside those of groups, in four bytes
    is_static: bool = False  # activations have a stored scale as well
    ignored: tuple[str, ...] = ()
    experts_only: bool = False
    expert_scheme: Scheme | None = None  # of experts, where the model's own checkpoint has them otherwise
    is_modelopt: bool = False  # brings scales for the cache
    is_compressed_tensors: bool = False  # same, except for latent attention
    kv_cache_dtype: DeclaredCacheDtype | None = None
    weight_format: WeightFormat | None = None
    is_made_at_load: bool = False  # out of a checkpoint in the model's dtype
    mixed: tuple[tuple[str, Scheme, int], ...] = ()  # module, its scheme and block; all others keep the dtype
    groups: tuple[tuple[tuple[str, ...], "Quantization"], ...] = ()  # targets, and how what they match is stored
    names_experts_whole: bool = False  # patterns meet routed experts by the name of their block

    def __post_init__(self) -> None:
        """Have the long ones hashed once: they are keys of what is kept, looked up for every matrix."""
        object.__setattr__(self, "ignored", patterns_of(self.ignored))
        object.__setattr__(self, "mixed", _mixed_of(self.mixed))
        object.__setattr__(self, "groups", Hashed((patterns_of(targets), stored) for targets, stored in self.groups))

    @property
    def is_fp8_in_blocks(self) -> bool:
        """Return whether a file states fp8 in blocks, though it be loaded with a scale for every row of them."""
        return self.scheme == "fp8-block" or (self.scheme == "mxfp8" and self.method == "fp8")

    def of(self, module: str) -> "Quantization":
        """Return the scheme of one module: its own in a mixed checkpoint, its group's, else the checkpoint's.

        A group's targets are names, `re:` expressions, or a class such as `Linear`, which a name goes before.
        """
        if self.groups:
            stored = next(_of_groups(self.groups, self._met(module)), UNQUANTIZED)
            return replace(stored, ignored=self.ignored)
        if not self.mixed:
            return self
        stated = _mixed_of(self.mixed).schemes
        for name in names_of(module):
            parts = name.split(".")
            for end in range(len(parts), 0, -1):
                found = stated.get(".".join(parts[:end]))
                if found is not None:
                    return Quantization(scheme=found[0], block=found[1], is_static=True, is_modelopt=self.is_modelopt)
        return UNQUANTIZED

    def keeps(self, module: str) -> bool:
        """Return whether a module stays in the model's dtype under this scheme."""
        if self.scheme == "none":
            return True
        if self.experts_only and EXPERTS not in module:
            return True
        return patterns_of(self.ignored).named.names(self._met(module))

    @property
    def schemes(self) -> frozenset[Scheme]:
        """Return every scheme in which some module is stored."""
        of_groups = (scheme for _, stored in self.groups for scheme in stored.schemes)
        own = (self.scheme, *(() if self.expert_scheme is None else (self.expert_scheme,)))
        return frozenset((*own, *of_groups, *(scheme for _, scheme, _ in self.mixed)))

    def _met(self, module: str) -> str:
        """Return the name by which patterns meet a module."""
        block, inside, _ = module.partition(EXPERTS)
        return block + inside if self.names_experts_whole else module

    @property
    def tells_layers_apart(self) -> bool:
        """Return whether layers of equal parts may be stored otherwise: a list or a pattern tells their numbers."""
        targets = (targets for targets, _ in self.groups)
        return bool(self.mixed) or any(patterns_of(each).named.tells_layers_apart for each in (self.ignored, *targets))


UNQUANTIZED = Quantization(scheme="none")


def _of_groups(groups: tuple[tuple[tuple[str, ...], Quantization], ...], module: str) -> Iterator[Quantization]:
    """Yield the groups that a module matches: by its name, then by its class."""
    for targets, stored in groups:
        if patterns_of(targets).named.names(module):
            yield stored
    for targets, stored in groups:
        if not set(LINEAR_CLASSES).isdisjoint(targets):
            yield stored


def unknown_scheme(name: str) -> UnsupportedModelError:
    """Return the refusal of a quantization without a rule."""
    return UnsupportedModelError(
        f"there is no rule yet for the quantization {name[:80]!r}; it is not approximated",
        field="model_config.quantization_config",
        accepted=KNOWN_METHODS,
    )


def checked_patterns(patterns: Sequence[str], where: str) -> tuple[str, ...]:
    """Return patterns of module names that run in linear time.

    Raises:
        UnsupportedModelError: an expression among them does not, or they are too long.
    """
    checked = Patterns(patterns)
    try:
        check_patterns(checked)
    except UnusablePatternError as refusal:
        raise UnsupportedModelError(
            f"the config's {where}: {refusal}",
            field=f"model_config.quantization_config.{where}",
            accepted="module names, wildcards, and re: expressions without lookaround and back-references",
        ) from refusal
    return checked


def group_length(reader: ConfigReader, *names: str, inside: str = "") -> int:
    """Return how many elements of a row share a scale, or 0 where the whole row does. [elements].

    Four-bit elements are stored by eight, and a group is whole words of them.

    Raises:
        UnsupportedModelError: a length that no kernel reads.
    """
    stated = reader.raw(*names)
    if stated is None or (stated == WHOLE_ROW and not isinstance(stated, bool)):
        return 0
    size = int(stated) if isinstance(stated, float) and stated.is_integer() else stated
    if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= LONGEST_GROUP or size % WORD:
        raise unknown_kind(f"quantization_config.{inside}{names[0]}", stated, GROUPS)
    return size


def packed_as(reader: ConfigReader, bit_names: Sequence[str], group_names: Sequence[str]) -> tuple[int, int]:
    """Return the bits of an integer, and how many elements share a scale. [bits, elements].

    Neither is guessed where it is not stated: no engine has a default for it.

    Args:
        reader: the `quantization_config`, or what it says of one module.
        bit_names: under which the method's loader looks for bits, the first that is stated.
        group_names: the same of groups.

    Source:
        vLLM 0.33 `model_executor/layers/quantization/base_config.py` (`get_from_keys`).

    Raises:
        MissingConfigFieldError: either is not stated, or bits are no number.
        UnsupportedModelError: a length of groups that no kernel reads.
    """
    bit_name, group_name = (_stated_among(reader, names) for names in (bit_names, group_names))
    bits = reader.raw(bit_name)
    bits = int(bits) if isinstance(bits, float) and bits.is_integer() else bits
    if isinstance(bits, bool) or not isinstance(bits, int):
        raise not_stated(bit_name, "does not state" if bits is None else f"has {str(bits)[:80]!r} as", BITS)
    if reader.raw(group_name) is None:
        raise not_stated(group_name, "does not state", GROUPS)
    return bits, group_length(reader, group_name)


def _stated_among(reader: ConfigReader, names: Sequence[str]) -> str:
    """Return the first name that is stated; where none is, the last, which is the usual one."""
    return next((name for name in names if reader.raw(name) is not None), names[-1])


def not_stated(name: str, verb: str, accepted: str) -> MissingConfigFieldError:
    """Return the refusal of a quantization without a field that its loader does not guess."""
    field = f"quantization_config.{name}"
    return MissingConfigFieldError(f"the config {verb} {field}", field=f"model_config.{field}", accepted=accepted)


def block_length(reader: ConfigReader, name: str, inside: str = "") -> int:
    """Return the rows of an fp8 block, or 0 where none is stated.

    Source:
        vLLM 0.33 `model_executor/layers/quantization/fp8.py` ("The quantization block size of weight must have 2
        dimensions").

    Raises:
        UnsupportedModelError: no two lengths, or one that is not above 0.
    """
    block = reader.integers(name) or ()
    if block and (len(block) != DIMENSIONS or min(block) <= 0):
        raise unknown_kind(f"quantization_config.{inside}{name}", list(block), "two numbers above 0: rows and columns")
    return block[0] if block else 0
