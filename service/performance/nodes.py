"""Ranks of several nodes: how fast and how soon their collectives go.

A ring of all ranks enters and leaves each node once for every network card, so that messages pass at the rate of all
cards of a node together, and never faster than within one. A message of no size still takes NCCL's own latency.

    rate      = min(fabric, GPUs of a node x network rate of a GPU)                                        [bytes / s]
    gathered  = 6.6 + 1.0 x (n - nodes) + 2.7 x (nodes - 1), within a node 6.6 + 0.6 x (n - 1)             [us]
    reduced   = 6.8 + 2 x (0.6 x (n / nodes - 1) + 5.0 x log2(nodes))                                      [us]

What is measured or fitted within one node stays beside these latencies: they are what the network adds at most.

Sources:
    NCCL 2.28 `src/graph/tuning.cc`: latencies of the LL protocol, of rings (all-gather, reduce-scatter) and of trees
    (all-reduce), over NVLink and over the network, beside Intel's processors.
    github.com/NVIDIA/nccl-tests issues 252 (four cards of 200 Gb/s a node: 95 GB/s) and 290 (46 to 48 GB/s of each
    card of 400 Gb/s); issue 283 (1,984 H200 with eight such cards a node: 350 GB/s).
"""

from dataclasses import replace
from math import ceil, log2
from typing import Final

from service.engine.inputs import Gpu, Layout
from service.engine.layers import Architecture
from service.performance.tables import StepTables

MICROSECOND: Final = 1e-6
ALL_REDUCES_PER_LAYER: Final = 2  # after attention and after the feed-forward part
EXCHANGES_PER_LAYER: Final = 2  # tokens are gathered before experts, and scattered after them
# Microseconds, of NCCL's low-latency protocol.
GATHERED_BASE: Final = 6.6
RING_STEP: Final = 1.0
RING_LINK: Final = 0.6
RING_NETWORK: Final = 2.7
REDUCED_BASE: Final = 6.8
TREE_STEP: Final = 0.6
TREE_NETWORK: Final = 5.0


def ranks_of_stage(layout: Layout) -> int:
    """Return the ranks that exchange messages within each layer."""
    return layout.tensor_parallel_size * layout.data_parallel_size


def crosses_nodes(gpu: Gpu, ranks: int) -> bool:
    """Return whether so many ranks lie in more than one node, and beyond what a fabric joins."""
    return ranks > gpu.joined_gpus


def between_nodes(gpu: Gpu, within_bytes_per_s: float) -> float:
    """Return the rate of collectives between nodes. [bytes / s].

    nccl-tests issue 252: four cards of 25 GB/s a node, 95 GB/s reached:

    >>> gpu = Gpu(
    ...     id="a100", name="NVIDIA A100", vendor="nvidia", architecture="ampere", compute_capability="8.0",
    ...     memory_bytes=80 * 2**30, memory_bandwidth_bytes_per_s=2e12, peak_flop_per_s={"bf16": 3.12e14},
    ...     gpus_per_node=4, scale_up_domain_gpus=4, scale_up_bytes_per_s=3e11, scale_out_bytes_per_s=2.5e10)
    >>> between_nodes(gpu, gpu.scale_up_bytes_per_s) / 1e9
    100.0
    """
    return min(within_bytes_per_s, gpu.gpus_per_node * gpu.scale_out_bytes_per_s)


def network_s(architecture: Architecture, gpu: Gpu, layout: Layout) -> float:
    """Return what the latency of the network adds to a step; nothing where a stage is within one node. [s]."""
    return collectives_s(gpu, layout, layers=len(architecture.layers), exchanges=architecture.num_expert_layers)


def collectives_s(gpu: Gpu, layout: Layout, *, layers: int, exchanges: int) -> float:
    """Return the same of so many layers, of which some exchange tokens between copies of the attention. [s]."""
    tensor, ranks, node = layout.tensor_parallel_size, ranks_of_stage(layout), gpu.joined_gpus
    reduced = layers * ALL_REDUCES_PER_LAYER * _reduced_s(tensor, node) if crosses_nodes(gpu, tensor) else 0.0
    is_exchanged = layout.data_parallel_size > 1 and crosses_nodes(gpu, ranks)
    gathered = exchanges * EXCHANGES_PER_LAYER * _gathered_s(ranks, node) if is_exchanged else 0.0
    return reduced + gathered


def with_network(tables: StepTables, seconds: float) -> StepTables:
    """Return tables whose every step takes so much longer."""
    if not seconds:
        return tables
    return replace(
        tables,
        decode=tuple(tuple(time + seconds for time in row) for row in tables.decode),
        tokens=tuple(time + seconds for time in tables.tokens),
    )


def _reduced_s(ranks: int, node: int) -> float:
    """Return the latency of one all-reduce over nodes. [s].

    >>> round(_reduced_s(16, 8) / MICROSECOND, 1)
    25.2
    """
    steps = TREE_STEP * (min(ranks, node) - 1) + TREE_NETWORK * log2(ceil(ranks / node))
    return (REDUCED_BASE + 2 * steps) * MICROSECOND


def gathered_s(gpu: Gpu, ranks: int) -> float:
    """Return the latency of one all-gather or reduce-scatter, within a node or over several. [s]."""
    return _gathered_s(ranks, gpu.joined_gpus)


def _gathered_s(ranks: int, node: int) -> float:
    """Return the same of nodes with so many ranks. [s].

    >>> [round(_gathered_s(ranks, 8) / MICROSECOND, 1) for ranks in (8, 16)]
    [10.8, 23.3]
    """
    nodes = ceil(ranks / node)
    step = RING_STEP if nodes > 1 else RING_LINK
    return (GATHERED_BASE + step * (ranks - nodes) + RING_NETWORK * (nodes - 1)) * MICROSECOND
