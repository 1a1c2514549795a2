"""What one replica carries, and how many replicas a demand takes."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.catalog.snapshot import Snapshot
from service.engine.errors import InvalidQuestionError
from service.engine.inputs import Limits, Load
from service.engine.time.carried import carried, carried_in_memory, deciding_replica, fewest_replicas, hoped, needs_time
from service.engine.time.demand import Arrivals, Users
from service.engine.time.replica import Replica
from tests.engine.time.conftest import HandTimers, plan_of

USERS = Load(concurrent_requests=10, request_rate_per_s=None, input_tokens=1_000, output_tokens=101)
RATE = replace(USERS, concurrent_requests=None, request_rate_per_s=2.0)


def test_memory_binds_by_weights_cache_or_the_cap(catalog: Snapshot) -> None:
    plan = plan_of(catalog, max_num_seqs=64)

    assert carried_in_memory(plan).max_concurrent_requests == 64
    assert carried_in_memory(plan).binds == "max_num_seqs"
    assert carried_in_memory(replace(plan, requests_in_cache=9)).binds == "kv_cache"
    short = replace(plan, memory=replace(plan.memory, shortfall_bytes=1))
    assert (carried_in_memory(short).max_concurrent_requests, carried_in_memory(short).binds) == (0, "weights")


def test_time_decides_with_limits_or_arrivals() -> None:
    assert not needs_time(USERS, Limits())
    assert needs_time(USERS, Limits(ttft_s=1.0))
    assert needs_time(RATE, Limits())
    assert not needs_time(replace(RATE, request_duration_s=3.0), Limits())


def test_users_of_the_highest_rate_follow_from_littles_law(replica: Replica) -> None:
    limits = Limits(ttft_s=1.0)
    by_rate = carried(replica.plan, replica, Arrivals, limits)
    rate = by_rate.max_request_rate_per_s

    assert rate is not None
    in_system = rate * replica.seen(Arrivals(rate)).end_to_end_s.mean
    assert by_rate.max_concurrent_requests == pytest.approx(in_system, abs=1)
    assert carried(replica.plan, replica, Arrivals, Limits()).max_concurrent_requests == 64
    assert carried(replica.plan, replica, Users, Limits()).binds == "max_num_seqs"
    assert carried(replica.plan, replica, Users, Limits(tpot_s=0.03)).binds == "tpot"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 1_000), st.sampled_from([None, 0.3, 2.0]), st.sampled_from([None, 0.02, 0.03]))
def test_replicas_found_early_are_those_of_the_whole_search(
    replica: Replica, users: int, ttft_s: float | None, tpot_s: float | None
) -> None:
    limits = Limits(ttft_s=ttft_s, tpot_s=tpot_s)
    of_one = carried(replica.plan, replica, Users, limits).max_concurrent_requests
    needed = fewest_replicas(replica.plan, replica, Users(users), limits)

    assert needed == (Users(users).replicas(of_one) if of_one else 0)
    assert needed is not None
    assert fewest_replicas(replica.plan, replica, Users(users), limits, at_most=needed - 1 if needed else inf) in (
        None,
        0,
    )


def test_arrivals_without_times_are_refused(catalog: Snapshot) -> None:
    plan = plan_of(catalog)

    assert fewest_replicas(plan, None, Users(10_000), Limits()) == pytest.approx(
        10_000 / carried_in_memory(plan).max_concurrent_requests, abs=1
    )
    with pytest.raises(InvalidQuestionError, match="arrivals"):
        fewest_replicas(plan, None, Arrivals(3.0), Limits())


def test_hope_is_memory_alone_until_time_decides(catalog: Snapshot) -> None:
    plan, timers = plan_of(catalog, max_num_seqs=64), HandTimers()

    assert hoped(plan, timers, USERS, Limits(), 2.0) == 64
    assert hoped(plan, timers, USERS, Limits(ttft_s=0.001), 2.0) == 0
    rate = hoped(plan, timers, RATE, Limits(), 2.0)
    assert rate is not None
    twice = hoped(plan, timers, RATE, Limits(), 4.0)
    assert twice == pytest.approx(2 * rate)


def test_a_gpu_without_a_peak_is_refused_where_time_decides(catalog: Snapshot) -> None:
    class NoTimes(HandTimers):
        def timer(self, key: object) -> None:  # type: ignore[override]  # noqa: ARG002 - nobody tells time
            return None

    plan = plan_of(catalog)
    assert deciding_replica(plan, NoTimes(), USERS, Limits()) is None
    with pytest.raises(InvalidQuestionError, match="states no peak"):
        deciding_replica(plan, NoTimes(), USERS, Limits(ttft_s=1.0))
