"""How a plan batches: streams, slots and blocks."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.inputs import Layout
from service.engine.time.batching import block_pool, scheduler_settings, serving_of
from tests.engine.time.conftest import plan_of, timing, traffic


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


def test_equal_parts_serve_equally(catalog: Snapshot) -> None:
    one, other = (serving_of(plan_of(catalog), timing(), traffic()) for _ in range(2))

    assert one == other
    assert hash(one) == hash(other)


def test_drafts_are_scheduled_whether_accepted_or_not(catalog: Snapshot) -> None:
    plan = plan_of(catalog, num_speculative_tokens=3)
    settings = scheduler_settings(plan.settings, plan.layout, plan.rules, traffic())

    assert settings.tokens_scheduled == 4
    assert settings.tokens_per_step == 1.0  # none is accepted
