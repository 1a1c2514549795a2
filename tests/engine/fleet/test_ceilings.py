"""Ceilings of layouts, before anything is planned: by memory, by time, and where only a plan tells."""

from dataclasses import replace
from itertools import product
from math import inf

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.keeper import seeded_snapshot
from service.engine.fleet.ceilings import Ceilings, timed_as
from service.engine.fleet.deployments import deployment_of, plan_for, resolve_size
from service.engine.fleet.estimates import hoped_replicas
from service.engine.fleet.questions import SizeQuestion, StatedSettings
from service.engine.fleet.rooms import rooms_of
from service.engine.inputs import Headroom, Layout, Limits, StatedLayout
from tests.conftest import shared_timers
from tests.engine.conftest import Asked, arrivals, users

LIMITS = Limits(ttft_s=0.5, tpot_s=0.05)


LAYOUTS = (
    *(Layout(tensor_parallel_size=ranks) for ranks in (1, 2, 4, 8)),
    Layout(tensor_parallel_size=2, pipeline_parallel_size=3),
    Layout(tensor_parallel_size=1, data_parallel_size=4),
)


def ceilings_of(question: SizeQuestion) -> Ceilings:
    resolved = resolve_size(question)
    return Ceilings(question=question, resolved=resolved, rooms=rooms_of(resolved))


def test_more_replicas_are_hoped_for_as_load_grows_and_none_are_left_out_that_carry(asked: Asked) -> None:
    least = []
    for rate in (5.0, 50.0, 500.0):
        question = asked(load=arrivals(rate), limits=LIMITS)
        resolved = resolve_size(question)
        deployment = deployment_of(question, resolved, plan_for(question, resolved, Layout()))
        assert deployment is not None
        least.append(ceilings_of(question).replicas_at_best(Layout(), inf, is_own=True))
        assert least[-1] <= deployment.replicas

    assert least == sorted(least)
    assert least[-1] > least[0]


def test_spares_carry_nothing(asked: Asked) -> None:
    question = asked(load=arrivals(200.0), limits=LIMITS)
    spared = replace(question, headroom=Headroom(spare_replicas=3))
    most = int(ceilings_of(question).replicas_at_best(Layout(), inf, is_own=False))

    assert ceilings_of(spared).budgets(Layout(), most + 3) == ceilings_of(question).budgets(Layout(), most) != ()
    assert ceilings_of(spared).budgets(Layout(), most + 2) == ceilings_of(spared).budgets(Layout(), 2) == ()


def test_what_drafts_make_of_a_step_is_for_the_plan_to_tell(asked: Asked) -> None:
    drafting = asked(
        load=users(600), limits=LIMITS, settings=StatedSettings(num_speculative_tokens=3, speculative_method="ngram")
    )

    assert ceilings_of(drafting).replicas_at_best(Layout(), inf, is_own=False) == 1
    assert ceilings_of(drafting).budgets(Layout(), 1) != ()
    assert ceilings_of(replace(drafting, timers=None)).budgets(Layout(), 1) != ()


def test_no_step_over_stages_is_shorter_than_that_of_one_so_that_its_times_tell_of_all() -> None:
    catalog, timers = seeded_snapshot(), shared_timers()
    model, gpu = catalog.model("llama-3.1-8b"), catalog.gpu("h200")
    question = SizeQuestion(
        model=model, gpu=gpu, load=arrivals(5.0), limits=LIMITS, rules=rules_for("vllm"), layout=StatedLayout(),
        headroom=Headroom(), settings=StatedSettings(), timers=timers,
    )  # fmt: skip
    resolved = resolve_size(question)
    whole, staged = (
        timers.timer(timed_as(resolved, Layout(tensor_parallel_size=2, pipeline_parallel_size=stages)))
        for stages in (1, 4)
    )
    assert whole is not None
    assert staged is not None
    for requests, context in product((1.0, 32.0, 200.0), (100.0, 20_000.0)):
        assert staged.steps.decode_s(requests, context) >= 0.999 * whole.steps.decode_s(requests, context)
        for tokens in (64.0, 4_096.0):
            beside = (tokens, tokens / 2, requests, context)
            assert staged.steps.mixed_s(*beside) >= 0.999 * whole.steps.mixed_s(*beside)


def test_gpus_lighter_than_the_weights_hold_nothing_before_anything_is_timed(asked: Asked) -> None:
    ceilings = ceilings_of(asked("llama-3.3-70b", "l4", load=arrivals(1.0), limits=LIMITS))  # 141 GB on 24 each

    assert ceilings.replicas_by_weight(Layout(tensor_parallel_size=4)) == inf
    assert ceilings.replicas_by_weight(Layout(tensor_parallel_size=8)) == 1


@pytest.mark.parametrize(
    "limits",
    [
        *(Limits(ttft_s=ttft_s) for ttft_s in (0.0005, 0.002, 0.008, 0.032)),
        *(Limits(tpot_s=tpot_s) for tpot_s in (0.0002, 0.0006, 0.0012, 0.01)),
        Limits(ttft_s=0.032, tpot_s=0.0006),
    ],
    ids=repr,
)
def test_a_request_that_no_layout_serves_in_time_leaves_no_hope_of_any_plan(asked: Asked, limits: Limits) -> None:
    """What is told of a layout alone is what its plans would tell, under whatever token budget."""
    question = asked(load=users(8), limits=limits)
    ceilings = ceilings_of(question)
    for layout, tokens in product(LAYOUTS, (256, 2_048, 32_768)):
        stated = replace(question, settings=StatedSettings(max_num_batched_tokens=tokens))
        hoped = hoped_replicas(stated, plan_for(stated, resolve_size(stated), layout), hope=4.0)
        assert ceilings.may_serve(layout, hope=4.0) == (hoped < inf)


@pytest.mark.parametrize("limits", [Limits(ttft_s=0.0005), Limits(tpot_s=0.0001)], ids=repr)
def test_nobody_is_too_slow_whom_nobody_times(asked: Asked, limits: Limits) -> None:
    impossible = asked(load=users(8), limits=limits)

    assert not ceilings_of(impossible).may_serve(Layout(), hope=4.0)
    assert ceilings_of(replace(impossible, timers=None)).may_serve(Layout(), hope=4.0)
