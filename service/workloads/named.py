"""A workload held against the catalog and the engine's rules when it is written.

Only then: a workload outlasts an entry of the catalog, and its questions say what is missing.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from service.catalog.errors import NotInCatalogError
from service.catalog.snapshot import Snapshot
from service.engine.errors import InvalidQuestionError
from service.questions.parts.prices import OF_OFFERS, Priced
from service.questions.refusals import MOST_FAULTS, Fault, RefusalError, not_in_catalog
from service.questions.sources import Sources
from service.workloads.workload import asked_with

GPU_FIELDS: Final = ("gpu", "gpus", "exclude_gpus")
RATE: Final = "request_rate_per_s"
STAYING: Final = {"request_duration_s": 1.0}
# What offers lack today may be offered tomorrow.
OF_PRICES: Final = frozenset((*OF_OFFERS, "product_lines"))


def check_named(fields: Mapping[str, Any], catalog: Snapshot) -> None:
    """Refuse names that the catalog does not know: every answer would be 404 until somebody adds them.

    Raises:
        RefusalError: there is such a name; the nearest are told.
    """
    told: dict[Fault, str] = {}
    for field, name, read in _named(fields, catalog):
        try:
            read(name)
        except NotInCatalogError as error:
            refusal = not_in_catalog(error, field)
            told.update(dict.fromkeys(refusal.faults, refusal.detail))
    if told:
        faults = list(told)[:MOST_FAULTS]
        raise RefusalError("invalid-request", "; ".join(dict.fromkeys(told[fault] for fault in faults)), *faults)


def check_answered(fields: Mapping[str, Any], sources: Sources) -> None:
    """Refuse what its first question is refused with, whatever comes into the catalog.

    A deployment that is too small is answered, as are GPUs that nobody rents out: loads and prices change.

    Args:
        fields: those of a question that can be asked.
        sources: what it is looked up in; without step times, as no refusal is about them.

    Raises:
        RefusalError: its fields contradict one another, or no offer has a provider, region or purchase it names.
        EngineError: the engine refuses it.
    """
    # Without step times a rate says how many stay only with how long each does, and that refuses nothing.
    asked = next(chain(asked_with({**fields, **STAYING}), asked_with(fields)))
    if isinstance(asked, Priced):
        asked.check_names(sources.catalog)
    try:
        asked.answer(sources)
    except InvalidQuestionError as refusal:
        if refusal.field != RATE:
            raise
    except RefusalError as refusal:
        if not {fault.field for fault in refusal.faults} <= OF_PRICES:
            raise


def _named(fields: Mapping[str, Any], catalog: Snapshot) -> Iterator[tuple[str, str, Callable[[str], object]]]:
    """Yield each field with a name that one of the questions reads, and who reads it."""
    for asked in asked_with(fields):
        model = getattr(asked, "model", None)
        if model is not None:
            yield "model", model, catalog.called_models.read
        for field in GPU_FIELDS:
            stated = getattr(asked, field, None) or ()
            for name in (stated,) if isinstance(stated, str) else stated:
                yield field, name, catalog.called_gpus.read
