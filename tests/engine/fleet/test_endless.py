"""What users see in a cache without end, beside what they see in a real one."""

from dataclasses import replace
from math import inf
from typing import Literal

import pytest

from service.engine.fleet.ceilings import served_with, timed_as
from service.engine.fleet.deployments import Deployment, deployment_of, plan_for, resolve_size
from service.engine.fleet.endless import PERCENTILE, Endless
from service.engine.fleet.questions import SizeQuestion
from service.engine.inputs import Layout, Limits, Load
from service.engine.time.demand import Users, demand_of
from service.engine.time.estimate import alone_s
from tests.engine.conftest import Asked, arrivals, users

LIMITS = Limits(ttft_s=2.0, tpot_s=0.1)
LOADS = {"few": users(6), "many": users(400), "arrivals": arrivals(12.0), "long prompts": arrivals(1.5, 6_000, 100)}


def endless_of(question: SizeQuestion, deployment: Deployment) -> Endless:
    """Return a replica of a deployment with as many slots, and a cache without end."""
    assert question.timers is not None
    assert deployment.replica is not None
    timing = question.timers.timer(timed_as(deployment.resolved, deployment.layout))
    assert timing is not None
    slots = deployment.replica.slots
    serving = served_with(timing, deployment.resolved, deployment.layout, question.load, slots)
    return Endless(serving=serving, timers=question.timers)


def one_gpu(question: SizeQuestion) -> Deployment:
    """Return as many GPUs as carry a load, each by itself."""
    resolved = resolve_size(question)
    deployment = deployment_of(question, resolved, plan_for(question, resolved, Layout()))
    assert deployment is not None
    assert deployment.is_feasible
    return deployment


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_nobody_sees_less_in_a_real_cache(asked: Asked, load: Load) -> None:
    question = asked(load=load, limits=LIMITS)
    deployment = one_gpu(question)
    endless, share = endless_of(question, deployment), demand_of(load).per_replica(deployment.replicas)
    really_s = deployment.latency_s(PERCENTILE)

    assert endless.roughly_seen_s(share) <= endless.seen_s(share, inf) <= 1.001 * really_s
    assert endless.seen_s(share, 0.5 * really_s) >= 0.5 * really_s


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_what_is_surely_carried_is_carried(asked: Asked, load: Load) -> None:
    question = asked(load=load, limits=LIMITS)
    deployment = one_gpu(question)
    endless, demand = endless_of(question, deployment), demand_of(load)
    sure = [count for count in (1, 2, 4, 8, 16) if endless.surely_carries(demand.per_replica(count), LIMITS)]

    assert sure
    assert all(count >= deployment.replicas for count in sure)
    assert not endless.carries_nobody(LIMITS)
    assert endless.carries_nobody(Limits(ttft_s=1e-4))


@pytest.mark.parametrize("prompt_tokens", [200, 30_000])
@pytest.mark.parametrize("answer_tokens", [2, 40, 800])
@pytest.mark.parametrize(
    ("spread", "variation"), [("fixed", 0.0), ("uniform", 0.1), ("uniform", 1.0), ("lognormal", 1.0)]
)
def test_nobody_alone_is_answered_sooner_than_is_told(
    asked: Asked,
    prompt_tokens: int,
    answer_tokens: int,
    spread: Literal["fixed", "uniform", "lognormal"],
    variation: float,
) -> None:
    load = replace(
        users(1, prompt_tokens, answer_tokens), length_distribution=spread, length_variation_fraction=variation
    )
    question = asked(load=load, limits=Limits(ttft_s=1e4))
    endless = endless_of(question, one_gpu(question))

    assert alone_s(endless.serving) <= 1.001 * endless.seen_s(Users(1), inf)
