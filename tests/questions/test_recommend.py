"""`/recommend` as the engine's question, as rows and as lines."""

import csv
from typing import Any

import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

from service.questions.recommend import RecommendAnswer, RecommendQuery
from service.questions.refusals import RefusalError
from service.questions.sources import Sources

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "concurrent_requests": 8,
    "input_tokens": 1000,
    "output_tokens": 200,
}


@pytest.fixture(scope="module")
def answer(sources: Sources) -> RecommendAnswer:
    return RecommendQuery(**ASKED, gpus=["h100", "l40s"], limit=3).answer(sources)


def considered(sources: Sources, **asked: Any) -> set[str]:
    return {gpu.id for gpu in RecommendQuery(**ASKED, **asked).looked_up(sources).gpus}


def test_without_a_list_every_data_centre_gpu_is_considered_that_somebody_rents_out(sources: Sources) -> None:
    rented = {offer.gpu for offer in sources.catalog.offers if (offer.tier, offer.purchase) == ("secure", "on-demand")}
    found = considered(sources)

    assert found < rented
    assert {"h100-sxm-80gb", "l4", "a100-pcie-80gb", "mi300x", "rtx-pro-6000-server"} <= found
    assert not any("GeForce" in sources.catalog.gpu(name).name for name in found)
    assert considered(sources, exclude_gpus=["h100"]) == found - {"h100-sxm-80gb"}
    assert considered(sources, product_lines=["data-centre", "workstation", "consumer"]) == rented
    assert considered(sources, gpus=["rtx-4090"]) == {"rtx-4090"}


def test_gpus_of_other_lines_are_left_out_by_name(sources: Sources) -> None:
    rejected = RecommendQuery(**ASKED, limit=1, providers=["runpod"]).answer(sources).result.rejected
    reasons = {each.gpu: each.reason for each in rejected}

    assert "product_lines=consumer" in reasons["rtx-4090"]
    assert "product_lines=workstation" in reasons["rtx-a6000"]


def test_where_nothing_is_found_table_and_text_say_why(client: TestClient) -> None:
    some = {**ASKED, "gpus": "h100,a100-80gb,mi300x,l4"}
    asked = {**some, "ttft_s": 0.0001, "limit": 3}
    found = client.get("/recommend", params={**some, "limit": 1, "format": "csv"}).text
    rejected = client.get("/recommend", params=asked).json()["rejected"]
    table = client.get("/recommend", params={**asked, "format": "csv"}).text
    head, *told = client.get("/recommend", params={**asked, "format": "text"}).text.splitlines()
    rows = list(csv.DictReader(table.splitlines()))

    assert {(row["gpu"], row["weight_format"], row["reason"]) for row in rows} == {
        (each["gpu"], each["weight_format"] or "", each["reason"]) for each in rejected
    }
    assert all(row["rank"] == "" for row in rows)
    assert set(rows[0]) == {*found.splitlines()[0].split(","), "asked.ttft_s"}
    assert head.endswith(f"0 options, {len(rejected)} left out")
    assert sum(int(line.split()[0]) for line in told if " left out" in line) == len(rejected)
    assert any("ttft_s of at least" in line for line in told)
    assert len(told) < 10


def test_of_what_a_budget_leaves_out_the_cheapest_is_told(client: TestClient) -> None:
    asked = {**ASKED, "gpus": "mi300x,h100,l4", "weight_formats": "bf16", "max_usd_per_hour": 0.01}
    rejected = client.get("/recommend", params=asked).json()["rejected"]
    head, told, *_ = client.get("/recommend", params={**asked, "format": "text"}).text.splitlines()
    prices = [float(each["reason"].split()[1]) for each in rejected]

    assert head.endswith(": 0 options, 3 left out")
    assert f"costs {min(prices):.2f} USD per hour" in told
    assert rejected[prices.index(min(prices))]["gpu"] in told


def test_one_option_is_told_as_one(client: TestClient) -> None:
    asked = {**ASKED, "gpus": "h100", "limit": 1, "format": "text"}

    assert ": 1 option, " in client.get("/recommend", params=asked).text


def test_lists_are_read_once_each(sources: Sources) -> None:
    assert considered(sources, gpus="h100,H100,l40s") == {"h100-sxm-80gb", "l40s"}


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"gpus": ["h100", "h10"]}, "gpus"),
        ({"exclude_gpus": ["h10"]}, "exclude_gpus"),
        ({"gpus": ["h100"], "exclude_gpus": ["h100"]}, "exclude_gpus"),
        ({"model": "llama-9"}, "model"),
        ({"providers": ["awss"]}, "providers"),
        ({"providers": ["aws"], "product_lines": ["consumer"]}, "product_lines"),
        ({"providers": ["aws"], "regions": ["us-east"]}, "regions"),
        ({"providers": ["akash"]}, "providers"),
        ({"usd_per_gpu_hour": 2.0, "gpus": ["h100", "h200"]}, "usd_per_gpu_hour"),
    ],
)
def test_the_field_that_was_asked_is_at_fault(sources: Sources, asked: dict[str, Any], field: str) -> None:
    with pytest.raises(RefusalError) as refused:
        RecommendQuery(**{**ASKED, **asked}).looked_up(sources)

    assert refused.value.faults[0].field == field
    assert refused.value.faults[0].accepted


def test_offers_that_nobody_makes_are_refused_with_those_that_are_made(sources: Sources) -> None:
    """AWS names its regions us-east-1 and ap-south-1; Akash rents out spare servers of anybody."""
    with pytest.raises(RefusalError) as elsewhere:
        RecommendQuery(**ASKED, providers=["AWS"], regions=["us-east"]).looked_up(sources)
    with pytest.raises(RefusalError) as spare:
        RecommendQuery(**ASKED, providers=["akash"]).looked_up(sources)

    assert "no offer has providers=aws, regions=us-east, tiers=secure (default)" in elsewhere.value.detail
    assert "aws in us-east-1 (secure, on-demand)" in str(elsewhere.value.faults[0].accepted)
    assert "(community, spot)" in str(spare.value.faults[0].accepted)


def test_a_gpu_that_is_not_rented_as_asked_is_left_out_for_that(sources: Sources) -> None:
    """Lambda has no spot prices, and nobody asked for a budget."""
    asked = RecommendQuery(**ASKED, gpus=["h100"], providers=["lambda"], purchases=["spot"])
    reasons = {each.reason for each in asked.answer(sources).result.rejected}

    assert len(reasons) == 1
    assert "within the instance types, providers, regions, tiers and purchases in question; others are" in reasons.pop()


@pytest.mark.parametrize("asked", [{"tiers": ["community"]}, {"purchases": ["spot"]}], ids=str)
def test_what_nobody_offers_on_the_terms_asked_for_is_no_option(sources: Sources, asked: dict[str, Any]) -> None:
    """No MI300X is a community's, and no L4 is spot: without a price it would rank beside what has one."""
    gpus = ["h100", "mi300x", "l4"]
    wanted = {(offer.gpu, offer.tier, offer.purchase) for offer in sources.catalog.offers}
    terms = asked.get("tiers", ["secure"])[0], asked.get("purchases", ["on-demand"])[0]
    rented = {sources.catalog.gpu(name).id for name in gpus if (sources.catalog.gpu(name).id, *terms) in wanted}
    found = RecommendQuery(**ASKED, gpus=gpus, **asked).answer(sources).result
    reasons = [each.reason for each in found.rejected if each.gpu not in rented]

    assert 0 < len(rented) < len(gpus)
    assert {option.gpu for option in found.options} == rented
    assert any("in question; others are" in reason for reason in reasons)


def test_terms_other_than_on_demand_are_told_in_the_line(sources: Sources) -> None:
    asked = RecommendQuery(**ASKED, gpus=["h100"], weight_formats=["bf16"], purchases=["reserved"])
    line, *_ = [line for line in asked.answer(sources).lines() if line.startswith("1. ")]
    told = asked.answer(sources).result.options[0].warnings

    assert ", reserved" in line
    assert any("a commitment of" in warning for warning in told)


def test_there_is_a_row_and_a_line_for_each_option(answer: RecommendAnswer) -> None:
    options = answer.result.options

    assert [row["rank"] for row in answer.rows()] == [option.rank for option in options]
    assert answer.lines()[0].startswith(f"llama-3.1-8b-instruct: {len(options)} options, ")
    assert answer.lines()[1].startswith(f"1. {options[0].gpus} x {options[0].gpu} (TP")
    assert f"{options[0].usd_per_hour:.2f} USD/h {options[0].provider} {options[0].instance_type}" in answer.lines()[1]


def test_gauges_are_of_the_best_option(answer: RecommendAnswer) -> None:
    gauges = dict(answer.gauges())

    assert gauges["options_count"] == len(answer.result.options)
    assert gauges["best.gpus"] == answer.result.options[0].gpus
    assert answer.labels() == {"model": "llama-3.1-8b-instruct"}


@pytest.mark.parametrize(
    ("one", "value", "left_out"), [("weight_format", "int4", "fp8"), ("kv_cache_dtype", "bf16", "fp8")]
)
def test_a_format_that_a_list_beside_it_leaves_out_is_no_part_of_the_question(
    one: str, value: str, left_out: str
) -> None:
    with pytest.raises(ValidationError, match=f"{one} is {value}, which {one}s leaves out"):
        RecommendQuery(**ASKED, **{one: value, f"{one}s": [left_out]})

    beside = RecommendQuery(**ASKED, **{one: value, f"{one}s": [value, left_out]})
    assert set(getattr(beside, f"{one}s")) == {value, left_out}


@pytest.mark.parametrize("name", ["all", "Any", "*"])
def test_every_gpu_is_asked_for_by_naming_none(sources: Sources, name: str) -> None:
    with pytest.raises(RefusalError) as refused:
        RecommendQuery(**ASKED, gpus=[name]).answer(sources)

    assert (refused.value.faults[0].field, refused.value.faults[0].accepted) == ("gpus", "leave gpus out, or name them")


def test_a_server_of_one_gpu_is_said_to_hold_no_more(sources: Sources) -> None:
    asked = ASKED | {"model": "llama-3.3-70b", "weight_formats": ["bf16"], "max_usd_per_hour": 3.0}
    rejected = RecommendQuery(**asked).answer(sources).result.rejected

    [reason] = [each.reason for each in rejected if (each.gpu, each.weight_format) == ("gh200-96gb", "bf16")]
    assert reason.startswith("does not fit on one GPU, and a server holds no more; ")


@pytest.mark.parametrize(
    ("stated", "field"),
    [
        ({"expert_parallel": True}, "expert_parallel"),
        ({"expert_parallel": True, "engine": "tensorrt-llm"}, "expert_parallel"),  # that has no kernels for NVFP4 there
        ({"tensor_parallel_size": 7}, "tensor_parallel_size"),
        ({"max_model_len": 500_000}, "max_model_len"),
    ],
)
def test_what_no_gpu_and_no_format_can_help_is_refused_as_size_refuses_it(
    client: TestClient, stated: dict[str, Any], field: str
) -> None:
    recommended = client.get("/recommend", params={**ASKED, "gpus": "h100", **stated})
    sized = client.get("/size", params={**ASKED, "gpu": "h100", **stated})

    assert recommended.status_code == sized.status_code == 422
    assert recommended.json()["errors"][0] == sized.json()["errors"][0]
    assert recommended.json()["errors"][0]["field"] == field
