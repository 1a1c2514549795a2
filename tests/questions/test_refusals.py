"""Refusals carry what a caller needs, and no status."""

import pytest

from service.catalog.errors import NotInCatalogError
from service.questions.refusals import MOST_FAULTS, Fault, not_in_catalog, stated_twice


@pytest.mark.parametrize(
    ("close", "detail", "accepted"),
    [
        (("h100-pcie", "h100-nvl"), "did you mean h100-pcie, h100-nvl?", "h100-pcie, h100-nvl"),
        ((), "/catalog/gpus lists what there is", "an id or alias from /catalog/gpus"),
    ],
)
def test_an_unknown_name_is_the_fault_of_the_field_that_was_asked(
    close: tuple[str, ...], detail: str, accepted: str
) -> None:
    refusal = not_in_catalog(NotInCatalogError("gpu", "h10", close), "exclude_gpus")

    assert refusal.detail == f"the catalog has no gpu 'h10'; {detail}"
    assert refusal.faults == (Fault("exclude_gpus", "the catalog has no gpu 'h10'", accepted),)


def test_what_is_stated_twice_is_named_in_bounds() -> None:
    refusal = stated_twice(["gpu", "x" * 1000, *map(str, range(100))])

    assert refusal.faults[0] == Fault("gpu", "stated more than once", "one value")
    assert len(refusal.faults[1].field) == 100
    assert len(refusal.faults) == MOST_FAULTS
