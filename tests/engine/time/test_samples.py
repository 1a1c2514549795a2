"""Percentiles and rates, by hand."""

import numpy as np
import pytest

from service.engine.inputs import Limits
from service.engine.time.records import REQUEST, RUN, STATE, Records, new_records
from service.engine.time.samples import Sample, ScheduleResult, gap_distribution, schedule_result, whole
from service.engine.time.shared import NOTHING_USED
from service.engine.time.simulation import Machine
from service.engine.time.traffic import Sender, SimulatedLoad
from tests.engine.time.conftest import BY_HAND, ROOMY, SETTINGS, timing, traffic


def test_a_percentile_is_a_value_that_was_measured() -> None:
    sample = Sample(np.arange(100.0, 0, -1))

    assert [sample.percentile(percent) for percent in (0, 50, 95, 100)] == [1, 51, 96, 100]
    assert sample.later(10).percentile(50) == 61
    assert Sample(np.array([])).mean == Sample(np.array([])).percentile(99) == 0


def test_long_steps_weigh_by_the_tokens_made_after_them() -> None:
    seen = gap_distribution(np.array([96.0, 3.0, 1.0]), np.array([0.96, 0.30, 1.0]))

    assert (seen.p50, seen.p95, seen.p99) == pytest.approx((0.01, 0.01, 0.10))
    assert seen.mean == pytest.approx((0.96 + 0.30 + 1.0) / 100)
    assert gap_distribution(np.zeros(3), np.zeros(3)).mean == 0


def served(arrivals: list[float], waits: list[float]) -> Records:
    runs = new_records(len(arrivals), RUN)
    runs["came_s"], runs["ttft_s"] = arrivals, waits
    runs["end_to_end_s"] = runs["ttft_s"] + 1.0
    runs["finished_s"] = runs["came_s"] + runs["end_to_end_s"]
    runs["output_tokens"], runs["tpot_s"] = 11, 0.1
    return runs


def result(runs: Records, **load: float | None) -> ScheduleResult:
    state = new_records(1, STATE)
    state["now_s"] = 1.0
    sent = SimulatedLoad(requests=new_records(len(runs), REQUEST), **{"concurrency": None, **load})  # type: ignore[arg-type]
    return schedule_result(sent, state[0], runs, 1.0, NOTHING_USED)


def test_a_queue_grows_by_answers_times_the_rise_of_the_wait() -> None:
    # One request a second; each waits half a second longer than the one before: two in three arrivals are answered.
    waits = [0.0, *(0.5 * second for second in range(40))]
    seen = result(served([0.0, *map(float, range(40))], waits), request_rate_per_s=1.0, first_measured=1)

    # 39 answers in 58.5 s, and the wait rises by 0.5 s a second.
    assert seen.queue_growth_per_s == pytest.approx(39 / 58.5 * 0.5)
    assert seen.requests_per_s == pytest.approx(1 - 39 / 58.5 * 0.5)


def test_far_beyond_what_is_answered_answers_are_counted() -> None:
    # Forty requests within half a second, one of them answered each second.
    arrivals = [0.0, *(second / 80 for second in range(40))]
    waits = [0.0, *(second - second / 80 for second in range(40))]
    seen = result(served(arrivals, waits), request_rate_per_s=80.0, first_measured=1)

    assert seen.requests_per_s == pytest.approx(1.0)
    assert seen.queue_growth_per_s == pytest.approx(79.0)


def test_where_not_one_more_waits_at_the_end_no_queue_grows() -> None:
    arrivals = [float(second) for second in range(40)]
    seen = result(
        served(arrivals, [0.1 + 1e-9 * second for second in range(40)]), request_rate_per_s=1.0, first_measured=1
    )

    assert seen.queue_growth_per_s == 0
    assert seen.requests_per_s == 1.0


def test_users_times_answers_over_time_in_the_system_is_the_rate() -> None:
    runs = served([0.0] * 8, [1.0] * 8)

    assert result(runs, concurrency=4, first_measured=4).requests_per_s == pytest.approx(4 / 2.0)
    assert result(runs, concurrency=4).requests_per_s == pytest.approx(8 / 2.0)


def test_a_schedule_tells_what_it_breaks_and_what_several_streams_do() -> None:
    seen = whole(
        Machine(timing(), ROOMY, SETTINGS).simulated(Sender().burst_of_users(traffic(), 1, 5))
    )  # 0.11 s, 0.01 s

    assert seen.violates(Limits(ttft_s=0.10, tpot_s=0.009)) == "ttft"
    assert seen.violates(Limits(ttft_s=0.12, tpot_s=0.009)) == "tpot"
    assert seen.violates(Limits(ttft_s=0.12, tpot_s=0.011)) is None
    assert seen.side_by_side(3).requests_per_s == pytest.approx(3 * seen.requests_per_s)
    assert seen.side_by_side(3).ttft_s == seen.ttft_s
    assert seen.waiting_longer(2.0).end_to_end_s.mean == pytest.approx(seen.end_to_end_s.mean + 2)
    assert seen.state(2).concurrent_requests == pytest.approx(2.0)  # one user each
    assert seen.latency(BY_HAND, 95.0).basis == "by hand"
