"""What misses least is told though layouts that miss by more are never planned."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from service.engine.answers.size import size
from service.engine.fleet.choice import deployments
from service.engine.fleet.deployments import plan_for, resolve_size
from service.engine.fleet.estimates import estimated_excess, excess_of
from service.engine.fleet.hopeless import MOST_EXPLAINED, Hopeless, Planned
from service.engine.fleet.planned import layouts_of
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.variants import with_chosen
from service.engine.inputs import Layout, Limits, Load
from service.engine.time.steps import deployed
from tests.engine.conftest import Asked, arrivals, users

TOO_SOON = (Limits(ttft_s=0.001), Limits(tpot_s=0.0005), Limits(ttft_s=0.002, tpot_s=0.001))


def settings_of(question: SizeQuestion, layout: Layout) -> Iterator[Planned]:
    """Yield the engine's own settings of a layout, and half its sequences."""
    own = resolve_size(question)
    yield own, plan_for(question, own, layout)
    fewer = with_chosen(own, "max_num_seqs", own.settings.max_num_seqs // 2, "{own}")
    yield fewer, plan_for(question, fewer, layout)


@pytest.mark.parametrize("load", [users(600), arrivals(30.0), users(8, 60_000, 100)], ids=["users", "rate", "long"])
@pytest.mark.parametrize("limits", TOO_SOON, ids=["ttft", "tpot", "both"])
def test_the_same_is_told_as_of_every_layout_planned(asked: Asked, load: Load, limits: Limits) -> None:
    question = asked(load=load, limits=limits)
    resolved = resolve_size(question)
    layouts, planned = layouts_of(question, resolved).layouts, list[Layout]()
    tried = sorted(layouts, key=lambda layout: layout.gpus_per_replica)[-len(layouts) // 2 :]
    left = [layout for layout in layouts if layout not in tried]
    told, every = (Hopeless(question, resolved, usual=len(tried)) for _ in range(2))
    for layout in tried:
        for hopeless in (told, every):
            hopeless.add(resolved, plan_for(question, resolved, layout))
    for layout in left:
        told.leave(layout)
        for setting in settings_of(question, layout):
            every.add(*setting)

    def settings(layout: Layout) -> Iterator[Planned]:
        planned.append(layout)
        return settings_of(question, layout)

    some, all_of_them = (
        [each.resolved.settings for each in hopeless.explained(lambda _: True, settings)] for hopeless in (told, every)
    )

    assert len(all_of_them) == MOST_EXPLAINED
    assert some == all_of_them
    assert len(planned) < len(left)


@pytest.mark.parametrize("limits", TOO_SOON, ids=["ttft", "tpot", "both"])
def test_a_request_alone_takes_as_long_under_all_settings_of_a_layout(asked: Asked, limits: Limits) -> None:
    question = asked(load=users(4), limits=limits)
    for layout in (Layout(), Layout(tensor_parallel_size=2), Layout(tensor_parallel_size=2, data_parallel_size=2)):
        excesses = {estimated_excess(question, plan) for _, plan in settings_of(question, layout)}

        assert excesses == {excess_of(question, deployed(plan_for(question, resolve_size(question), layout)))}


def test_fewer_settings_than_usual_layouts_make_nothing_impossible(asked: Asked) -> None:
    question = asked(load=users(600), limits=TOO_SOON[0])
    resolved = resolve_size(question)
    hopeless = Hopeless(question, resolved, usual=2)
    hopeless.add(resolved, plan_for(question, resolved, Layout()))

    assert hopeless.explained(lambda _: True, lambda layout: settings_of(question, layout)) == ()


def test_what_is_told_carries_nothing(asked: Asked) -> None:
    question = asked(load=arrivals(30.0), limits=TOO_SOON[1])
    told = deployments(question)

    assert told
    assert not any(each.is_feasible for each in told)


def test_a_limit_that_nothing_keeps_is_told_and_not_memory_that_others_have(asked: Asked) -> None:
    """The same GPUs hold the load without the limit, so more memory would not keep it."""
    question = asked("llama-3.1-405b", "t4", load=users(3, 3_000, 800))
    free, limited = size(question), size(replace(question, limits=Limits(tpot_s=0.01)))

    assert free.feasible
    assert not limited.feasible
    assert limited.binding_constraint == "tpot"
    assert limited.shortfall_bytes == 0
    assert limited.would_fit[0].startswith("tpot_s of at least ")


@pytest.mark.parametrize(
    ("model", "gpu", "load", "limits"),
    [
        ("llama-3.1-8b", "a100-sxm-80gb", users(8, 9_000, 400), Limits(ttft_s=0.002)),  # a larger budget reads sooner
        ("llama-3.3-70b", "a10", users(32, 2_000, 500), Limits(ttft_s=0.01)),  # four GPUs hold it under a smaller one
        ("qwen3-30b-a3b", "t4", users(8, 9_000, 400), Limits(ttft_s=0.002)),
        ("qwen3-30b-a3b", "rtx-pro-6000", users(64, 200, 50), Limits(tpot_s=0.0005)),  # more ranks wait for their link
        ("gpt-oss-20b", "rtx-pro-6000", users(64, 200, 400), Limits(tpot_s=0.0005)),
    ],
)
def test_the_limit_that_is_told_is_kept_and_no_shorter_one(
    asked: Asked, model: str, gpu: str, load: Load, limits: Limits
) -> None:
    question = asked(model, gpu, load=load, limits=limits)
    name = "ttft_s" if limits.ttft_s else "tpot_s"
    told = size(question).would_fit[0]
    least_s = float(told.removeprefix(f"{name} of at least ").partition(":")[0])

    def is_kept(limit_s: float) -> bool:
        alone = replace(load, concurrent_requests=1)
        return size(replace(question, load=alone, limits=replace(limits, **{name: limit_s}))).feasible

    assert is_kept(1.002 * least_s)
    assert not is_kept(0.95 * least_s)
