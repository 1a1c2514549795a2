"""What a name of a GPU may mean, and what it must never be taken for."""

import pytest

from service.catalog.errors import NotInCatalogError
from service.catalog.snapshot import Snapshot


@pytest.mark.parametrize("near", ["H100 96GB", "RTX 4090 48GB", "RTX 3080 16GB", "H100 HBM2e", "A100X", "RTX 6000"])
def test_a_card_that_differs_in_memory_or_a_letter_is_refused(catalog: Snapshot, near: str) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        catalog.called_gpus.read(near)

    assert refusal.value.suggestions


def test_every_offered_instance_type_names_its_gpus(catalog: Snapshot) -> None:
    for offer in catalog.offer_entries.values():
        reading = catalog.called_gpus.read(offer.instance_type)
        assert (reading.gpu_id, reading.gpu_count) == (offer.gpu, offer.gpu_count)


def test_instances_are_counted_too(catalog: Snapshot) -> None:
    assert catalog.called_gpus.read("2x p5.48xlarge").gpu_count == 16


def test_a_misspelt_instance_type_is_refused_with_the_right_one(catalog: Snapshot) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        catalog.called_gpus.read("p5.48xlage")

    assert refusal.value.suggestions[0] == "p5.48xlarge"


@pytest.mark.parametrize("count", ["0x", "100001x ", "9999999999x"])
def test_a_count_that_nobody_has_is_refused(catalog: Snapshot, count: str) -> None:
    with pytest.raises(NotInCatalogError):
        catalog.called_gpus.read(f"{count}h100")


def test_a_gpu_with_a_memory_that_none_of_it_has_is_told_so(catalog: Snapshot) -> None:
    # of Leonardo's boosters (leonardo-supercomputer.cineca.eu), which are in no list of cards
    with pytest.raises(NotInCatalogError, match="states 64 GB, which no entry of that GPU has"):
        catalog.called_gpus.read("NVIDIA A100-SXM-64GB")


@pytest.mark.parametrize(
    ("name", "architecture"),
    [("Hopper", "hopper"), ("NVIDIA Blackwell GPU", "blackwell"), ("Ada Lovelace", "ada"), ("cdna3", "cdna3")],
)
def test_a_generation_is_refused_with_gpus_of_it(catalog: Snapshot, name: str, architecture: str) -> None:
    with pytest.raises(NotInCatalogError, match=f"'{name}' is a generation of GPUs") as refused:
        catalog.called_gpus.read(name)

    assert {catalog.gpu_entries[each].architecture for each in refused.value.suggestions} == {architecture}
