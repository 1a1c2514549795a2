"""One server under load, at step times that can be worked out by hand."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.inputs import Layout, Limits, Load
from service.engine.kept import Kept
from service.engine.time.chance import MEASURED
from service.engine.time.demand import Arrivals, Users
from service.engine.time.replica import Replica, timed
from service.engine.time.results import Bracket
from tests.engine.time.conftest import HandTimers, LinearSteps, plan_of, replica_on, traffic

ALONE_S = 0.010 + 1_000 * 0.0001  # a prompt of 1,000 tokens on an idle engine
LOAD = Load(concurrent_requests=1, request_rate_per_s=None, input_tokens=1_000, output_tokens=101)


def test_a_single_user_sees_an_idle_engine(replica: Replica) -> None:
    alone = replica.seen(Users(1))

    assert alone.ttft_s.percentile(50) == pytest.approx(ALONE_S)
    assert alone.tpot_s.mean == pytest.approx(0.010)


def test_a_latency_stays_known_when_what_was_seen_is_gone(replica: Replica) -> None:
    seen_s = replica.seen(Users(8)).end_to_end_s.percentile(95.0)

    assert replica.latency_s(Users(8), MEASURED, 95.0) == seen_s
    assert replica.latency_s(Users(8), MEASURED, 50.0) < seen_s
    replica.simulations.results = Kept(0, lambda result: result.nbytes)
    assert replica.latency_s(Users(8), MEASURED, 95.0) == seen_s
    assert replica.simulations.results.get((replica.key, Users(8), MEASURED)) is None


def test_without_limits_users_fill_the_slots_and_arrivals_the_throughput_of_them(replica: Replica) -> None:
    assert replica.most(Users, Limits()).load == replica.slots == 64
    bracket = replica.most(Arrivals, Limits())
    assert bracket.load <= replica.saturation_rate <= bracket.fails_at
    assert bracket.violates == "throughput"


def test_the_most_users_within_a_limit_keep_it_and_a_few_more_do_not(replica: Replica) -> None:
    limits = Limits(tpot_s=0.030)
    bracket = replica.most(Users, limits)

    assert replica.seen(Users(int(bracket.load))).violates(limits) is None
    assert replica.breaks(Users(int(1.1 * bracket.fails_at)), limits, MEASURED) == bracket.violates == "tpot"


@pytest.mark.parametrize("streams", [8, 16])
def test_an_estimate_is_of_the_stream_that_has_one_user_more(catalog: Snapshot, streams: int) -> None:
    # Two users: while one makes 101 tokens, the prompt of the other takes 5 s; where each is alone, none does.
    layout = Layout(pipeline_parallel_size=streams // 2, data_parallel_size=2)
    replica = replica_on(plan_of(catalog, layout), LinearSteps(prefill_token_s=0.005), traffic(1_000, 101))
    assert replica.serving.streams == streams
    limits = Limits(tpot_s=0.050)

    assert replica.breaks(Users(streams), limits, MEASURED) is None
    assert replica.breaks(Users(streams + 1), limits, MEASURED) == "tpot"
    assert replica.seen(Users(streams + 1)).violates(limits) == "tpot"


def test_arrivals_have_room_only_where_every_prompt_is_read_as_fast_as_they_come(catalog: Snapshot) -> None:
    # 14 slots over 12 streams: each reads one prompt of 15 s after another, and decodes 14 tokens more in 10 ms each.
    plan = plan_of(catalog, Layout(pipeline_parallel_size=6, data_parallel_size=2), (15_000, 15), max_num_seqs=7)
    replica = replica_on(plan, LinearSteps(prefill_token_s=0.001), traffic(15_000, 15))
    assert (replica.slots, replica.serving.streams) == (14, 12)

    assert replica.saturation_rate == pytest.approx(12 / 15.0, rel=0.02)
    assert Arrivals(0.75).has_room(replica)
    assert not Arrivals(0.85).has_room(replica)
    assert replica.seen(Arrivals(0.75)).queue_growth_per_s == 0
    assert replica.seen(Arrivals(0.85)).queue_growth_per_s > 0.02


def test_a_limit_below_a_single_prompt_lets_nobody_in(replica: Replica) -> None:
    impossible = Limits(ttft_s=0.5 * ALONE_S)

    assert replica.most(Users, impossible) == Bracket(load=0.0, fails_at=1, violates="ttft")
    assert replica.most(Arrivals, impossible).load == 0


def test_arrivals_that_break_ttft_without_a_cap_break_it_with_one(catalog: Snapshot, replica: Replica) -> None:
    limits = Limits(ttft_s=0.5)
    highest = replica.most(Arrivals, limits)
    capped = replica.capped(plan_of(catalog, max_num_seqs=64))  # the same plan: the cap itself breaks nothing

    assert capped.breaks(Arrivals(1.3 * highest.fails_at), limits, MEASURED) == "ttft"
    assert capped.most(Arrivals, limits).load == pytest.approx(highest.load, rel=0.05)
    assert capped.breaks(Arrivals(1.3 * highest.fails_at), Limits(tpot_s=5.0), MEASURED) is None


def test_a_cap_that_breaks_nothing_leaves_as_much_doubt_as_none(catalog: Snapshot, replica: Replica) -> None:
    limits = Limits(ttft_s=0.5)
    highest = replica.most(Arrivals, limits)
    capped = replica.capped(plan_of(catalog, max_num_seqs=64))

    for share in (0.9, 0.98, 1.0, 1.02, 1.1):
        arrivals = Arrivals(share * highest.load).rounded_up(replica)
        assert capped.is_doubtful(arrivals, limits) == replica.is_doubtful(arrivals, limits)


@pytest.mark.parametrize("percentile", [90.0, 95.0, 99.0])
@pytest.mark.parametrize("kind", [Users, Arrivals])
def test_what_is_carried_is_what_leaves_no_doubt(
    catalog: Snapshot, kind: type[Users | Arrivals], percentile: float
) -> None:
    plan = plan_of(catalog, max_num_seqs=64)
    carried = []
    for ttft_s, tpot_s in ((0.3, None), (None, 0.012), (0.3, 0.015)):
        limits = Limits(ttft_s=ttft_s, tpot_s=tpot_s, percentile=percentile)
        most = replica_on(plan).most(kind, limits).load
        for share in (0.5, 0.9, 0.97, 1.0, 1.02, 1.05, 1.1, 1.5):
            demand = kind.of(share * most).rounded_up(replica_on(plan))
            carried.append(replica_on(plan).carries(demand, limits))
            asked = replica_on(plan)
            assert carried[-1] is (asked.is_doubtful(demand, limits) is None and demand.has_room(asked))

    assert {True, False} == set(carried)


def test_what_is_carried_is_the_least_that_is_said_to_be(replica: Replica) -> None:
    limits = Limits(tpot_s=0.030)
    most = int(replica.most(Users, limits).load)

    assert replica.most_with(None, Users, limits).load == most
    assert replica.most_with(Users(most - 1), Users, limits).load == most
    assert replica.most_with(Users(2 * most), Users, limits).load == most
    assert replica.most_with(Arrivals(1e9), Users, limits).load == most


def test_equal_replicas_share_what_was_found_about_one(catalog: Snapshot) -> None:
    timers = HandTimers()
    first, second = (timed(plan_of(catalog, max_num_seqs=64), timers, LOAD) for _ in range(2))
    others = HandTimers(LinearSteps(step_s=0.1))
    others.simulations = timers.simulations
    slower = timed(plan_of(catalog, max_num_seqs=64), others, LOAD)

    assert first is not None
    assert second is not None
    assert slower is not None
    assert first.seen(Users(3)) is second.seen(Users(3))
    assert first.key == second.key != slower.key


def test_streams_side_by_side_carry_as_many_times_one(catalog: Snapshot) -> None:

    one = replica_on(plan_of(catalog, max_num_seqs=64))
    four = replica_on(plan_of(catalog, Layout(data_parallel_size=4), max_num_seqs=64))

    assert four.slots == 4 * one.slots
    assert four.seen(Users(40)).requests_per_s == pytest.approx(4 * one.seen(Users(10)).requests_per_s)


@pytest.mark.parametrize(("asked", "replicas"), [(4, 1), (5, 1), (7, 1), (5, 2), (19, 2)])
def test_users_that_do_not_divide_evenly_are_answered_by_full_streams_and_less_full_ones(
    catalog: Snapshot, asked: int, replicas: int
) -> None:
    one = replica_on(plan_of(catalog, max_num_seqs=64))
    four = replica_on(plan_of(catalog, Layout(pipeline_parallel_size=4), max_num_seqs=64))
    streams = [asked // (4 * replicas) + (place < asked % (4 * replicas)) for place in range(4 * replicas)]
    by_hand = sum(one.seen(Users(count)).requests_per_s for count in streams if count)
    told, more = (four.together(Users(users), replicas, MEASURED) for users in (asked, asked + 1))

    assert told.requests_per_s == pytest.approx(by_hand, rel=0.02)
    assert told.concurrent_requests == pytest.approx(asked, rel=0.02)
    assert more.requests_per_s > told.requests_per_s
