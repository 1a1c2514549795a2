"""A benchmark on one stream: streams side by side, and every request served."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import (
    Layout,
    MemoryPlan,
    Sender,
    StatedSettings,
    Traffic,
    benchmarked,
    deployed,
    plan_replica,
    streams_of,
)
from service.engine.time.lengths import FixedLength
from service.performance.timers import KernelTimers

TRAFFIC = Traffic(inputs=FixedLength(tokens=1_000), outputs=FixedLength(tokens=101))


def plan_on(layout: Layout, catalog: Snapshot) -> MemoryPlan:
    model, gpu = catalog.model("llama-3.1-8b"), catalog.gpu("h100")
    return plan_replica(model, gpu, layout, StatedSettings(), rules_for("vllm"), input_tokens=1_000, output_tokens=101)


def test_data_and_pipeline_ranks_serve_streams_side_by_side(catalog: Snapshot) -> None:
    layout = Layout(tensor_parallel_size=2, pipeline_parallel_size=2, data_parallel_size=3)

    assert streams_of(plan_on(layout, catalog)) == 6


def test_one_user_waits_for_each_request_in_turn(catalog: Snapshot) -> None:
    plan = plan_on(Layout(), catalog)
    timing = KernelTimers().quick(deployed(plan))
    assert timing is not None

    seen = benchmarked(plan, timing, TRAFFIC, Sender().burst_of_users(TRAFFIC, 1, 10))

    assert len(seen.end_to_end_s) == 10
    # 101 tokens: the first, and a hundred gaps.
    assert seen.end_to_end_s.mean == pytest.approx(seen.ttft_s.mean + 100 * seen.tpot_s.mean)
    assert seen.requests_per_s == pytest.approx(1 / seen.end_to_end_s.mean, rel=0.01)
    assert seen.output_tokens_per_s == pytest.approx(101 * seen.requests_per_s)


def test_who_evicts_lets_more_join_than_who_reserves_whole_answers(catalog: Snapshot) -> None:
    """TensorRT-LLM's GUARANTEED_NO_EVICT holds the blocks of every answer from its start; MAX_UTILIZATION does not.

    Answers that are halfway on average need half as much: 4,000 of 100 + 4,000 tokens hold 2,100 each.
    """
    model, gpu = catalog.model("llama-3.1-8b"), catalog.gpu("l40s")
    long_answers = Traffic(inputs=FixedLength(tokens=100), outputs=FixedLength(tokens=4_000))
    plan = plan_replica(
        model, gpu, Layout(), StatedSettings(), rules_for("tensorrt-llm"), input_tokens=100, output_tokens=4_000
    )
    timing = KernelTimers().quick(deployed(plan))
    assert timing is not None
    users = 2 * plan.requests_in_cache
    load = Sender().steady_users(long_answers, users, 2 * users, plan.requests_in_cache)

    reserves = benchmarked(plan, timing, long_answers, load)
    evicts = benchmarked(plan, timing, long_answers, load, evicts=True)

    assert evicts.ttft_s.mean < reserves.ttft_s.mean
    assert evicts.output_tokens_per_s > reserves.output_tokens_per_s
