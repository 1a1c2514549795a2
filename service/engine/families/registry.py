"""Every family that this package holds, by the classes it speaks for.

A family is a module beside this one with its records in `FAMILIES`; nothing else needs to know of it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from itertools import chain, takewhile
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Final, TypeVar

from service.engine.errors import UnsupportedModelError
from service.engine.families.parts.family import Family
from service.engine.families.parts.unruled import UNKNOWN

Value = TypeVar("Value")
# What the names of most classes end in; a task's name is in between: `LlamaForSequenceClassification`.
ENDING: Final = re.compile(r"(?:for[a-z]+|lmhead)?(?:lm|model|generation|classification|answering)?$")
FIGURES: Final = re.compile(r"[0-9]+")
MOST_COMPARED: Final = 80  # characters of a class's name
MOST_CLOSE: Final = 3
CLOSE: Final = 0.8  # of the letters of two names
NOT_FAMILIES: Final = frozenset({
    "adapters", "captured", "early_states", "ends", "in_sglang", "incomplete", "own_code", "own_files", "parts",
    "quantized", "registry", "served_by", "since", "vocabulary",
})  # fmt: skip


class ClaimedTwiceError(ValueError):
    """Two records speak for one class, or for one model type."""


class IncompleteFamilyError(ValueError):
    """A record says neither how attention is read nor what is wrapped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """The families by class, and the class behind each model type."""

    families: Mapping[str, Family]
    model_types: Mapping[str, str]
    unscaled_types: frozenset[str]  # parts of model types whose configs state the scaled context already

    def has_class(self, name: str) -> bool:
        """Return whether a class is a language model, or has one of its own."""
        return name in self.families and self.families[name].attention is not None

    def family(self, name: str) -> Family:
        """Return the record of a class.

        Raises:
            UnsupportedModelError: no record speaks for it; it is never approximated.
        """
        known = self.families.get(name)
        if known is None:
            refused = (
                f"there is no rule yet for the architecture {name[:80]!r}, so it is refused rather than approximated"
            )
            raise UnsupportedModelError(
                f"{refused}: {UNKNOWN[name]}" if name in UNKNOWN else refused,
                field="model_config.architectures",
                accepted=", ".join(_close(name, self.families) or _likest_first(name, self.families)),
            )
        return known

    def language_model(self, config: Mapping[str, object], outer: Family) -> Family:
        """Return the record of the language model inside a multimodal class; any other class is its own."""
        return outer if outer.wraps is None else self.family(outer.wraps(config, self))


def _close(name: str, known: Iterable[str]) -> list[str]:
    """Return the classes that a misspelt one may mean, the likest first; none of another number: Qwen4 is no Qwen3.

    >>> _close("LamaForCausalLM", ("LlamaForCausalLM", "MptForCausalLM"))
    ['LlamaForCausalLM']
    >>> _close("MyForCausalLM", ("LlamaForCausalLM", "MptForCausalLM"))
    []
    """
    asked = _stem(name)
    stems = {each: _stem(each) for each in sorted(known)}
    known_stems = sorted(set(stems.values()))
    close = [asked] if asked in known_stems else get_close_matches(asked, known_stems, MOST_CLOSE, CLOSE)
    same = [stem for stem in close if FIGURES.findall(stem) == FIGURES.findall(asked)]
    return [each for stem in same for each in stems if stems[each] == stem]


def _likest_first(name: str, known: Iterable[str]) -> list[str]:
    """Return all classes, those whose names begin most like one that is like none first: none of them stands in for it.

    >>> _likest_first("Llama9ForCausalLM", ("GemmaForCausalLM", "LlamaForCausalLM"))
    ['LlamaForCausalLM', 'GemmaForCausalLM']
    """
    asked = _stem(name)

    def alike(stem: str) -> int:
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(asked, stem, strict=False)))

    return sorted(known, key=lambda each: (-alike(_stem(each)), each.lower()))


def _stem(name: str) -> str:
    """Return what tells a class from others, without what most classes end in."""
    return ENDING.sub("", name[:MOST_COMPARED].lower())


def collected(families: Iterable[Family]) -> Registry:
    """Return a registry of these records.

    Raises:
        ClaimedTwiceError: two of them name one class or model type.
        IncompleteFamilyError: one of them cannot be read.
    """
    records = tuple(families)
    by_class: dict[str, Family] = {}
    by_type: dict[str, str] = {}
    for family in records:
        if family.attention is None and family.wraps is None:
            raise IncompleteFamilyError(f"{family.classes} reads no attention and wraps nothing")
        for name in family.classes:
            _claim(by_class, name, family)
        for model_type in family.model_types:
            _claim(by_type, model_type, family.classes[0])
    return Registry(
        families=MappingProxyType(by_class),
        model_types=MappingProxyType(by_type),
        unscaled_types=frozenset(family.unscaled_type for family in records if family.unscaled_type),
    )


def _claim(claims: dict[str, Value], name: str, value: Value) -> None:
    if name in claims:
        raise ClaimedTwiceError(f"two records claim {name}")
    claims[name] = value


def published() -> Iterator[Family]:
    """Yield the records of every module of this package."""
    package = import_module(str(__package__))
    names = (module.name for module in iter_modules(package.__path__))
    modules = (import_module(f"{__package__}.{name}") for name in names if name not in NOT_FAMILIES)
    return chain.from_iterable(module.FAMILIES for module in modules)


REGISTRY: Final = collected(published())
