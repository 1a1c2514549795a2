"""A replica with endless room, asked with a small sample: it forgives, and tells what no room would help."""

from dataclasses import replace

import pytest

from service.engine.inputs import Limits
from service.engine.time.demand import Arrivals, Users
from service.engine.time.replica import Replica
from service.engine.time.roomy import capped, forgiving, may_be_paced, may_carry, share_of


@pytest.mark.parametrize("limits", [Limits(ttft_s=0.3), Limits(tpot_s=0.01), Limits(ttft_s=0.3, tpot_s=0.012)])
@pytest.mark.parametrize("kind", [Users, Arrivals])
def test_what_is_carried_may_be_and_four_times_as_much_may_not(
    replica: Replica, kind: type[Users | Arrivals], limits: Limits
) -> None:
    most = replica.most(kind, limits).load

    assert may_carry(replica, kind.of(most), limits, is_paced=False)
    assert not may_carry(replica, kind.of(4 * most), limits, is_paced=False)


def test_a_cap_is_hoped_for_where_it_helps_and_not_beyond(replica: Replica) -> None:
    limits = Limits(ttft_s=5.0, tpot_s=0.012)
    users = int(replica.most(Users, Limits(tpot_s=0.012)).load)
    paced = capped(replica, users)
    most = paced.most(Arrivals, limits).load

    assert paced.serving.settings.max_num_seqs == users < replica.serving.settings.max_num_seqs
    assert may_be_paced(replica, Arrivals(most), limits)
    assert not may_be_paced(replica, Arrivals(4 * most), limits)


def test_no_cap_helps_arrivals_that_wait_too_long_without_one(replica: Replica) -> None:
    waiting = Limits(ttft_s=0.3)
    rate = Arrivals(4 * replica.most(Arrivals, waiting).load)

    assert not may_carry(replica, rate, replace(waiting, tpot_s=10.0), is_paced=True)
    assert not may_be_paced(replica, rate, replace(waiting, tpot_s=10.0))


def test_a_small_sample_forgives_three_standard_errors() -> None:
    assert forgiving(Limits(ttft_s=1.0)).percentile == pytest.approx(95 - 300 * (0.95 * 0.05 / 256) ** 0.5)


def test_of_any_number_of_replicas_one_user_is_asked() -> None:
    assert share_of(Arrivals(12.0), 4.0) == Arrivals(3.0)
    assert share_of(Arrivals(12.0), float("inf")) == share_of(Users(9), 0.0) == Users(1)


@pytest.mark.parametrize("ttft_s", [None, 2.0])
@pytest.mark.parametrize("tpot_s", [0.009, 0.012, 0.02])
def test_what_a_capped_replica_carries_may_be_paced(replica: Replica, tpot_s: float, ttft_s: float | None) -> None:
    limits = Limits(ttft_s=ttft_s, tpot_s=tpot_s)
    users = int(replica.most(Users, Limits(tpot_s=tpot_s)).load)
    for share in (1.0, 0.8):
        paced = replace(capped(replica, max(int(share * users), 1)), uncapped=replica)
        most = paced.most(Arrivals, limits).load
        assert most == 0 or may_be_paced(replica, Arrivals(most), limits)


def test_no_cap_answers_more_than_those_who_keep_pace(replica: Replica) -> None:
    limits = Limits(tpot_s=0.012)
    users = int(replica.most(Users, limits).load)
    answered = replica.seen(Users(users)).requests_per_s

    assert may_be_paced(replica, Arrivals(answered), limits)
    assert not may_be_paced(replica, Arrivals(1.25 * answered), limits)
