"""The schedule against algebra that holds whatever the kernels take."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.inputs import Limits
from service.engine.time.batching import BlockPool, SchedulerSettings
from service.engine.time.lengths import EmpiricalLength, FixedLength, Length, LogNormalLength, UniformLength
from service.engine.time.scheduler import simulate, simulate_within
from service.engine.time.traffic import Request, Sender, SimulatedLoad, Traffic
from tests.engine.time.conftest import ROOMY, SETTINGS, timing, traffic


def test_one_user_waits_for_the_prompt_and_then_for_each_token() -> None:
    seen = simulate(timing(), Sender().burst_of_users(traffic(), 1, 5), pool=ROOMY, settings=SETTINGS)

    assert seen.ttft_s.mean == pytest.approx(0.010 + 1_000 * 0.0001)
    assert seen.tpot_s.mean == pytest.approx(0.010)
    assert seen.end_to_end_s.mean == pytest.approx(0.110 + 100 * 0.010)
    assert seen.requests_per_s == pytest.approx(1 / 1.110)


def test_a_long_prompt_is_read_in_chunks_of_the_budget() -> None:
    seen = simulate(timing(), Sender().burst_of_users(traffic(20_000), 1, 1), pool=ROOMY, settings=SETTINGS)

    assert seen.ttft_s.mean == pytest.approx(3 * 0.010 + 20_000 * 0.0001)


def test_a_cached_prefix_is_not_read_again() -> None:
    half = SchedulerSettings(max_num_batched_tokens=8_192, max_num_seqs=8, prefix_cache_hit_fraction=0.5)

    seen = simulate(timing(), Sender().burst_of_users(traffic(), 1, 1), pool=ROOMY, settings=half)

    assert seen.ttft_s.mean == pytest.approx(0.010 + 500 * 0.0001)


def test_overheads_outside_iterations_come_on_top() -> None:
    slow = timing(http_s=0.012, tokenizer_s_per_token=0.000008)

    seen = simulate(slow, Sender().burst_of_users(traffic(), 1, 3), pool=ROOMY, settings=SETTINGS)

    assert seen.ttft_s.mean == pytest.approx(0.020 + 0.110)


def test_users_beyond_the_slots_wait_by_littles_law() -> None:
    two = SchedulerSettings(max_num_batched_tokens=8_192, max_num_seqs=2)

    held = simulate(timing(), Sender().steady_users(traffic(), 2, 200, 2), pool=ROOMY, settings=two)
    queued = simulate(timing(), Sender().steady_users(traffic(), 6, 200, 2), pool=ROOMY, settings=two)

    assert queued.requests_per_s == pytest.approx(held.requests_per_s, rel=0.05)
    waited = queued.ttft_s.mean - held.ttft_s.mean
    assert waited == pytest.approx(4 / queued.requests_per_s, rel=0.1)


def test_requests_that_outgrow_the_cache_are_sent_back_and_still_answered() -> None:
    tight = BlockPool(num_blocks=80, tokens=(16.0, 1_048_576.0), blocks=(1.0, 65_536.0))

    seen = simulate(timing(), Sender().burst_of_users(traffic(500, 400), 4, 20), pool=tight, settings=SETTINGS)

    assert seen.preemptions > 0
    assert len(seen.end_to_end_s.ordered) == 20
    assert seen.max_kv_fraction <= 1


def test_an_engine_that_reserves_the_output_never_sends_back() -> None:
    tight = BlockPool(num_blocks=80, tokens=(16.0, 1_048_576.0), blocks=(1.0, 65_536.0))
    reserving = SchedulerSettings(max_num_batched_tokens=8_192, max_num_seqs=64, reserves_output=True)

    seen = simulate(timing(), Sender().burst_of_users(traffic(500, 400), 4, 20), pool=tight, settings=reserving)

    assert seen.preemptions == 0
    assert len(seen.end_to_end_s.ordered) == 20


def test_a_queue_grows_by_arrivals_less_answers() -> None:
    one = SchedulerSettings(max_num_batched_tokens=8_192, max_num_seqs=1)
    answered_per_s = 1 / 1.110

    seen = simulate(timing(), Sender().open_loop(traffic(), 3.0, 20, 300), pool=ROOMY, settings=one)

    assert seen.queue_growth_per_s == pytest.approx(3.0 - answered_per_s, rel=0.15)


def test_a_slow_trickle_sees_an_idle_engine() -> None:
    seen = simulate(timing(), Sender().open_loop(traffic(), 0.01, 5, 50), pool=ROOMY, settings=SETTINGS)

    assert seen.ttft_s.percentile(50) == pytest.approx(0.110)
    assert seen.queue_growth_per_s == pytest.approx(0, abs=1e-3)


def test_bursts_wait_longer_than_a_steady_stream() -> None:
    def wait(burstiness: float) -> float:
        asked = Traffic(inputs=FixedLength(tokens=1_000), outputs=FixedLength(tokens=101), burstiness=burstiness)
        two = SchedulerSettings(max_num_batched_tokens=8_192, max_num_seqs=2)
        return simulate(timing(), Sender().open_loop(asked, 1.2, 50, 400), pool=ROOMY, settings=two).ttft_s.mean

    assert wait(0.2) > wait(1.0) > wait(1e9)


lengths = st.one_of(
    st.builds(FixedLength, tokens=st.integers(1, 5_000)),
    st.builds(UniformLength, shortest_tokens=st.integers(1, 500), longest_tokens=st.integers(500, 5_000)),
    st.builds(LogNormalLength, mean_tokens=st.floats(10, 3_000), variation=st.floats(0, 1.5)),
    st.builds(EmpiricalLength, tokens=st.lists(st.integers(1, 5_000), min_size=1, max_size=20).map(tuple)),
)


@settings(max_examples=60, deadline=None)
@given(lengths, lengths, st.integers(1, 64), st.floats(0, 0.9), st.integers(200, 100_000), st.booleans())
def test_every_request_is_answered_and_time_runs_forward(
    inputs: Length,
    outputs: Length,
    users: int,
    hit: float,
    blocks: int,
    reserves: bool,  # noqa: FBT001 - drawn
) -> None:
    asked = Traffic(inputs=inputs, outputs=outputs)
    pool = BlockPool(num_blocks=blocks, tokens=(16.0, 1_048_576.0), blocks=(1.0, 65_536.0))
    options = SchedulerSettings(
        max_num_batched_tokens=2_048, max_num_seqs=32, prefix_cache_hit_fraction=hit, reserves_output=reserves
    )

    seen = simulate(timing(), Sender().burst_of_users(asked, users, 2 * users), pool=pool, settings=options)

    assert len(seen.ttft_s.ordered) == 2 * users
    assert seen.ttft_s.ordered[0] >= 0.010
    assert all(later >= first for first, later in zip(seen.ttft_s.ordered, seen.end_to_end_s.ordered, strict=True))
    assert seen.requests_per_s > 0


def test_the_same_seed_is_the_same_answer() -> None:
    load = Sender().open_loop(traffic(), 2.0, 10, 100)

    first, second = (simulate(timing(), load, pool=ROOMY, settings=SETTINGS) for _ in range(2))

    assert first == second


@settings(max_examples=100, deadline=None)
@given(
    lengths,
    lengths,
    st.floats(0.05, 20),
    st.sampled_from([None, 0.02, 0.1, 0.5, 2.0]),
    st.sampled_from([None, 0.0101, 0.012, 0.02, 0.1]),
    st.sampled_from([50.0, 90.0, 95.0, 99.0]),
)
def test_a_simulation_that_stops_at_a_broken_limit_judges_as_a_whole_one(
    inputs: Length,
    outputs: Length,
    rate: float,
    ttft_s: float | None,
    tpot_s: float | None,
    percentile: float,
) -> None:
    load = Sender().open_loop(Traffic(inputs=inputs, outputs=outputs), rate, 8, 64)
    few = SchedulerSettings(max_num_batched_tokens=2_048, max_num_seqs=8)
    limits = Limits(ttft_s=ttft_s, tpot_s=tpot_s, percentile=percentile)

    whole = simulate(timing(), load, pool=ROOMY, settings=few)
    stopped = simulate_within(timing(), load, pool=ROOMY, settings=few, limits=limits)

    if whole.violates(limits) is None:
        assert stopped == whole
    else:
        broken = Limits(percentile=percentile, **{f"{stopped}_s": getattr(limits, f"{stopped}_s")})
        assert whole.violates(broken) == stopped


def test_a_request_with_everything_cached_still_takes_one_step() -> None:
    load = SimulatedLoad(requests=(Request(input_tokens=100, output_tokens=1, cached_tokens=99),), concurrency=1)

    seen = simulate(timing(), load, pool=ROOMY, settings=SETTINGS)

    assert seen.ttft_s.mean == pytest.approx(0.010 + 0.0001)
