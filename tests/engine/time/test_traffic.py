"""Requests as benchmarks, users and arrivals send them."""

from dataclasses import replace

import pytest

from service.engine.inputs import Load
from service.engine.time.lengths import FixedLength, LogNormalLength, UniformLength
from service.engine.time.traffic import Sender, traffic_of
from tests.engine.time.conftest import traffic

LOAD = Load(concurrent_requests=8, request_rate_per_s=None, input_tokens=1_000, output_tokens=200)


def test_lengths_spread_around_their_means_as_stated() -> None:
    assert traffic_of(LOAD).inputs == UniformLength(shortest_tokens=900, longest_tokens=1_100)
    assert traffic_of(replace(LOAD, length_distribution="fixed")).outputs == FixedLength(tokens=200)
    spread = traffic_of(replace(LOAD, length_distribution="lognormal", length_variation_fraction=1.0))
    assert spread.inputs == LogNormalLength(mean_tokens=1_000.0, variation=1.0)


def test_a_prefill_pool_makes_one_token_and_a_decode_pool_reads_none() -> None:
    assert traffic_of(replace(LOAD, phase="prefill")).outputs == FixedLength(tokens=1)
    decoded = Sender().requests(traffic_of(replace(LOAD, phase="decode")), 3)
    assert all(request.cached_tokens == request.input_tokens - 1 for request in decoded)


def test_fewer_requests_are_the_first_of_more() -> None:
    asked = traffic_of(LOAD)

    assert Sender().requests(asked, 50)[:20] == Sender().requests(asked, 20)


def test_a_benchmark_measures_every_request_and_a_steady_loop_only_those_in_the_middle() -> None:
    burst = Sender().burst_of_users(traffic(), 4, 40)
    steady = Sender().steady_users(traffic(), 4, 40, 4)

    assert (burst.first_measured, burst.last_measured) == (0, 40)
    assert (steady.first_measured, steady.last_measured, len(steady.requests)) == (4, 44, 48)
    assert all(request.cached_tokens == request.input_tokens - 1 for request in steady.requests[:4])


def test_twice_the_rate_is_the_same_arrivals_in_half_the_time() -> None:
    slow, fast = (Sender().open_loop(traffic(), rate, 5, 20, 3) for rate in (1.0, 2.0))

    assert slow.arrivals_s[:3] == fast.arrivals_s[:3] == (0.0, 0.0, 0.0)
    assert fast.arrivals_s[3:] == pytest.approx([at / 2 for at in slow.arrivals_s[3:]])
    assert slow.requests == fast.requests
