"""Pace without simulation, by hand."""

from dataclasses import replace

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.inputs import Limits
from service.engine.time.batching import Serving, serving_of
from service.engine.time.estimate import hoped_users, in_flight, pace_s, throughput
from tests.engine.time.conftest import LinearSteps, plan_of, timing, traffic


@pytest.fixture
def serving(catalog: Snapshot) -> Serving:
    steps = LinearSteps(step_s=0.010, prefill_token_s=0.00001, decode_request_s=0.0)
    return serving_of(plan_of(catalog, max_num_seqs=64), timing(steps), traffic(1_000, 100))


def test_pace_is_a_step_and_a_share_of_the_prompts_that_take_places(serving: Serving) -> None:
    # Six users: while one makes 100 tokens, the others' prompts are read, three at once: 10 + 30 ms for 3,000 tokens.
    assert pace_s(serving, 6) == pytest.approx(0.010 + 5 / 100 * 0.040 / 3)


def test_pace_is_that_of_the_fullest_stream(serving: Serving) -> None:
    several = replace(serving, streams=16)

    assert pace_s(several, 17) == pace_s(several, 32) == pytest.approx(pace_s(serving, 2))
    assert pace_s(several, 16) == pytest.approx(pace_s(serving, 1))


def test_throughput_and_requests_in_flight_agree_by_littles_law(serving: Serving) -> None:
    rate = throughput(serving, 20)

    assert rate == pytest.approx(20 / (100 * pace_s(serving, 20)))
    assert in_flight(serving, rate) == pytest.approx(20, abs=1)


def test_hope_ends_where_a_faster_replica_would_break_a_limit(serving: Serving) -> None:
    users = hoped_users(serving, Limits(tpot_s=0.015), 1.0)

    assert pace_s(serving, users) <= 0.015 < pace_s(serving, users + 1)
    assert hoped_users(serving, Limits(), 1.0) == 64
    assert hoped_users(serving, Limits(ttft_s=0.005), 1.0) == 0  # one prompt alone takes 20 ms
    assert hoped_users(serving, Limits(ttft_s=0.005), 5.0) == 64
