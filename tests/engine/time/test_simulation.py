"""The schedule against algebra that holds whatever the kernels take."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.errors import InvalidQuestionError
from service.engine.inputs import Limits
from service.engine.time.batching import BlockPool, SchedulerSettings
from service.engine.time.draws import Draws
from service.engine.time.lengths import EmpiricalLength, FixedLength, LogNormalLength, UniformLength
from service.engine.time.records import REQUEST, Records, new_records
from service.engine.time.samples import Sample, ScheduleResult, warm_up_length, whole
from service.engine.time.simulation import Machine
from service.engine.time.steps import Timing
from service.engine.time.traffic import Sender, SimulatedLoad, Traffic
from tests.engine.time.conftest import ROOMY, SETTINGS, timing, traffic

SENDER = Sender()


def simulated(
    load: SimulatedLoad, pool: BlockPool = ROOMY, settings: SchedulerSettings = SETTINGS, times: Timing | None = None
) -> ScheduleResult:
    return whole(Machine(times or timing(), pool, settings).simulated(load))


def test_one_user_waits_for_the_prompt_and_then_for_each_token() -> None:
    found = simulated(SENDER.burst_of_users(traffic(), 1, 5), ROOMY, SETTINGS)

    assert found.ttft_s.mean == pytest.approx(0.010 + 1_000 * 0.0001)
    assert found.tpot_s.mean == pytest.approx(0.010)
    assert found.end_to_end_s.mean == pytest.approx(0.110 + 100 * 0.010)
    assert found.requests_per_s == pytest.approx(1 / 1.110)


def test_a_long_prompt_is_read_in_chunks_of_the_budget() -> None:
    found = simulated(SENDER.burst_of_users(traffic(20_000), 1, 1), ROOMY, SETTINGS)

    assert found.ttft_s.mean == pytest.approx(3 * 0.010 + 20_000 * 0.0001)


def test_a_cached_prefix_is_not_read_again() -> None:
    half = SchedulerSettings(max_num_batched_tokens=8_192, max_num_seqs=8, prefix_cache_hit_fraction=0.5)

    found = simulated(SENDER.burst_of_users(traffic(), 1, 1), ROOMY, half)

    assert found.ttft_s.mean == pytest.approx(0.010 + 500 * 0.0001)


def test_overheads_outside_iterations_come_on_top() -> None:
    times = timing(http_s=0.012, tokenizer_s_per_token=0.000008)

    found = simulated(SENDER.burst_of_users(traffic(), 1, 3), ROOMY, SETTINGS, times)

    assert found.ttft_s.mean == pytest.approx(0.020 + 0.110)


def test_who_come_at_once_are_let_in_together_and_who_come_later_wait_for_nobody() -> None:
    """Two users of three requests each, 3 ms a request: both first ones wait 6 ms; one batch then reads both."""
    times = timing(let_in_s=0.003)

    found = simulated(SENDER.burst_of_users(traffic(), 2, 6), ROOMY, SETTINGS, times)

    assert found.ttft_s.values.tolist() == pytest.approx(2 * [0.006 + 0.210] + 4 * [0.210])


def test_users_of_other_streams_are_let_in_by_the_same_process() -> None:
    found = simulated(SENDER.burst_of_users(traffic(), 1, 2, others=3), ROOMY, SETTINGS, timing(let_in_s=0.003))

    assert found.ttft_s.values.tolist() == pytest.approx([4 * 0.003 + 0.110, 0.110])


def test_ranks_that_read_together_read_in_one_of_so_many_iterations() -> None:
    """The first prompt is read at once, in iteration 0; who comes while its answer is written is read in iteration 9."""
    together = SchedulerSettings(max_num_batched_tokens=8_192, max_num_seqs=64, read_every=9)
    requests = requests_of((1_000, 200, 0), (1_000, 2, 0))
    requests["arrival"] = (0.0, 0.125)

    found = simulated(SimulatedLoad(requests=requests, concurrency=None, request_rate_per_s=1.0), ROOMY, together)

    assert found.ttft_s.values.tolist() == pytest.approx([0.110, (0.110 + 8 * 0.010 + 0.110) - 0.125])


def test_users_beyond_the_slots_wait_by_littles_law() -> None:
    two = SchedulerSettings(max_num_batched_tokens=8_192, max_num_seqs=2)

    held = simulated(SENDER.steady_users(traffic(), 2, 200, 2), ROOMY, two)
    queued = simulated(SENDER.steady_users(traffic(), 6, 200, 2), ROOMY, two)

    assert queued.requests_per_s == pytest.approx(held.requests_per_s, rel=0.05)
    waited = queued.ttft_s.mean - held.ttft_s.mean
    assert waited == pytest.approx(4 / queued.requests_per_s, rel=0.1)


def test_requests_that_outgrow_the_cache_are_sent_back_and_still_answered() -> None:
    tight = BlockPool(num_blocks=80, tokens=(16.0, 1_048_576.0), blocks=(1.0, 65_536.0))

    found = simulated(SENDER.burst_of_users(traffic(500, 400), 4, 20), tight, SETTINGS)

    assert found.preemptions > 0
    assert len(found.end_to_end_s) == 20
    assert found.max_kv_fraction <= 1


def test_an_engine_that_reserves_the_output_never_sends_back() -> None:
    tight = BlockPool(num_blocks=80, tokens=(16.0, 1_048_576.0), blocks=(1.0, 65_536.0))
    reserving = SchedulerSettings(max_num_batched_tokens=8_192, max_num_seqs=64, reserves_output=True)

    found = simulated(SENDER.burst_of_users(traffic(500, 400), 4, 20), tight, reserving)

    assert found.preemptions == 0
    assert len(found.end_to_end_s) == 20


def test_nobody_decodes_while_an_engine_reads_prompts_alone() -> None:
    """Two prompts of 1,000 tokens, one in a batch: the first answer waits while the second prompt is read."""
    alone = SchedulerSettings(max_num_batched_tokens=1_000, max_num_seqs=64, reads_alone=True)

    found = simulated(SENDER.burst_of_users(traffic(1_000, 101), 2, 2), ROOMY, alone)

    assert found.ttft_s.values.tolist() == pytest.approx([0.110, 0.220])
    assert found.end_to_end_s.values.tolist() == pytest.approx([1.220, 1.220])
    assert found.gaps[0].values.sum() == pytest.approx(200)
    assert found.gaps[1].values.sum() == pytest.approx(2 * (1.0 + 0.110))  # for all who decode when it ends


def test_a_queue_grows_by_arrivals_less_answers() -> None:
    one = SchedulerSettings(max_num_batched_tokens=8_192, max_num_seqs=1)
    answered_per_s = 1 / 1.110

    found = simulated(SENDER.open_loop(traffic(), 3.0, 20, 300), ROOMY, one)

    assert found.queue_growth_per_s == pytest.approx(3.0 - answered_per_s, rel=0.15)


def test_a_slow_trickle_sees_an_idle_engine() -> None:
    found = simulated(SENDER.open_loop(traffic(), 0.01, 5, 50), ROOMY, SETTINGS)

    assert found.ttft_s.percentile(50) == pytest.approx(0.110)
    assert found.queue_growth_per_s == pytest.approx(0, abs=1e-3)


def test_bursts_wait_longer_than_a_steady_stream() -> None:
    def wait(burstiness: float) -> float:
        asked = Traffic(inputs=FixedLength(tokens=1_000), outputs=FixedLength(tokens=101), burstiness=burstiness)
        two = SchedulerSettings(max_num_batched_tokens=8_192, max_num_seqs=2)
        return simulated(SENDER.open_loop(asked, 1.2, 50, 400), ROOMY, two).ttft_s.mean

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
    inputs: FixedLength,
    outputs: FixedLength,
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

    found = simulated(SENDER.burst_of_users(asked, users, 2 * users), pool, options)

    assert len(found.ttft_s) == 2 * users
    assert found.ttft_s.values.min() >= 0.010
    assert all(later >= first for first, later in zip(found.ttft_s.values, found.end_to_end_s.values, strict=True))
    assert found.requests_per_s > 0


@settings(max_examples=60, deadline=None)
@given(lengths)
def test_drawn_lengths_have_the_asked_mean(length: FixedLength) -> None:
    lengths = length.drawn(Draws(), 1, 0, 4_000)

    assert lengths.mean() == pytest.approx(length.mean(), rel=0.15, abs=1)
    assert (length.drawn(Draws(), 1, 0, 100) == lengths[:100]).all()


def test_the_same_seed_is_the_same_answer() -> None:
    load = SENDER.open_loop(traffic(), 2.0, 10, 100)

    first, second = (simulated(load, ROOMY, SETTINGS) for _ in range(2))

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
    inputs: FixedLength,
    outputs: FixedLength,
    rate: float,
    ttft_s: float | None,
    tpot_s: float | None,
    percentile: float,
) -> None:
    load = SENDER.open_loop(Traffic(inputs=inputs, outputs=outputs), rate, 8, 64)
    few = SchedulerSettings(max_num_batched_tokens=2_048, max_num_seqs=8)
    limits = Limits(ttft_s=ttft_s, tpot_s=tpot_s, percentile=percentile)

    to_the_end = simulated(load, ROOMY, few)
    stopped = Machine(timing(), ROOMY, few).simulated(load, limits)

    if isinstance(stopped, ScheduleResult):
        assert to_the_end.violates(limits) is None
        assert stopped == to_the_end
    else:
        field = f"{stopped.verdict}_s"
        broken = Limits(percentile=percentile, **{field: getattr(limits, field)})
        assert to_the_end.violates(broken) == stopped.verdict


def requests_of(*lengths: tuple[int, int, int]) -> Records:
    requests = new_records(len(lengths), REQUEST)
    for place, (prompt, completion, cached) in enumerate(lengths):
        requests["input_tokens"][place], requests["output_tokens"][place] = prompt, completion
        requests["cached_tokens"][place] = cached
    return requests


def test_a_request_with_everything_cached_still_takes_one_step() -> None:
    found = simulated(SimulatedLoad(requests=requests_of((100, 1, 99)), concurrency=1))

    assert found.ttft_s.mean == pytest.approx(0.010 + 0.0001)


@pytest.mark.parametrize(
    ("prompt", "completion", "budget", "seqs"),
    [(100_000, 100, 1, 1), (100_000, 100, 8_192, 1_024), (1, 100_000_000, 8_192, 8), (10_000_000, 10_000_000, 2, 2)],
)
def test_long_requests_cost_no_more_steps_than_short_ones(prompt: int, completion: int, budget: int, seqs: int) -> None:
    tight = SchedulerSettings(max_num_batched_tokens=budget, max_num_seqs=seqs)
    machine = Machine(timing(), BlockPool(num_blocks=1e12, tokens=(16.0, 32.0), blocks=(1.0, 2.0)), tight)

    found = machine.simulated(SENDER.burst_of_users(traffic(prompt, completion), 1, 16))

    assert isinstance(found, ScheduleResult)
    chunks = -(-prompt // budget)
    assert found.ttft_s.values.min() == pytest.approx(chunks * 0.010 + prompt * 0.0001, rel=1e-6)
    assert machine.iterations <= 16 * 400


def test_a_load_of_too_many_requests_is_refused_by_name() -> None:
    with pytest.raises(InvalidQuestionError) as refusal:
        simulated(SENDER.burst_of_users(traffic(), 200_000, 200_000))

    assert refusal.value.field == "max_num_batched_tokens"
    assert "too much work" in refusal.value.detail


def test_a_standard_error_is_that_of_many_samples() -> None:
    random = np.random.Generator(np.random.PCG64(1))
    samples = [Sample(random.standard_exponential(2_000)) for _ in range(400)]
    percentiles = np.array([each.percentile(95.0) for each in samples])
    stated = np.array([each.standard_error(95.0) for each in samples])

    assert stated.mean() == pytest.approx(percentiles.std(), rel=0.25)


def test_neighbours_that_wait_alike_widen_the_standard_error() -> None:
    random = np.random.Generator(np.random.PCG64(1))
    independent = random.standard_exponential(2_000)
    in_stretches = np.repeat(random.standard_exponential(20), 100)

    assert Sample(in_stretches).standard_error(50.0) > 3 * Sample(independent).standard_error(50.0)


def test_a_warm_up_is_found_where_it_ends() -> None:
    random = np.random.Generator(np.random.PCG64(1))
    steady = random.standard_normal(1_500) + 10
    rising = np.linspace(0, 10, 500) + random.standard_normal(500)

    assert 350 <= warm_up_length(np.concatenate((rising, steady))) <= 550
    assert warm_up_length(steady) <= 150
    assert warm_up_length(steady[:10]) == 0


@pytest.mark.parametrize("rate", [1.0, 2.0, 5.0])  # of 7 per second that are carried
@pytest.mark.parametrize("percent", [50.0, 95.0])
def test_seeds_differ_by_the_stated_error(rate: float, percent: float) -> None:
    few = SchedulerSettings(max_num_batched_tokens=8_192, max_num_seqs=16)

    def seen(seed: int) -> Sample:
        drawn = UniformLength(shortest_tokens=500, longest_tokens=1_500)
        asked = Traffic(inputs=drawn, outputs=UniformLength(shortest_tokens=50, longest_tokens=150), seed=seed)
        return simulated(SENDER.open_loop(asked, rate, 250, 2_000), settings=few).ttft_s

    samples = [seen(seed) for seed in range(1, 17)]
    percentiles = np.array([each.percentile(percent) for each in samples])
    stated = np.array([each.standard_error(percent) for each in samples])

    assert 0.6 <= percentiles.std(ddof=1) / stated.mean() <= 1.6
