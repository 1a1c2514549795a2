"""Requests as benchmarks, users and arrivals send them."""

from dataclasses import replace

import numpy as np
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
    decoded = Sender().burst_of_users(traffic_of(replace(LOAD, phase="decode")), 1, 3).requests
    assert (decoded["cached_tokens"] == decoded["input_tokens"] - 1).all()


def test_fewer_requests_are_the_first_of_more() -> None:
    asked = traffic_of(LOAD)

    many, few = (Sender().burst_of_users(asked, 1, count).requests for count in (50, 20))
    assert (many[:20] == few).all()


def test_a_benchmark_measures_every_request_and_a_steady_loop_only_those_in_the_middle() -> None:
    burst = Sender().burst_of_users(traffic(), 4, 40)
    steady = Sender().steady_users(traffic(), 4, 40, 4)

    assert (burst.first_measured, burst.last_measured) == (0, 40)
    assert (steady.first_measured, steady.last_measured, len(steady.requests)) == (4, 44, 48)
    under_way = steady.requests[:4]
    assert (under_way["cached_tokens"] == under_way["input_tokens"] - 1).all()


def test_twice_the_rate_is_the_same_arrivals_in_half_the_time() -> None:
    slow, fast = (Sender().open_loop(traffic(), rate, 5, 20, 3) for rate in (1.0, 2.0))

    assert (slow.request_rate_per_s, fast.request_rate_per_s) == (1.0, 2.0)
    assert (slow.requests == fast.requests).all()
    assert (slow.requests["arrival"][:3] == 0).all()
    assert (np.diff(slow.requests["arrival"][3:]) > 0).all()


@pytest.mark.parametrize("burstiness", [0.25, 0.5])
@pytest.mark.parametrize("replicas", [1, 2, 4, 16])
def test_a_replica_s_share_of_bursts_varies_as_arrivals_that_a_router_deals_out_by_chance(
    burstiness: float, replicas: int
) -> None:
    # The referee is the router itself: each of 400,000 Gamma arrivals goes to one of the replicas by chance.
    random = np.random.Generator(np.random.PCG64(7))
    whole = np.cumsum(random.standard_gamma(burstiness, 400_000))
    gaps = np.diff(whole[random.integers(replicas, size=len(whole)) == 0])
    seen = gaps.var() / gaps.mean() ** 2

    load = replace(LOAD, concurrent_requests=None, request_rate_per_s=3.0, burstiness=burstiness)
    assert 1 / traffic_of(load).share(3.0 / replicas).burstiness == pytest.approx(seen, rel=0.04)


def test_a_share_is_drawn_as_bursty_as_it_is_and_a_pod_s_as_all_of_the_arrivals() -> None:
    load = replace(LOAD, concurrent_requests=None, request_rate_per_s=64.0, burstiness=0.25)
    variations = []
    for asked in (load, replace(load, is_spread=False)):
        gaps = np.diff(Sender().open_loop(traffic_of(asked), 1.0, 0, 20_000).requests["arrival"])
        variations.append(gaps.var() / gaps.mean() ** 2)

    assert variations == pytest.approx([1 + 3 / 64, 4], rel=0.1)


def test_more_even_arrivals_stay_as_even() -> None:
    load = replace(LOAD, concurrent_requests=None, request_rate_per_s=64.0, burstiness=4.0)

    assert traffic_of(load).share(1.0) == traffic_of(load)


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_a_benchmark_at_a_rate_sends_its_last_prompt_when_the_rate_says(burstiness: float) -> None:
    # `target_total_delay_s = total_requests / request_rate` of vLLM's `benchmarks/serve.py`; simulated at one a second
    load = replace(LOAD, concurrent_requests=None, request_rate_per_s=8.0, burstiness=burstiness)

    arrivals = Sender().burst(traffic_of(load), 8.0, 500).requests["arrival"]
    assert arrivals[-1] == pytest.approx(500)
    assert (np.diff(arrivals) > 0).all()


def test_hardly_bursty_arrivals_are_poisson_s_own_but_for_a_little() -> None:
    poisson, bursts = (
        replace(LOAD, concurrent_requests=None, request_rate_per_s=1.0, burstiness=b) for b in (1.0, 0.999)
    )
    first, second = (
        Sender().open_loop(traffic_of(load), 1.0, 0, 2_000).requests["arrival"] for load in (poisson, bursts)
    )

    assert np.abs(first - second).max() < 2
