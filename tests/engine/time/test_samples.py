"""Percentiles and rates, by hand."""

from dataclasses import replace

import pytest

from service.engine.inputs import Limits
from service.engine.time.samples import Measurements, sample_of, weighted_distribution
from service.engine.time.scheduler import simulate
from service.engine.time.traffic import Sender, SimulatedLoad
from tests.engine.time.conftest import BY_HAND, ROOMY, SETTINGS, timing, traffic


def test_a_percentile_is_a_value_that_was_measured() -> None:
    sample = sample_of([float(value) for value in range(100, 0, -1)])

    assert (sample.percentile(0), sample.percentile(50), sample.percentile(95), sample.percentile(100)) == (
        1,
        51,
        96,
        100,
    )
    assert sample.later(10).percentile(50) == 61
    assert sample_of([]).mean == sample_of([]).percentile(99) == 0


def test_long_steps_weigh_by_the_tokens_made_after_them() -> None:
    seen = weighted_distribution([(0.01, 96.0), (0.10, 3.0), (1.0, 1.0)])

    assert (seen.p50, seen.p95, seen.p99) == (0.01, 0.01, 0.10)
    assert seen.mean == pytest.approx((0.96 + 0.30 + 1.0) / 100)
    assert weighted_distribution([]).mean == 0


def measured(arrivals: list[float], waits: list[float]) -> Measurements:
    seen = Measurements()
    for arrival_s, wait_s in zip(arrivals, waits, strict=True):
        seen.answered(arrival_s, arrival_s + wait_s, arrival_s + wait_s + 1.0, 11)
    return seen


def test_a_queue_grows_by_answers_times_the_rise_of_the_wait() -> None:
    # One request a second; each waits half a second longer than the one before: two in three arrivals are answered.
    seen = measured([float(second) for second in range(40)], [0.5 * second for second in range(40)])

    # 39 answers in 58.5 s, and the wait rises by 0.5 s a second.
    assert seen.queue_growth_per_s() == pytest.approx(39 / 58.5 * 0.5)
    open_loop = SimulatedLoad(requests=(), concurrency=None, request_rate_per_s=1.0)
    assert seen.requests_per_s(open_loop) == pytest.approx(1 - 39 / 58.5 * 0.5)


def test_users_times_answers_over_time_in_the_system_is_the_rate() -> None:
    seen = measured([0.0] * 8, [1.0] * 8)
    steady = SimulatedLoad(requests=(), concurrency=4, first_measured=4)

    assert seen.requests_per_s(steady) == pytest.approx(4 / 2.0)
    assert seen.requests_per_s(replace(steady, first_measured=0)) == pytest.approx(8 / 2.0)


def test_a_schedule_tells_what_it_breaks_and_what_several_streams_do() -> None:
    seen = simulate(timing(), Sender().burst_of_users(traffic(), 1, 5), pool=ROOMY, settings=SETTINGS)  # 0.11 s, 0.01 s

    assert seen.violates(Limits(ttft_s=0.10, tpot_s=0.009)) == "ttft"
    assert seen.violates(Limits(ttft_s=0.12, tpot_s=0.009)) == "tpot"
    assert seen.violates(Limits(ttft_s=0.12, tpot_s=0.011)) is None
    assert seen.side_by_side(3).requests_per_s == pytest.approx(3 * seen.requests_per_s)
    assert seen.side_by_side(3).ttft_s == seen.ttft_s
    assert seen.waiting_longer(2.0).end_to_end_s.mean == pytest.approx(seen.end_to_end_s.mean + 2)
    assert seen.state(2).concurrent_requests == pytest.approx(2.0)  # one user each
    assert seen.latency(BY_HAND).basis == "by hand"
