"""A name of a GPU that was deleted means no other one."""

import pytest

from service.catalog.errors import NotInCatalogError
from service.catalog.snapshot import Snapshot, build_snapshot


def without(catalog: Snapshot, gpu_id: str) -> Snapshot:
    """Return a catalog after somebody deleted a GPU, with its offers."""
    entries = catalog.entries.model_copy(
        update={
            "gpus": tuple(each for each in catalog.entries.gpus if each.id != gpu_id),
            "offers": tuple(each for each in catalog.entries.offers if each.gpu != gpu_id),
        }
    )
    return build_snapshot(entries, catalog)


@pytest.mark.parametrize("gpu_id", ["h100-sxm-80gb", "a100-sxm-80gb", "gh200-96gb", "rtx-3080", "v100-sxm2-16gb"])
def test_no_name_of_a_deleted_gpu_means_another(catalog: Snapshot, gpu_id: str) -> None:
    entry, left = catalog.gpu_entries[gpu_id], without(catalog, gpu_id)
    for name in (entry.id, entry.name, *entry.aliases, f"8x {entry.id}", f"8 x {entry.aliases[0]}"):
        assert catalog.called_gpus.read(name).gpu_id == gpu_id
        with pytest.raises(NotInCatalogError) as refused:
            left.called_gpus.read(name)
        assert gpu_id not in refused.value.suggestions


def test_the_others_keep_their_names(catalog: Snapshot) -> None:
    left = without(catalog, "h100-sxm-80gb")
    for gpu_id, entry in left.gpu_entries.items():
        for name in (entry.id, entry.name, *entry.aliases):
            assert left.called_gpus.read(name).gpu_id == gpu_id


def test_a_name_that_somebody_gave_to_another_gpu_means_that_one(catalog: Snapshot) -> None:
    left = without(catalog, "h100-sxm-80gb")
    gpus = tuple(
        each.model_copy(update={"aliases": (*each.aliases, "h100")}) if each.id == "h100-nvl-94gb" else each
        for each in left.entries.gpus
    )
    named = build_snapshot(left.entries.model_copy(update={"gpus": gpus}), left)

    assert named.called_gpus.read("h100").gpu_id == "h100-nvl-94gb"
