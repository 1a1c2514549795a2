"""What a recommendation chooses from."""

from dataclasses import replace
from math import inf

from service.catalog.snapshot import Snapshot
from service.engine.fleet.combinations import (
    allowed_offers,
    cheapest_gpu_usd_per_hour,
    combinations,
    size_question,
)
from tests.engine.conftest import Asked, recommendation_of


def test_every_gpu_is_combined_with_every_format_and_dtype_in_question(asked: Asked, catalog: Snapshot) -> None:
    question = recommendation_of(
        asked(), catalog, "h100", "l40s", weight_formats=("bf16", "fp8"), kv_cache_dtypes=("auto", "fp8")
    )
    found = list(combinations(question))

    assert len(found) == 2 * 2 * 2
    assert {(each.gpu.id, each.settings.weight_format) for each in found} == {
        ("h100-sxm-80gb", "bf16"), ("h100-sxm-80gb", "fp8"), ("l40s", "bf16"), ("l40s", "fp8"),
    }  # fmt: skip
    assert size_question(question, found[0]).gpu is found[0].gpu


def test_without_formats_those_of_the_models_checkpoints_are_in_question(asked: Asked, catalog: Snapshot) -> None:
    question = recommendation_of(asked(), catalog, "h100")
    formats = {each.weight_format for each in catalog.model("llama-3.1-8b").checkpoints}

    assert {each.settings.weight_format for each in combinations(question)} == formats


def test_only_offers_of_the_asked_providers_count(asked: Asked, catalog: Snapshot) -> None:
    question = recommendation_of(asked(), catalog, "h100")
    gpu = catalog.gpu("h100")
    price = cheapest_gpu_usd_per_hour(question, gpu)
    dearest = max(allowed_offers(question, gpu), key=lambda offer: offer.usd_per_hour / offer.gpu_count)
    only = replace(question, providers=(dearest.provider,))

    assert price <= cheapest_gpu_usd_per_hour(only, gpu)
    assert {offer.provider for offer in allowed_offers(only, gpu)} == {dearest.provider}
    assert cheapest_gpu_usd_per_hour(replace(question, providers=("nobody",)), gpu) == inf
