"""A snapshot takes over what did not change, and refuses what does not hold together."""

import tracemalloc
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

from service.catalog.catalog_entries import CatalogEntries
from service.catalog.entries import GpuEntry, ModelEntry, OfferEntry
from service.catalog.errors import InvalidCatalogError, NotInCatalogError
from service.catalog.seed_files import seed_entries
from service.catalog.snapshot import EMPTY, Snapshot, build_snapshot
from service.engine.errors import EngineError
from tests.catalog.samples import gpu, model

Kept = TypeVar("Kept", ModelEntry, GpuEntry, OfferEntry)


def changed(entries: Iterable[Kept], entry_id: str, **changes: Any) -> tuple[Kept, ...]:
    return tuple(it.model_copy(update=changes) if it.id == entry_id else it for it in entries)


def dearer(before: Snapshot, usd_per_hour: float = 77.0) -> Snapshot:
    """The snapshot after one offer's price was changed."""
    entries = before.entries
    offers = changed(entries.offers, entries.offers[0].id, usd_per_hour=usd_per_hour)
    return build_snapshot(entries.model_copy(update={"revision": entries.revision + 1, "offers": offers}), before)


def test_a_price_change_keeps_every_model_gpu_and_name(catalog: Snapshot) -> None:
    after = dearer(catalog)

    assert after.revision == catalog.revision + 1
    assert after.built_models is catalog.built_models
    assert after.gpus is catalog.gpus
    assert after.model_names is catalog.model_names
    assert after.gpu_names is catalog.gpu_names
    changed_offers = [new for new, old in zip(after.offers, catalog.offers, strict=True) if new is not old]
    assert [it.usd_per_hour for it in changed_offers] == [77.0]


def test_a_changed_model_is_built_again_and_no_other(catalog: Snapshot) -> None:
    entries = catalog.entries
    models = changed(entries.models, "qwen3-32b", aliases=("another-name",))
    after = build_snapshot(entries.model_copy(update={"models": models}), catalog)

    again = [name for name, facts in after.built_models.items() if facts is not catalog.built_models[name]]

    assert again == ["qwen3-32b"]
    assert after.model("another-name") == catalog.model("qwen3-32b")
    assert after.offers is catalog.offers


def test_a_changed_gpu_is_built_again_and_no_other(catalog: Snapshot) -> None:
    entries = catalog.entries
    after = build_snapshot(
        entries.model_copy(update={"gpus": changed(entries.gpus, "h100-sxm-80gb", gpus_per_node=4)}), catalog
    )

    assert [it.id for it in after.gpus.values() if it is not catalog.gpus[it.id]] == ["h100-sxm-80gb"]
    assert after.gpu("h100").gpus_per_node == 4


def test_equal_entries_read_anew_are_not_built_again(catalog: Snapshot) -> None:
    copied = CatalogEntries.model_validate_json(catalog.entries.model_dump_json())

    after = build_snapshot(copied, catalog)

    assert all(facts is catalog.built_models[name] for name, facts in after.built_models.items())
    assert all(it is catalog.gpus[it.id] for it in after.gpus.values())


def test_what_is_gone_is_gone(catalog: Snapshot) -> None:
    entries = catalog.entries
    gone = entries.models[0].id
    after = build_snapshot(entries.model_copy(update={"models": entries.models[1:]}), catalog)

    with pytest.raises(NotInCatalogError):
        after.model(gone)


def test_a_hundred_snapshots_of_which_a_price_differs_weigh_little(catalog: Snapshot) -> None:
    tracemalloc.start()
    kept = [catalog]
    for cents in range(100):
        kept.append(dearer(kept[-1], 1 + cents / 100))
    grown_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert grown_bytes < 10e6


def test_two_entries_may_not_share_a_name(catalog: Snapshot) -> None:
    first, second = catalog.entries.gpus[:2]
    twin = second.model_copy(update={"aliases": (first.id,)})

    with pytest.raises(InvalidCatalogError, match=first.id):
        build_snapshot(CatalogEntries(revision=1, models=(), gpus=(first, twin), offers=()))


def test_an_offer_of_an_unknown_gpu_is_named(catalog: Snapshot) -> None:
    offer = catalog.entries.offers[0]

    with pytest.raises(InvalidCatalogError, match=offer.id):
        build_snapshot(CatalogEntries(revision=1, models=(), gpus=(gpu(),), offers=(offer,)))


@pytest.mark.parametrize(
    ("typed", "meant"), [("h10", "h100-sxm-80gb"), ("hh100", "h100-sxm-80gb"), ("a10", None), ("H100", None)]
)
def test_misspelt_names_get_suggestions(catalog: Snapshot, typed: str, meant: str | None) -> None:
    if meant is None:
        assert catalog.gpu(typed).id
        return
    with pytest.raises(NotInCatalogError) as refusal:
        catalog.gpu(typed)
    assert meant in refusal.value.suggestions


@pytest.mark.parametrize("typed", ["nope", "foo", "nope-gpu", "toaster"])
def test_a_name_like_none_gets_no_suggestion(catalog: Snapshot, typed: str) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        catalog.gpu(typed)
    assert refusal.value.suggestions == ()


def test_a_model_without_a_rule_is_refused_alone_and_forgets_who_asked() -> None:
    strange = model(config={"architectures": ["NoSuchForCausalLM"]})
    _, gpus, _ = seed_entries()
    snapshot = build_snapshot(CatalogEntries(revision=1, models=(strange,), gpus=gpus, offers=()), EMPTY)

    refusals = []
    for _ in range(2):
        with pytest.raises(EngineError, match="NoSuchForCausalLM") as refusal:
            snapshot.model("up8")
        refusals.append(refusal.value)

    assert refusals[0] is not refusals[1]
    assert snapshot.refusal("made-up-8b") == refusals[0].detail
