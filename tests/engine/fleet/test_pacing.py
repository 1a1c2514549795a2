"""A cap on running requests that keeps pace."""

import pytest

from service.engine.fleet.deployments import resolve_size
from service.engine.fleet.pacing import as_paced, may_pace, paced_replicas, without_pace
from service.engine.fleet.planned import planned
from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import Layout, Limits, Load
from service.engine.time.carried import Carried
from service.engine.time.demand import Arrivals, Users
from service.engine.time.replica import timed
from tests.engine.conftest import Asked, arrivals, users

PACED = Limits(ttft_s=2.0, tpot_s=0.012)


@pytest.mark.parametrize(
    ("load", "limits", "stated", "may"),
    [
        (arrivals(10), PACED, StatedSettings(), True),
        (arrivals(10), Limits(ttft_s=2.0), StatedSettings(), False),
        (arrivals(10), PACED, StatedSettings(max_num_seqs=64), False),
        (users(10), PACED, StatedSettings(), False),
    ],
    ids=["arrivals", "no limit on pace", "a stated cap", "users"],
)
def test_only_arrivals_under_the_engines_own_cap_are_paced(
    asked: Asked,
    load: Load,
    limits: Limits,
    stated: StatedSettings,
    may: bool,  # noqa: FBT001 - a column
) -> None:
    assert may_pace(resolve_size(asked(settings=stated)), load, limits) is may


def test_every_cap_keeps_pace_for_users_and_is_bounded_by_what_ttft_alone_allows(asked: Asked) -> None:
    question = asked(load=arrivals(10), limits=PACED)
    resolved = resolve_size(question)
    plan = planned(resolved, Layout(), 1_000, 200)
    replica = timed(plan, question.timers, question.load)
    assert replica is not None

    paced = list(paced_replicas(resolved, replica, PACED, lambda capped: planned(capped, Layout(), 1_000, 200)))

    assert paced
    for capped, other in paced:
        cap = other.plan.settings.max_num_seqs
        assert cap == capped.settings.max_num_seqs < resolved.settings.max_num_seqs
        assert other.seen(Users(cap)).violates(Limits(tpot_s=PACED.tpot_s)) is None
        assert other.most(Arrivals, PACED).load <= replica.most(Arrivals, without_pace(PACED)).load
        note = next(note for note in capped.assumptions if note.name == "max_num_seqs")
        assert note.value == cap
        assert "the engine's own cap is 1024" in (note.source or "")


def test_what_fills_a_chosen_cap_is_the_limit_behind_it() -> None:
    full = Carried(max_concurrent_requests=8, max_request_rate_per_s=3.0, binds="max_num_seqs")

    assert as_paced(full).binds == "tpot"
    assert as_paced(Carried(max_concurrent_requests=8, max_request_rate_per_s=3.0, binds="ttft")).binds == "ttft"
