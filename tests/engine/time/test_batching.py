"""How a plan batches: streams, slots and blocks."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.inputs import EngineName, Layout
from service.engine.time.batching import (
    BlockPool,
    Serving,
    block_pool,
    running_at_once,
    scheduler_settings,
    serving_of,
    with_tokens,
)
from service.engine.time.demand import Users
from service.engine.time.server import Server
from service.engine.time.simulations import Simulations
from tests.engine.time.conftest import SETTINGS, plan_of, timing, traffic


def test_a_request_of_the_plans_lengths_holds_as_many_blocks_as_its_tokens_fill(catalog: Snapshot) -> None:
    plan = plan_of(catalog)
    pool = block_pool(plan)

    # Full attention alone: 16 tokens a block, and one block that nobody may hold.
    assert pool.of_request(1_600) == pytest.approx(100)
    assert pool.of_request(100_000) == pytest.approx(6_250)
    assert pool.num_blocks <= plan.kv_cache.num_gpu_blocks - 1


@pytest.mark.parametrize(
    ("layout", "streams"),
    [(Layout(), 1), (Layout(tensor_parallel_size=2, pipeline_parallel_size=2), 2), (Layout(data_parallel_size=4), 4)],
    ids=str,
)
def test_ranks_of_data_and_stages_of_pipelines_are_streams(catalog: Snapshot, layout: Layout, streams: int) -> None:
    plan = plan_of(catalog, layout, max_num_seqs=64)
    serving = serving_of(plan, timing(), traffic())

    assert serving.streams == streams
    assert serving.slots == 64 * layout.data_parallel_size
    assert serving.slots_of_stream == serving.slots / streams
    assert serving.settings.max_num_seqs == 64 // layout.pipeline_parallel_size


def test_what_all_stages_hold_at_once_waits_for_nobody(catalog: Snapshot) -> None:
    """Eight requests fit a cache that five stages share, two of them in one stage: none waits for another's blocks."""
    serving = Serving(timing=timing(), traffic=traffic(), settings=SETTINGS, streams=5, slots=8, stages=5)
    whole = block_pool(plan_of(catalog)).of_request(1_101)
    pool = BlockPool(num_blocks=8 * whole / 5, tokens=(16.0, 1_048_576.0), blocks=(1.0, 65_536.0))
    server = Server(serving=serving, pool=pool, simulations=Simulations())

    alone, together = (server.seen(Users(users)).ttft_s.percentile(95.0) for users in (5, 8))

    assert together < 2 * alone
    # A prompt takes 0.11 s, and an answer ten times as long: behind it waits whom its stage has no blocks for.
    assert server.seen(Users(16)).ttft_s.percentile(95.0) > 1.0


@pytest.mark.parametrize(
    ("streams", "stages", "users", "share"),
    [(1, 1, 7, 1.0), (4, 1, 3, 1.0), (5, 5, 1, 5.0), (5, 5, 6, 5 / 3), (5, 5, 10, 1.0), (8, 2, 12, 4 / 3)],
)
def test_the_fullest_stage_holds_what_its_requests_do(streams: int, stages: int, users: int, share: float) -> None:
    serving = Serving(timing=timing(), traffic=traffic(), settings=SETTINGS, streams=streams, slots=64, stages=stages)

    assert serving.cache_share(users) == pytest.approx(share)


def test_equal_parts_serve_equally(catalog: Snapshot) -> None:
    one, other = (serving_of(plan_of(catalog), timing(), traffic()) for _ in range(2))

    assert one == other
    assert hash(one) == hash(other)


def test_drafts_are_scheduled_whether_accepted_or_not(catalog: Snapshot) -> None:
    plan = plan_of(catalog, num_speculative_tokens=3)
    settings = scheduler_settings(plan.settings, plan.layout, plan.rules, traffic())

    assert settings.tokens_scheduled == 4
    assert settings.tokens_per_step == 1.0  # none is accepted


# vLLM 0.33 `v1/core/sched/scheduler.py` (`schedule`): who answers takes k + 1 tokens of a step's budget, the last one
# what is left of it, and `while token_budget > 0` lets nobody join beside them. SGLang decodes in steps of their own.
@pytest.mark.parametrize(
    ("engine", "tokens", "drafted", "stages", "at_once"),
    [
        ("vllm", 512, 3, 1, 128),
        ("vllm", 512, 2, 1, 171),
        ("vllm", 512, 3, 2, 256),
        ("vllm", 8_192, 3, 1, 2_048),
        ("vllm", 512, 0, 1, 512),
        ("tensorrt-llm", 512, 3, 1, 128),
        ("sglang", 512, 3, 1, float("inf")),
    ],
)
def test_no_more_run_than_a_step_has_tokens_for_with_their_drafts(
    catalog: Snapshot, engine: EngineName, tokens: int, drafted: int, stages: int, at_once: float
) -> None:
    plan = plan_of(catalog, max_num_batched_tokens=tokens, num_speculative_tokens=drafted)
    layout = Layout(pipeline_parallel_size=stages)

    assert with_tokens(plan.settings, layout, rules_for(engine)) == at_once
    if engine == "vllm" and stages == 1:
        assert running_at_once(plan) == min(plan.requests_in_cache, plan.settings.max_num_seqs, at_once)
        assert serving_of(plan, timing(), traffic()).slots == running_at_once(plan)
