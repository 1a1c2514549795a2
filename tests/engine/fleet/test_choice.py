"""Layouts and settings that carry a load, and which of them is best."""

from dataclasses import replace
from math import ceil, inf

import pytest

from service.engine.answers.gpu_steps import next_smaller
from service.engine.fleet.aims import NOTHING, Merit, aim_of
from service.engine.fleet.choice import better, deployments, rising
from service.engine.fleet.deployments import keeps_limits
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.ranking import best
from service.engine.inputs import Headroom, Limits, Load, StatedLayout
from service.engine.time.carried import carried_in_memory
from tests.engine.conftest import Asked, arrivals, users
from tests.work import functions_of


def test_memory_alone_takes_as_many_replicas_as_hold_the_users(asked: Asked) -> None:
    settings = StatedSettings(max_num_seqs=1_024, max_num_batched_tokens=8_192)
    layout = StatedLayout(tensor_parallel_size=1, pipeline_parallel_size=1)
    question = asked(load=users(3_000), layout=layout, settings=settings)
    (only,) = deployments(question)
    held = carried_in_memory(only.plan).max_concurrent_requests

    assert only.replicas == only.gpus == ceil(3_000 / held)
    roomy = replace(question, headroom=Headroom(headroom_fraction=0.5, spare_replicas=2))
    assert deployments(roomy)[0].replicas == ceil(4_500 / held) + 2


def test_the_best_has_the_fewest_gpus_of_all_layouts(asked: Asked) -> None:
    question = asked("qwen3-32b", load=arrivals(12.0), limits=Limits(ttft_s=1.0, tpot_s=0.05))
    chosen = best(deployments(question), question)

    assert chosen.is_feasible
    for ranks in (1, 2, 4, 8):
        stated = replace(question, layout=StatedLayout(tensor_parallel_size=ranks, pipeline_parallel_size=1))
        other = best(deployments(stated), stated)
        assert not other.is_feasible or other.gpus >= chosen.gpus


def test_a_bound_on_gpus_leaves_out_what_takes_more(asked: Asked) -> None:
    question = asked("qwen3-32b", load=arrivals(12.0), limits=Limits(ttft_s=1.0, tpot_s=0.05))
    needed = best(deployments(question), question).gpus

    assert deployments(question, at_most=(needed - 1, inf)) == ()
    assert best(deployments(question, at_most=(needed, inf)), question).gpus == needed
    assert [*rising(question)][-1][0][0] <= needed


def test_what_cannot_be_carried_is_told_by_the_layout_that_misses_least(asked: Asked) -> None:
    question = asked("llama-3.1-405b-instruct", "l4", layout=StatedLayout(pipeline_parallel_size=1))
    candidates = deployments(question)
    chosen = best(candidates, question)

    assert not chosen.is_feasible
    assert chosen.gpus == 0
    assert chosen.seen() is None
    assert chosen.plan.shortfall_bytes == min(each.plan.shortfall_bytes for each in candidates)


def test_the_next_smaller_layout_is_the_largest_below(asked: Asked) -> None:
    question = asked("llama-3.3-70b", load=users(1))
    chosen = best(deployments(question), question)
    smaller = next_smaller(question, chosen)

    assert smaller is not None
    assert smaller.layout.gpus_per_replica < chosen.layout.gpus_per_replica
    assert next_smaller(question, smaller) is None or smaller.layout.gpus_per_replica > 1


def test_times_are_added_to_what_memory_decided_and_change_nothing_it_carries(asked: Asked) -> None:
    question = asked(load=users(64))
    chosen = best(deployments(question), question)
    timed = chosen.with_times(question.timers)

    assert chosen.replica is None
    assert timed.replica is not None
    assert timed.capacity == chosen.capacity
    assert timed.seen() is not None


def test_what_is_truly_better_is_as_good_as_the_best_and_equals_are_not(asked: Asked) -> None:
    question = asked("qwen3-32b", load=arrivals(12.0), limits=Limits(ttft_s=1.0, tpot_s=0.05))
    chosen = best(deployments(question), question)
    merit = aim_of("gpus", question.gpu, question.offers).merit(chosen.layout, chosen.replicas)

    assert better(question, NOTHING) == better(question, (merit[0] + 1, 0.0)) == merit
    assert better(question, merit) == merit
    assert better(question, (1.0, 0.0)) == (1.0, 0.0)


@pytest.mark.parametrize("load", [users(300), arrivals(9.0)])
def test_what_is_chosen_keeps_its_limits_at_exactly_its_share(asked: Asked, load: Load) -> None:
    question = asked("llama-3.1-8b", load=load, limits=Limits(ttft_s=1.0, tpot_s=0.03))

    assert keeps_limits(best(deployments(question), question), question)


def test_what_cannot_be_better_is_not_even_planned(asked: Asked) -> None:
    question = asked("llama-3.1-8b", load=users(1))
    chosen = best(deployments(question), question)
    merit = aim_of("gpus", question.gpu, question.offers).merit(chosen.layout, chosen.replicas)
    narrower = replace(question, settings=StatedSettings(kv_cache_dtype="fp8", weight_format="fp8"))

    work = functions_of(lambda: better(narrower, merit))

    assert merit[0] == 1
    assert work["engine.fleet.choice:better"] == 1
    assert work["engine.fleet.deployments:plan_for"] == 0


@pytest.mark.parametrize("limits", [Limits(ttft_s=0.0001), Limits(tpot_s=0.0004)], ids=repr)
def test_bounds_of_limits_that_no_step_keeps_take_one_plan_the_last_s(asked: Asked, limits: Limits) -> None:
    question = asked("gpt-oss-120b", "h200", load=users(8), limits=limits)
    bounds: list[tuple[Merit, bool]] = []

    work = functions_of(lambda: bounds.extend(rising(question)))

    assert max(bounds)[0] == NOTHING
    assert work["engine.fleet.choice:rising"] >= 1
    assert work["engine.fleet.variants:roomiest"] <= 1


def test_fleets_of_one_aim_are_priced_once_for_all_settings(asked: Asked) -> None:
    question = asked("llama-3.3-70b", load=users(40))
    aim = aim_of("gpus", question.gpu, question.offers)
    better(question, NOTHING, aim)
    narrower = replace(question, settings=StatedSettings(kv_cache_dtype="fp8"))
    priced = set(aim.merits)

    merits: list[Merit] = []
    work = functions_of(lambda: merits.append(better(narrower, NOTHING, aim)))

    assert work["engine.fleet.costs:least_paid"] == len(aim.merits) - len(priced) < len(priced)
    assert merits == [better(replace(narrower, model=replace(narrower.model)), NOTHING)]


@pytest.mark.parametrize(
    ("model", "gpu", "load"),
    [
        ("llama-3.3-70b", "h200", arrivals(6.0, 8_000, 1_000)),
        ("mixtral-8x7b", "h100", arrivals(20.0, 5_500, 500)),
        ("qwen3-32b", "h100", arrivals(4.0, 4_000, 500)),
    ],
)
def test_a_limit_that_everybody_keeps_finds_nothing_smaller(asked: Asked, model: str, gpu: str, load: Load) -> None:
    # Short steps were once tried only where the time per token was limited.
    free, limited = (asked(model, gpu, load=load, limits=limits) for limits in (Limits(), Limits(tpot_s=5.0)))

    assert best(deployments(free), free).gpus <= best(deployments(limited), limited).gpus
