"""Layouts and budgets left out of a search for the lowest latency: none of them would have won."""

from dataclasses import replace
from math import inf

import pytest

from service.engine.fleet.ceilings import least_s, timed_as, unplanned
from service.engine.fleet.choice import deployments
from service.engine.fleet.deployments import Deployment, deployment_of, plan_for, resolve_size
from service.engine.fleet.estimates import quickly_alone_s
from service.engine.fleet.fastest import FASTER_THAN_SPLIT, may_be_as_fast, rising_in_time, soonest_first
from service.engine.fleet.planned import held_of, layouts_of
from service.engine.fleet.questions import SizeQuestion, StatedSettings
from service.engine.fleet.ranking import latency_s
from service.engine.fleet.variants import Planner, variants
from service.engine.inputs import Layout, Limits, Load, StatedLayout
from service.engine.time.estimate import alone_s
from tests.engine.conftest import Asked, arrivals, users


def every_deployment(question: SizeQuestion, layouts: tuple[Layout, ...]) -> dict[tuple[Layout, int], Deployment]:
    """Return the fastest deployment of each layout and budget, but for those that take more replicas than the own."""
    resolved, load = resolve_size(question), question.load
    fastest: dict[tuple[Layout, int], Deployment] = {}
    for layout in layouts:
        planner = Planner(
            lambda other, layout=layout: plan_for(question, other, layout),  # type: ignore[misc]
            lambda other, layout=layout: held_of(other, layout, load.input_tokens, load.output_tokens),  # type: ignore[misc]
        )
        for settings, plan in ((resolved, planner(resolved)), *variants(resolved, planner)):
            deployment = deployment_of(question, settings, plan)
            if deployment is None or not deployment.is_feasible:
                continue
            key = layout, settings.settings.max_num_batched_tokens
            own = fastest.get((layout, resolved.settings.max_num_batched_tokens))
            if own is not None and deployment.replicas > own.replicas:
                continue
            if key not in fastest or latency_s(deployment, question) < latency_s(fastest[key], question):
                fastest[key] = deployment
    return fastest


# How long a sample warms up depends on the budget a little, and so by chance what it tells.
ALIKE = 1.001
TTFT, FLOOR = Limits(ttft_s=1.0), Limits(ttft_s=5.0, tpot_s=0.1)


@pytest.mark.parametrize(
    ("load", "limits"),
    [(users(6), FLOOR), (users(400), TTFT), (arrivals(12.0), FLOOR), (arrivals(1.5, 6_000, 100), TTFT)],
    ids=["few", "many", "arrivals", "long prompts"],
)
def test_whatever_would_win_is_among_what_is_tried(asked: Asked, load: Load, limits: Limits) -> None:
    question = asked(load=load, limits=limits, layout=StatedLayout(data_parallel_size=1))
    resolved = resolve_size(question)
    layouts = tuple(each for each in layouts_of(question, resolved).layouts if each.gpus_per_replica <= 4)
    told = {key: latency_s(each, question) for key, each in every_deployment(question, layouts).items()}
    winner = min(told, key=lambda key: told[key])

    known_s = ALIKE * told[winner]
    tried = set(soonest_first(question, resolved, layouts, lambda: known_s))

    # An equal that was told sooner stands for it.
    assert winner in tried or any(told[key] < known_s for key in tried)
    assert len(tried) < len(told)


def test_settings_that_take_more_replicas_are_not_faster(asked: Asked) -> None:
    """Found by `make decision`: 35 replicas that read 256 tokens a step "beat" the two that the engine's own take."""
    limits, two_ranks = Limits(ttft_s=1.0, tpot_s=0.1), StatedLayout(tensor_parallel_size=2)
    question = asked("qwen3-30b-a3b", "l40s", load=users(35, 2_278, 69), limits=limits, layout=two_ranks)
    own = resolve_size(question).settings.max_num_batched_tokens
    stated = replace(question, settings=StatedSettings(max_num_batched_tokens=own))
    by_layout = {each.layout: each.replicas for each in deployments(stated, "latency")}
    found = [each for each in deployments(question, "latency") if each.layout in by_layout]

    assert found
    assert all(each.replicas <= by_layout[each.layout] for each in found)


def test_a_layout_is_left_out_by_one_request_alone_as_in_its_turn(asked: Asked) -> None:
    question = asked(load=users(6), limits=FLOOR)
    resolved = resolve_size(question)
    layouts = layouts_of(question, resolved).layouts
    assert question.timers is not None
    alone = {}
    for layout in layouts:
        timing = question.timers.timer(timed_as(resolved, layout))
        assert timing is not None
        alone[layout] = alone_s(unplanned(timing, layout, question.load, resolved.settings.max_num_batched_tokens))

    least = {layout: least_s(question, resolved, layout) for layout in layouts}
    assert all(0.95 * alone[layout] < least[layout] <= alone[layout] for layout in layouts)
    known_s = sorted(alone.values())[len(alone) // 2]
    tried = {layout for layout, _ in soonest_first(question, resolved, layouts, lambda: known_s)}
    assert all(alone[layout] < known_s for layout in tried)


def test_a_search_answers_as_soon_as_the_best_of_all(asked: Asked) -> None:
    question = asked(load=users(64), limits=TTFT, layout=StatedLayout(data_parallel_size=1, pipeline_parallel_size=1))
    layouts = layouts_of(question, resolve_size(question)).layouts
    soonest_s = min(latency_s(each, question) for each in every_deployment(question, layouts).values())

    assert min(latency_s(each, question) for each in deployments(question, "latency")) <= ALIKE * soonest_s


@pytest.mark.parametrize("tpot_s", [0.008, 0.012, 0.02])
@pytest.mark.parametrize("load", [arrivals(40.0), arrivals(6.0, 4_000, 50)], ids=["short prompts", "long prompts"])
def test_fewer_replicas_under_a_cap_answer_no_sooner_than_those_without_one(
    asked: Asked, load: Load, tpot_s: float
) -> None:
    question = asked(load=load, limits=Limits(ttft_s=3.0, tpot_s=tpot_s))
    resolved = resolve_size(question)
    for layout in (Layout(), Layout(tensor_parallel_size=2), Layout(pipeline_parallel_size=2)):
        plan = plan_for(question, resolved, layout)
        chosen = deployment_of(question, resolved, plan)
        whole = deployment_of(question, resolved, plan, may_pace_it=lambda _: False)
        assert chosen is not None
        assert whole is not None
        if chosen.is_paced and not whole.is_paced:
            assert chosen.replicas < whole.replicas
            assert latency_s(chosen, question) >= latency_s(whole, question)
        else:
            assert chosen.replicas == whole.replicas


def test_no_layout_answers_a_single_request_much_sooner_than_those_that_split_every_layer(asked: Asked) -> None:
    question = asked(load=users(1), limits=Limits(ttft_s=5.0))
    resolved = resolve_size(question)
    space = layouts_of(question, resolved)
    bounds = list(rising_in_time(question, resolved, space.splitting, 2.0, [False]))

    assert [is_final for _, is_final in bounds] == [False, False, True]
    assert bounds == sorted(bounds)
    plans = (plan_for(question, resolved, layout) for layout in space.layouts)
    assert bounds[-1][0][0] <= FASTER_THAN_SPLIT * min(
        quickly_alone_s(question, plan) for plan in plans if plan.holds_one_request
    )


def test_where_nothing_carries_a_request_the_bound_is_infinite(asked: Asked) -> None:
    question = asked(limits=Limits(ttft_s=5.0))
    resolved = resolve_size(question)

    *_, last = rising_in_time(question, resolved, (Layout(),), 2.0, [True])

    assert last == ((inf, inf), True)


def test_drafts_are_for_the_plan_to_tell(asked: Asked) -> None:
    question = asked(limits=Limits(ttft_s=5.0), settings=StatedSettings(num_speculative_tokens=3))
    resolved = resolve_size(question)

    assert may_be_as_fast(question, resolved, Layout(), 1e-9)
    assert set(dict(soonest_first(question, resolved, (Layout(),), lambda: 1e-9))) == {Layout()}


def test_a_layout_that_takes_longer_than_what_is_as_fast_is_not_tried(asked: Asked) -> None:
    question = asked(load=users(64), limits=Limits(ttft_s=5.0))
    resolved = resolve_size(question)
    plan = plan_for(question, resolved, Layout())
    deployment = deployment_of(question, resolved, plan)
    assert deployment is not None
    seen_s = latency_s(deployment, question)

    assert may_be_as_fast(question, resolved, Layout(), seen_s)
    assert not may_be_as_fast(question, resolved, Layout(), 0.8 * seen_s)
