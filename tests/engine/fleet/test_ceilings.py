"""Ceilings of layouts, before anything is planned: by memory, by time, and where only a plan tells."""

from dataclasses import replace
from math import inf

from service.engine.fleet.ceilings import Ceilings
from service.engine.fleet.deployments import deployment_of, plan_for, resolve_size
from service.engine.fleet.questions import SizeQuestion, StatedSettings
from service.engine.fleet.rooms import rooms_of
from service.engine.inputs import Headroom, Layout, Limits
from tests.engine.conftest import Asked, arrivals, users

LIMITS = Limits(ttft_s=0.5, tpot_s=0.05)


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
