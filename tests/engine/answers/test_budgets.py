"""What may be paid at most: an option within it is found on every GPU that has one, and more money is never worse."""

from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.answers.recommend import recommend
from service.engine.answers.results import Recommendation
from service.engine.fleet.questions import Objective
from service.engine.inputs import Limits
from tests.engine.conftest import Asked, arrivals, recommendation_of, users
from tests.work import functions_of

BATCH: dict[str, Any] = {"service_class": "batch"}


def first(answer: Recommendation, objective: Objective) -> float:
    """Return what an objective compares of the first option."""
    if not answer.options:
        return inf
    option = answer.options[0]
    told = {"cost": option.usd_per_hour, "gpus": option.gpus, "latency": option.tpot_p95_s}[objective]
    return inf if told is None else float(told)


def test_the_lowest_latency_is_that_of_the_budget(asked: Asked, catalog: Snapshot) -> None:
    """The lowest of all takes dozens of GPUs: two are asked for, and two answer."""
    question = asked(load=arrivals(0.2, 100, 20), limits=Limits(ttft_s=2.0, tpot_s=0.05))
    shared = recommendation_of(question, catalog, "h100", objective="latency", weight_formats=("bf16",))
    two = recommend(replace(shared, max_gpus=2)).options[0]
    within = recommend(replace(shared, max_usd_per_hour=two.usd_per_hour)).options[0]

    assert (two.gpus, two.tensor_parallel_size) == (2, 2)
    assert (within.usd_per_hour or inf) <= (two.usd_per_hour or 0)
    assert within.tpot_p95_s == pytest.approx(two.tpot_p95_s)


def test_fewer_gpus_than_the_cheapest_are_found_where_no_more_may_be_taken(asked: Asked, catalog: Snapshot) -> None:
    """Four GPUs in two replicas are the cheapest; three in one carry the load as well."""
    question = asked("llama-3.1-70b", load=users(64, 5_500, 500))
    free, three, two = (
        recommend(
            recommendation_of(
                question, catalog, "h100", weight_formats=("fp8",), kv_cache_dtypes=("bf16",), max_gpus=most
            )
        )
        for most in (None, 3, 2)
    )

    assert free.options[0].gpus == 4
    assert three.options[0].gpus == 3
    assert [rejection.reason for rejection in two.rejected] == ["needs 3 GPUs and max_gpus is 2"]


@pytest.mark.parametrize(("budget", "word"), [({"max_usd_per_hour": 0.5}, "costs"), ({"max_gpus": 1}, "needs")])
def test_why_nothing_keeps_a_budget_takes_one_search_without_it(
    asked: Asked, catalog: Snapshot, budget: dict[str, float], word: str
) -> None:
    """Over a catalog of GPUs two, and what misses the budget least, took half a minute: longer than is waited for."""
    question = asked("llama-3.3-70b", load=arrivals(7.0, 1_900, 180), limits=Limits(ttft_s=2.0, tpot_s=0.05))
    answers: list[Recommendation] = []
    calls = functions_of(
        lambda: answers.append(recommend(recommendation_of(question, catalog, "h100", "l40s", **budget)))
    )

    told = [rejection.reason for rejection in answers[0].rejected if rejection.reason.startswith(word)]
    too_slow = [rejection for rejection in answers[0].rejected if "at least" in rejection.reason]
    assert told
    assert calls["engine.fleet.choice:deployments"] <= 2 * len(answers[0].rejected)
    assert calls["engine.fleet.hopeless:Hopeless._missed_by"] == 0 or too_slow


@pytest.mark.parametrize("objective", ["cost", "gpus"])
@pytest.mark.parametrize("model", ["qwen3-32b", "deepseek-v3", "gpt-oss-120b"])
def test_a_bigger_budget_is_never_worse(asked: Asked, catalog: Snapshot, model: str, objective: Objective) -> None:
    question = asked(model, load=users(48, 3_000, 400), timers=None)
    budgets: list[dict[str, float]] = [{"max_gpus": most} for most in (1, 2, 4, 8, 16)]
    prices: list[dict[str, float]] = [{"max_usd_per_hour": most} for most in (1.0, 3.0, 8.0, 30.0, 100.0)]

    for rising in (budgets, prices):
        answers = [
            recommend(recommendation_of(question, catalog, "h100", "l40s", objective=objective, **BATCH | most))
            for most in rising
        ]
        for most, answer in zip(rising, answers, strict=True):
            for option in answer.options:
                assert option.gpus <= most.get("max_gpus", inf)
                assert (option.usd_per_hour or inf) <= most.get("max_usd_per_hour", inf)
        assert all(more <= less for less, more in pairwise(first(answer, objective) for answer in answers))


@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-30b-a3b", "mixtral-8x7b-v0.1", "nemotron-h-47b", "phi-4"])
def test_a_longer_list_is_never_dearer(asked: Asked, catalog: Snapshot, model: str) -> None:
    gpus = ("t4", "b200", "a100-sxm-80gb", "l4", "a40", "mi300x")
    question = asked(model, load=users(20, 2_000, 300), timers=None)
    prices = [
        first(recommend(recommendation_of(question, catalog, *gpus[:count], **BATCH)), "cost")
        for count in range(1, len(gpus) + 1)
    ]

    assert prices == sorted(prices, reverse=True)
