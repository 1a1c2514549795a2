"""Ranks of several nodes: the referees are NCCL's own tests and model, and published deployments over two nodes."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import StatedSettings, deployed, plan_replica
from service.engine.inputs import Gpu, Layout
from service.engine.time.steps import Timing
from service.performance.nodes import between_nodes, collectives_s, crosses_nodes
from tests.conftest import shared_timers

WIDE = Layout(data_parallel_size=16, expert_parallel=True)
NARROW = Layout(data_parallel_size=8, expert_parallel=True)


@pytest.fixture
def h200(catalog: Snapshot) -> Gpu:
    return catalog.gpu("h200")


def timing_of(catalog: Snapshot, gpu: Gpu, layout: Layout) -> Timing:
    model, rules = catalog.model("deepseek-v3"), rules_for("vllm")
    found = shared_timers().timer(deployed(plan_replica(model, gpu, layout, StatedSettings(), rules)))
    assert found is not None
    return found


def test_a_ring_passes_through_every_card_of_a_node(h200: Gpu) -> None:
    # github.com/NVIDIA/nccl-tests/issues/283: 350 GB/s among H200 with eight cards of 50 GB/s a node.
    reached = between_nodes(h200, h200.scale_up_bytes_per_s)

    assert reached == 8 * 50e9
    assert reached > 350e9 > h200.scale_out_bytes_per_s


@pytest.mark.parametrize("layout", [Layout(tensor_parallel_size=8), NARROW, WIDE, Layout(tensor_parallel_size=16)])
def test_ranks_beyond_a_node_wait_for_the_network(h200: Gpu, layout: Layout) -> None:
    ranks = layout.tensor_parallel_size * layout.data_parallel_size
    waited = collectives_s(h200, layout, layers=61, exchanges=58)

    assert crosses_nodes(h200, ranks) is (ranks == 16)
    assert (waited > 0) is (ranks == 16)


def test_a_rack_is_one_node(catalog: Snapshot) -> None:
    rack = catalog.gpu("gb200")

    assert not crosses_nodes(rack, 16)
    assert collectives_s(rack, Layout(tensor_parallel_size=16), layers=61, exchanges=58) == 0.0


def test_a_tree_of_two_nodes_takes_what_nccl_expects(h200: Gpu) -> None:
    # NCCL `src/graph/tuning.cc`: 6.8 + 2 x (7 x 0.6 + 5.0) us among 16 ranks in two nodes; two in each layer.
    waited = collectives_s(h200, Layout(tensor_parallel_size=16), layers=61, exchanges=58)

    assert waited == pytest.approx(2 * 61 * 25.2e-6)


def test_deepseek_over_two_nodes_decodes_as_fast_as_was_published(catalog: Snapshot, h200: Gpu) -> None:
    # blog.vllm.ai, 2025-12-17: 2,200 tokens a second and H200 over several nodes joined by InfiniBand, 1,500 before
    # batches of two halves hid each other's exchanges; some 256 requests a GPU.
    requests, context = 256, 2_000
    step_s = timing_of(catalog, h200, WIDE).steps.decode_s(requests, context)

    assert 1_300 < requests / step_s < 2_200


def test_more_nodes_are_never_faster_a_step_for_one_request(catalog: Snapshot, h200: Gpu) -> None:
    one, two = (timing_of(catalog, h200, layout).steps.decode_s(1, 1_000) for layout in (NARROW, WIDE))

    assert two > one
    assert two < 1.5 * one  # 24.6 us more for each of 2 x 58 exchanges, of some 21 ms
