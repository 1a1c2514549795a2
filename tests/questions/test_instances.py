"""A named instance type is its GPU, its count and its price, whatever the question."""

from typing import Any

from service.catalog.snapshot import Snapshot
from service.questions.asked import Desk
from service.questions.compare import COMPARE, CompareBody
from service.questions.recommend import RECOMMEND, RecommendBody
from service.questions.size import SIZE, SizeBody

LOAD: dict[str, Any] = {"concurrent_requests": 8, "input_tokens": 100, "output_tokens": 10}
MODEL = {"model": "llama-3.1-8b"}


def sized(catalog: Snapshot, **asked: object) -> dict[str, Any]:
    return Desk(None).answer(SIZE, SizeBody.model_validate(MODEL | LOAD | asked), catalog).document


def recommended(catalog: Snapshot, **asked: object) -> dict[str, Any]:
    return Desk(None).answer(RECOMMEND, RecommendBody.model_validate(MODEL | LOAD | asked), catalog).document


def read_as(answer: dict[str, Any], field: str) -> list[str]:
    return [each["source"] for each in answer["assumptions"] if (each["name"], each["origin"]) == (field, "read as")]


def test_every_question_rents_it_whole_at_its_own_price(catalog: Snapshot) -> None:
    compared = CompareBody.model_validate(
        {"models": ["llama-3.1-8b"], "gpus": ["p5.48xlarge"], **{name: [value] for name, value in LOAD.items()}}
    )

    (row,) = Desk(None).answer(COMPARE, compared, catalog).document["rows"]
    cost = sized(catalog, gpu="p5.48xlarge")["cost"]
    best = recommended(catalog, gpus=["p5.48xlarge"])["options"][0]

    assert cost["instance_type"] == best["instance_type"] == "p5.48xlarge"
    assert row["usd_per_hour"] == cost["usd_per_hour"] == best["usd_per_hour"]
    assert cost["gpus_paid"] == best["gpus_paid"] == 8
    shared = ("usd_per_month", "instances", "region", "tier", "purchase", "as_of", "is_stale")
    assert [cost[name] for name in shared] == [best[name] for name in shared]
    assert (best["instances"], best["usd_per_month"]) == (1, round(730 * best["usd_per_hour"], 6))
    assert "at its own price, rented whole" in read_as(recommended(catalog, gpus=["p5.48xlarge"]), "gpus")[0]


def test_the_caller_s_price_of_a_gpu_is_paid_for_all_that_it_holds(catalog: Snapshot) -> None:
    stated = sized(catalog, gpu="p5.48xlarge", usd_per_gpu_hour=2)
    option = recommended(catalog, gpus=["p5.48xlarge"], usd_per_gpu_hour=2)["options"][0]

    assert (stated["cost"]["gpus_paid"], stated["cost"]["usd_per_hour"]) == (8, 16)
    assert (option["gpus_paid"], option["usd_per_hour"]) == (8, 16)
    assert "at the price stated, rented whole" in read_as(stated, "gpu")[0]
    assert any("p5.48xlarge has no fewer" in warning for warning in stated["warnings"])


def test_several_instances_are_no_larger_one(catalog: Snapshot) -> None:
    """Eight GPUs at 2 USD an hour are one p5.48xlarge, which the load takes of the two that are named."""
    two = {"gpu": "2 x p5.48xlarge", "usd_per_gpu_hour": 2}

    stated = sized(catalog, **two)

    cost = stated["cost"]
    assert (cost["gpus_per_instance"], cost["instances"], cost["usd_per_hour"]) == (8, 1, 16)
    assert read_as(stated, "gpu")[0].endswith("rented whole; the count of 2 decides nothing here")
    assert any("the count of 2 decides nothing here" in warning for warning in stated["warnings"])
    assert not any("count" in warning for warning in sized(catalog, gpu="p5.48xlarge")["warnings"])


def test_of_a_gpu_that_is_named_by_itself_as_well_everything_may_be_rented(catalog: Snapshot) -> None:
    both, alone = (recommended(catalog, gpus=gpus)["options"][0] for gpus in (["p5.48xlarge", "h100"], ["h100"]))

    assert both["usd_per_hour"] == alone["usd_per_hour"]


def test_the_price_of_an_instance_that_nobody_lists_is_said_to_be_unknown(catalog: Snapshot) -> None:
    answer = sized(catalog, gpu="a3-highgpu-4g")

    assert answer["cost"] is None
    assert "whose price is not known here" in read_as(answer, "gpu")[0]
    [unpriced] = (warning for warning in answer["warnings"] if warning.startswith("no price: "))
    assert "no offer of h100-sxm-80gb is within the instance types, " in unpriced
    assert "; others are aws in " in unpriced
    [option] = recommended(catalog, gpus=["a3-highgpu-4g"])["options"]
    assert unpriced in option["warnings"]


def test_comparisons_without_a_load_take_the_count_of_a_name(catalog: Snapshot) -> None:
    asked = CompareBody.model_validate({"models": ["llama-3.1-8b"], "gpus": ["p5.48xlarge", "4xH100"]})

    rows = Desk(None).answer(COMPARE, asked, catalog).document["rows"]

    assert [row["gpus"] for row in rows[:1] + rows[-1:]] == [8, 4]
