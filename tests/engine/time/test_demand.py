"""Users and arrivals: shares, headroom, and what is simulated of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.catalog.snapshot import Snapshot
from service.engine.errors import InvalidQuestionError
from service.engine.inputs import Headroom, Layout, Limits, Load
from service.engine.time.chance import ROUGHLY_MEASURED
from service.engine.time.demand import Arrivals, Demand, Users, demand_of, kind_of, users_of, wanted_of
from service.engine.time.replica import Replica
from service.engine.time.traffic import Sender
from tests.engine.time.conftest import plan_of, replica_on, traffic

LOAD = Load(concurrent_requests=None, request_rate_per_s=None, input_tokens=1_000, output_tokens=101)
demands = st.one_of(st.builds(Users, st.integers(1, 100_000)), st.builds(Arrivals, st.floats(0.01, 1_000)))


def test_a_load_is_users_or_arrivals_or_users_by_littles_law() -> None:
    rate = replace(LOAD, request_rate_per_s=4.0)

    assert demand_of(replace(LOAD, concurrent_requests=7)) == Users(7)
    assert demand_of(rate) == Arrivals(4.0)
    assert demand_of(replace(rate, request_duration_s=2.6)) == Users(11)  # 4/s x 2.6 s = 10.4
    assert kind_of(rate) is Arrivals
    assert kind_of(LOAD) is Users


@pytest.mark.parametrize("load", [LOAD, replace(LOAD, request_rate_per_s=4.0)], ids=["no load", "a rate alone"])
def test_users_that_nobody_stated_are_refused(load: Load) -> None:
    with pytest.raises(InvalidQuestionError) as refusal:
        users_of(load)

    assert refusal.value.field == "concurrent_requests"


def test_headroom_is_added_before_replicas_are_counted() -> None:
    kept_free = Headroom(headroom_fraction=0.25)

    assert wanted_of(replace(LOAD, concurrent_requests=10), kept_free) == Users(13)
    assert wanted_of(replace(LOAD, request_rate_per_s=10.0), kept_free) == Arrivals(12.5)
    assert Users(13).replicas(6) == 3
    assert Arrivals(12.5).replicas(12.5) == 1


def test_what_binary_fractions_add_takes_no_user_and_no_replica_more() -> None:
    assert Users(100).planned(Headroom(headroom_fraction=0.1)) == Users(110)  # 100 x 1.1 = 110.00000000000001
    assert users_of(replace(LOAD, request_rate_per_s=1.1, request_duration_s=10.0)) == Users(11)
    assert [Arrivals(count * 0.23940082017464343).replicas(0.23940082017464343) for count in (3, 7)] == [3, 7]


def test_a_rate_that_was_shared_is_the_rate_of_the_grid(replica: Replica) -> None:
    rate = 2.0 ** (-66 / 32)

    assert all(
        Arrivals(count * rate).per_replica(count).rounded_up(replica) == Arrivals(rate) for count in range(1, 200)
    )


def test_a_stream_that_runs_one_request_answers_no_more_than_it_reads(catalog: Snapshot) -> None:
    # An estimate without one's own prompt says 6/s with certainty, where 2/s are answered.
    plan = plan_of(catalog, Layout(pipeline_parallel_size=3), (12_000, 20), max_num_seqs=3)
    replica = replica_on(plan, asked=traffic(12_000, 20))

    assert replica.slots == 3
    assert not Arrivals(1.01 * replica.saturation_rate).has_room(replica)
    assert Arrivals(0.99 * replica.saturation_rate).has_room(replica)


@given(demands, st.integers(1, 64))
def test_the_fullest_share_of_so_many_replicas_needs_no_more_of_them(demand: Demand, replicas: int) -> None:
    share = demand.per_replica(replicas).amount * (1 + 1e-12)  # thirds of a rate do not add up to it

    assert demand.replicas(share) <= replicas


def test_users_beyond_twice_the_slots_are_not_simulated_but_wait(replica: Replica) -> None:
    serving = replica.serving

    assert Users(10).simulated(serving, Sender(), 256).concurrency == 10
    assert Users(1_000).simulated(serving, Sender(), 256).concurrency == 128
    held, queued = replica.seen(Users(128)), replica.seen(Users(1_128))
    assert queued.requests_per_s == held.requests_per_s
    assert queued.ttft_s.mean - held.ttft_s.mean == pytest.approx(1_000 / held.requests_per_s)


@pytest.mark.parametrize("users", [64, 500, 1_000, 4_000])
def test_no_number_of_users_is_answered_faster_than_their_prompts_are_read(catalog: Snapshot, users: int) -> None:
    """A token of a prompt takes 0.1 ms: of prompts of 100, no more than 100 a second are read, but for chance."""
    replica = replica_on(plan_of(catalog, lengths=(100, 10), max_num_seqs=3_000), asked=traffic(100, 10))

    assert replica.slots == 3_000
    assert replica.seen(Users(users), ROUGHLY_MEASURED).requests_per_s <= 105.0
    assert replica.saturation_rate <= 105.0


def test_a_growing_queue_breaks_arrivals_that_keep_their_limits(replica: Replica) -> None:
    beyond = Arrivals(1.5 * replica.saturation_rate)
    seen = replica.seen(beyond)

    assert seen.violates(Limits(ttft_s=1e6)) is None
    assert beyond.broken(seen, Limits(ttft_s=1e6)) == "throughput"
