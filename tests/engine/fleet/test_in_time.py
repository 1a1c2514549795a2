"""Layouts told apart before their settings are tried: none is left out that would have been chosen."""

from dataclasses import replace
from math import inf

import pytest

from service.catalog.engine_rules import rules_for
from service.engine.answers.size import size
from service.engine.fleet.ceilings import Ceilings
from service.engine.fleet.deployments import deployment_of, plan_for, resolve_size
from service.engine.fleet.estimates import serving_for
from service.engine.fleet.in_time import budgets_in_time, needs_room
from service.engine.fleet.planned import held_of
from service.engine.fleet.questions import SizeQuestion, StatedSettings
from service.engine.fleet.rooms import rooms_of
from service.engine.fleet.settings import Resolved
from service.engine.fleet.variants import Planner, batched_tokens, roomiest, variants
from service.engine.inputs import Layout, Limits, Load
from tests.engine.conftest import Asked, arrivals, users

ONE, TWO = Layout(), Layout(tensor_parallel_size=2)


def ceilings_of(question: SizeQuestion, resolved: Resolved) -> Ceilings:
    return Ceilings(question=question, resolved=resolved, rooms=rooms_of(resolved))


@pytest.mark.parametrize("layout", [ONE, TWO], ids=["tp1", "tp2"])
@pytest.mark.parametrize("limits", [Limits(ttft_s=0.4), Limits(ttft_s=1.0, tpot_s=0.015)], ids=["ttft", "both"])
@pytest.mark.parametrize(
    "load", [users(600), arrivals(30.0), arrivals(4.0, 6_000, 100)], ids=["users", "arrivals", "long prompts"]
)
def test_whatever_carries_the_load_is_among_what_is_tried(
    asked: Asked, load: Load, limits: Limits, layout: Layout
) -> None:
    hold_all_that_carry(asked(load=load, limits=limits), layout)


def test_more_run_for_a_while_than_there_is_room_for_whole_requests(asked: Asked) -> None:
    # 70B in 16 bits leave a MI300X room for 26: steps of 256 tokens with 27 of them let arrivals wait beyond the limit,
    # and those that hold what they have so far did not.
    load, limits = arrivals(0.996, 4_059, 1_184), Limits(ttft_s=5.0, tpot_s=0.1)
    hold_all_that_carry(asked("llama-3.3-70b", "mi300x", load=load, limits=limits), ONE)


def test_a_full_cache_keeps_pace_where_no_cap_may(asked: Asked) -> None:
    # Prompts of 100,000 tokens fill two B200: whoever waits for blocks slows nobody, and the caller's cap is kept.
    stated = StatedSettings(max_num_seqs=512, gpu_memory_utilization=0.95)
    load, rules = arrivals(0.354, 100_000, 1_187), rules_for("tensorrt-llm")
    question = asked("mimo-v2-flash", "b200", load=load, limits=Limits(tpot_s=0.03), settings=stated, rules=rules)
    hold_all_that_carry(question, Layout(pipeline_parallel_size=2))


def hold_all_that_carry(question: SizeQuestion, layout: Layout) -> None:
    """Hold the settings of a layout with which a load is carried against those that are left to be tried."""
    load, resolved = question.load, resolve_size(question)
    planner = Planner(
        lambda other: plan_for(question, other, layout),
        lambda other: held_of(other, layout, load.input_tokens, load.output_tokens),
    )
    roomy = roomiest(resolved, planner)
    ceilings, carried = ceilings_of(question, resolved), 0
    for settings, plan in ((resolved, planner(resolved)), *variants(resolved, planner)):
        deployment = deployment_of(question, settings, plan)
        if deployment is None or not deployment.is_feasible:
            continue
        carried += 1
        assert ceilings.replicas_at_best(layout, inf, is_own=False) <= deployment.replicas
        hoped = ceilings.budgets(layout, deployment.replicas)
        budgets = budgets_in_time(question, serving_for(question, roomy), deployment.replicas, hoped)
        assert settings.settings.max_num_batched_tokens in budgets, settings.settings

    assert carried


def test_half_the_replicas_that_are_needed_are_not_tried(asked: Asked) -> None:
    question = asked(load=arrivals(200.0), limits=Limits(ttft_s=0.5, tpot_s=0.012))
    resolved = resolve_size(question)
    plan = plan_for(question, resolved, ONE)
    deployment = deployment_of(question, resolved, plan)
    assert deployment is not None

    every = batched_tokens(resolved)
    assert budgets_in_time(question, serving_for(question, plan), deployment.replicas // 2, every) == ()
    ceilings = ceilings_of(question, resolved)
    assert ceilings.budgets(ONE, deployment.replicas // 2) == ceilings.budgets(ONE, 0) == ()
    assert deployment.replicas // 2 < ceilings.replicas_at_best(ONE, inf, is_own=False) <= deployment.replicas
    assert ceilings.replicas_at_best(ONE, deployment.replicas // 2, is_own=False) == inf


def test_without_limits_every_budget_is_tried_and_a_stated_one_alone(asked: Asked) -> None:
    question = asked(load=users(64))
    resolved = resolve_size(question)
    plan = plan_for(question, resolved, ONE)

    every = batched_tokens(resolved)
    assert budgets_in_time(question, serving_for(question, plan), inf, every) == every
    assert needs_room(question, plan)
    stated = resolve_size(asked(settings=StatedSettings(max_num_batched_tokens=4_096)))
    assert batched_tokens(stated) == (4_096,)


def test_a_short_budget_bounds_who_runs_beside_others(asked: Asked) -> None:
    """Who runs beyond a step's tokens starves the others: 20 GPUs were found where the stated budget takes 18."""
    question = asked("gpt-oss-120b", load=arrivals(500.0, 500, 100), limits=Limits(ttft_s=3.0, tpot_s=0.06))
    stated = replace(question, settings=StatedSettings(max_num_batched_tokens=1_024))

    assert size(question).gpus <= size(stated).gpus


@pytest.mark.parametrize(
    ("ranks", "tokens", "load", "limits"),
    [
        (1, 512, arrivals(27.47, 627, 253), Limits(ttft_s=1.0, tpot_s=0.03)),
        (2, 256, arrivals(15.65, 774, 352), Limits(ttft_s=1.0, tpot_s=0.03)),
    ],
)
def test_the_beginning_of_a_small_sample_leaves_nothing_out(
    asked: Asked, ranks: int, tokens: int, load: Load, limits: Limits
) -> None:
    """Near what is carried at most the first of a sample wait longer than all after them."""
    question, layout = asked(load=load, limits=limits), Layout(tensor_parallel_size=ranks)
    resolved = resolve_size(question)
    planner = Planner(
        lambda other: plan_for(question, other, layout),
        lambda other: held_of(other, layout, load.input_tokens, load.output_tokens),
    )
    serving = serving_for(question, roomiest(resolved, planner))

    assert tokens in budgets_in_time(question, serving, 1, batched_tokens(resolved))


def test_prompts_beyond_the_usual_budgets_may_be_read_in_one_step(asked: Asked) -> None:
    # 20,000 tokens each for 11 users on A100: cut in two, their beginnings slow those who decode beside them.
    question = asked(
        "llama-3.3-70b",
        "a100-sxm-80gb",
        load=users(11, 20_000, 1_485),
        limits=Limits(ttft_s=2.0, tpot_s=0.03),
        rules=rules_for("sglang"),
    )
    stated = replace(question, settings=StatedSettings(max_num_batched_tokens=32_768))
    assert size(question).gpus <= size(stated).gpus == 48
