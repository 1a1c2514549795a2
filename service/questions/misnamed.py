"""Names that the catalog does not have, told beside the fields that are at fault: all that is wrong, at once."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from service.catalog.errors import NotInCatalogError
from service.catalog.snapshot import Snapshot
from service.questions.refusals import Fault, RefusalError, not_in_catalog

MOST_NAMES: Final = 20  # that are looked up
MOST_CHARACTERS: Final = 200  # of a name that may be one
Look = Callable[[Snapshot, str], object]


def _model(catalog: Snapshot, name: str) -> object:
    return catalog.called_models.read(name)


def _gpu(catalog: Snapshot, name: str) -> object:
    return catalog.called_gpus.read(name)


LOOKED_UP: Final[Mapping[str, Look]] = {
    "model": _model, "models": _model, "gpu": _gpu, "gpus": _gpu, "exclude_gpus": _gpu,
}  # fmt: skip


def misnamed(stated: Mapping[str, object], catalog: Snapshot) -> tuple[Fault, ...]:
    """Return a fault for each field whose names the catalog does not have, the first of them each.

    Args:
        stated: fields as a caller stated them, right or wrong.
        catalog: where names are looked up.
    """
    return tuple(
        fault
        for field, look in LOOKED_UP.items()
        if (fault := next(_unknown(field, look, stated.get(field), catalog), None)) is not None
    )


def with_all_names(refusal: RefusalError, stated: Mapping[str, object], catalog: Snapshot) -> RefusalError:
    """Return a refusal of a name with the other names beside it that the catalog does not have either."""
    if refusal.kind != "not-in-catalog":
        return refusal
    told = {fault.field for fault in refusal.faults}
    others = [fault for fault in misnamed(stated, catalog) if fault.field not in told]
    if not others:
        return refusal
    detail = "; ".join((refusal.detail, *(fault.detail for fault in others)))
    return RefusalError(refusal.kind, detail, *refusal.faults, *others)


def _unknown(field: str, look: Look, stated: object, catalog: Snapshot) -> Iterator[Fault]:
    for name in islice(_names(stated, is_list=field.endswith("s")), MOST_NAMES):
        try:
            look(catalog, name)
        except NotInCatalogError as error:
            yield not_in_catalog(error, field).faults[0]


def _names(stated: object, *, is_list: bool) -> Iterator[str]:
    """Yield the names in a field; what is no text is at fault otherwise, as is a list where one name is asked."""
    values = stated if is_list and isinstance(stated, list) else [stated]
    for value in values:
        if isinstance(value, str):
            parts = value.split(",") if is_list else [value]
            yield from (part.strip() for part in parts if part.strip() and len(part) <= MOST_CHARACTERS)
