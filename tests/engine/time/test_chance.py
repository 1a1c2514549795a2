"""How many requests tell of a percentile: what chance leaves certain, by the binomial distribution itself."""

import pytest
from scipy.stats import binom

from service.engine.inputs import Limits
from service.engine.time.chance import MEASURED, MOST_MEASURED, measured_for, surely_broken, surely_kept
from service.engine.time.demand import Arrivals
from service.engine.time.replica import Replica

CERTAIN = 0.03  # two errors to one side


@pytest.mark.parametrize("percentile", [50.0, 90.0, 95.0])
@pytest.mark.parametrize("measured", [MEASURED, MOST_MEASURED])
def test_what_breaks_a_limit_hardly_keeps_the_stricter_one_by_chance(percentile: float, measured: int) -> None:
    limits, late = Limits(ttft_s=1.0, percentile=percentile), 1 - percentile / 100
    kept, broken = surely_kept(limits, measured).percentile, surely_broken(limits, measured).percentile

    assert broken < percentile < kept
    assert binom.cdf(measured * (1 - kept / 100), measured, late) < CERTAIN
    assert binom.sf(measured * (1 - broken / 100), measured, late) < CERTAIN


def test_the_tail_takes_more_requests_and_no_percentile_leaves_the_range() -> None:
    assert measured_for(Limits(ttft_s=1.0, percentile=95)) == MEASURED
    assert measured_for(Limits(ttft_s=1.0, percentile=99)) == MOST_MEASURED
    assert surely_kept(Limits(ttft_s=1.0, percentile=99.99), 100).percentile <= 100.0
    assert surely_broken(Limits(ttft_s=1.0, percentile=0.01), 100).percentile >= 0.0


def test_more_are_measured_where_few_tell_by_chance_alone(replica: Replica) -> None:
    rate = Arrivals(0.8 * replica.saturation_rate)  # no two wait alike
    at_limit_s = replica.seen(rate).ttft_s.percentile(95.0)

    assert replica.measured_for(rate, Limits(ttft_s=at_limit_s)) == MOST_MEASURED
    assert replica.measured_for(rate, Limits(ttft_s=4 * at_limit_s)) == MEASURED
    assert replica.measured_for(rate, Limits(ttft_s=at_limit_s / 4)) == MEASURED
    assert replica.measured_for(rate, Limits()) == MEASURED
