"""Entries refuse what is no fact, and what not every database can hold."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from service.catalog.catalog_entries import CatalogEntries
from service.catalog.entries import MAX_NAME, GpuEntry, ModelEntry, Name, OfferEntry
from service.catalog.seed_files import seed_entries
from tests.catalog.samples import GPU, MODEL, OFFER, SOURCE, with_figure


@pytest.mark.parametrize("value", [True, "5", "3.35e12", b"5", None, [1], 1e-300, float("nan"), float("inf")])
def test_a_figure_is_a_number(value: Any) -> None:
    with pytest.raises(ValidationError):
        GpuEntry.model_validate(with_figure("memory_bandwidth_bytes_per_s", value))


@pytest.mark.parametrize("value", [5e-324, 9e-5, 1_000_001, 0, -1, True, "3.9", float("nan"), float("inf")])
def test_a_price_is_a_sensible_number_of_dollars(value: Any) -> None:
    with pytest.raises(ValidationError):
        OfferEntry.model_validate({**OFFER, "usd_per_hour": value})


@pytest.mark.parametrize("value", [1e-4, 0.16, 1, 1_000_000])
def test_prices_from_a_tenth_of_a_cent_to_a_million_are_taken(value: float) -> None:
    assert OfferEntry.model_validate({**OFFER, "usd_per_hour": value}).usd_per_hour == value


@pytest.mark.parametrize(
    ("kind", "sample", "field", "value"),
    [
        (GpuEntry, GPU, "gpus_per_node", True),
        (GpuEntry, GPU, "gpus_per_node", "8"),
        (GpuEntry, GPU, "scale_up_domain_gpus", "8"),
        (GpuEntry, GPU, "scale_up_kind", "\0"),
        (GpuEntry, GPU, "compute_capability", "\u0669.\u0660"),
        (GpuEntry, GPU, "measured_as", "../../etc/passwd"),
        (GpuEntry, GPU, "aliases", ["a"] * 101),
        (GpuEntry, GPU, "aliases", ["\ud800"]),
        (OfferEntry, OFFER, "gpu_count", True),
        (OfferEntry, OFFER, "instance_type", "x" * 129),
        (OfferEntry, OFFER, "instance_type", ""),
        (OfferEntry, OFFER, "instance_type", "p5\0"),
        (OfferEntry, OFFER, "as_of", 0),
        (OfferEntry, OFFER, "as_of", "1700000000"),
        (OfferEntry, OFFER, "as_of", "yesterday"),
        (OfferEntry, OFFER, "source", {**SOURCE, "checked_on": True}),
        (ModelEntry, MODEL, "num_parameters", "8e9"),
        (ModelEntry, MODEL, "num_parameters", True),
        (ModelEntry, MODEL, "name", "x" * 201),
        (ModelEntry, MODEL, "publisher", "\0"),
    ],
)
def test_what_would_be_taken_for_something_else_is_refused(
    kind: type[GpuEntry | OfferEntry | ModelEntry], sample: dict[str, Any], field: str, value: Any
) -> None:
    assert kind.model_validate(sample)
    with pytest.raises(ValidationError) as refusal:
        kind.model_validate({**sample, field: value})
    assert refusal.value.errors()[0]["loc"][0] == field


@given(st.text(max_size=MAX_NAME))
def test_a_name_fits_its_column_in_lower_case_too(name: str) -> None:
    try:
        taken = TypeAdapter(Name).validate_python(name)
    except ValidationError:
        return
    assert 1 <= len(taken.lower()) <= MAX_NAME
    assert "\0" not in taken
    assert taken.encode()


def test_a_name_that_grows_in_lower_case_is_measured_there() -> None:
    with pytest.raises(ValidationError, match="lower case"):
        TypeAdapter(Name).validate_python("İ" * MAX_NAME)


def test_the_whole_catalog_is_written_and_read_back_as_json() -> None:
    models, gpus, offers = seed_entries()
    entries = CatalogEntries(revision=7, models=models, gpus=gpus, offers=offers)

    assert CatalogEntries.model_validate_json(entries.model_dump_json()) == entries


def test_an_entry_is_read_from_whatever_has_its_attributes() -> None:
    entry = OfferEntry.model_validate(OFFER)

    assert OfferEntry.model_validate(SimpleNamespace(**{"purchase": "on-demand", **OFFER})) == entry
