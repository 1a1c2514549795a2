"""Names that say how large a model is, where its own name does not: `phi4-mini:3.8b` is Phi-4 mini, of 3.8 billion."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from service.catalog.entries import ModelEntry
from service.catalog.names.words import SIZE, words_of
from service.engine.errors import EngineError
from service.engine.families import parse_architecture
from service.engine.memory.parameters import num_parameters

ROUNDED: Final = 0.05  # by which a size that is said may differ from the count: 14b of 14.7 billion, 24b of 23.6
UNITS: Final[Mapping[str, float]] = {"m": 1e6, "b": 1e9, "t": 1e12}


def without_size(words: Sequence[str]) -> tuple[tuple[str, ...], float] | None:
    """Return words without the one size among them, and how many parameters that says.

    >>> without_size(("phi", "4", "mini", "3.8b"))
    (('phi', '4', 'mini'), 3800000000.0)
    >>> without_size(("mixtral", "8x7b")), without_size(("phi", "4"))
    (None, None)
    """
    sizes = [word for word in words if SIZE.fullmatch(word)]
    if len(sizes) != 1 or not sizes[0][:-1].replace(".", "").isdigit():
        return None
    return tuple(word for word in words if word != sizes[0]), float(sizes[0][:-1]) * UNITS[sizes[0][-1]]


def of_total(model_ids: Iterable[str], said: float, entries: Mapping[str, ModelEntry]) -> tuple[str, ...]:
    """Return those of models whose names say no size and that have as many parameters as is said, but for rounding."""
    unsaid = (model_id for model_id in model_ids if without_size(words_of(model_id)) is None)
    totals = {model_id: _total(entries[model_id]) for model_id in unsaid}
    return tuple(model_id for model_id, total in totals.items() if total and abs(total - said) <= ROUNDED * said)


def _total(entry: ModelEntry) -> int | None:
    """Return the parameters that a publisher counts, or its config has; None where no rule reads it."""
    if entry.num_parameters is not None:
        return entry.num_parameters
    try:
        return num_parameters(parse_architecture(entry.config))
    except EngineError:
        return None
