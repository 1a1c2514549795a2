"""Step times from data sheets: bytes over bandwidth and FLOP over peak, each with a fitted efficiency.

Sources:
    S. Williams, A. Waterman, D. Patterson, Roofline: an insightful visual performance model (2009).
    P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms (2009): 2 (n - 1) / n x bytes per rank.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from service.engine.arithmetic import ceil_div
from service.engine.formats.elements import HALF_BYTES
from service.engine.inputs import Gpu, Layout
from service.engine.time.records import ATTENDED, CONTEXTS, REQUESTS, TOKENS
from service.performance.links import Pcie, joined_by_pcie, slowest_link
from service.performance.nodes import ALL_REDUCES_PER_LAYER, EXCHANGES_PER_LAYER, collectives_s, ranks_of_stage
from service.performance.tables import Floats, StepTables, as_row, as_rows
from service.performance.workload import Experts, Workload, peak_at

# The knots as arrays, which nobody writes to; those of requests are the first ones of tokens.
OF_TOKENS, OF_REQUESTS, OF_CONTEXTS, OF_ATTENDED = map(np.array, (TOKENS, REQUESTS, CONTEXTS, ATTENDED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiencies:
    """How much of a data sheet kernels reach. All ones and zeros give the physical floor."""

    compute_fraction: float
    bandwidth_fraction: float
    unpacked_compute_fraction: float  # by kernels that unpack weights; see `unpacked`
    attention_compute_fraction: float
    interconnect_fraction: float
    layer_latency_s: float  # launches and synchronisation of one layer
    all_reduce_latency_s: float  # of the smallest message
    pcie: Pcie | None  # what is reached where PCIe alone joins ranks; None: as much as of a fabric
    experts_spread: bool  # tokens choose experts evenly; else they all choose the same
    exchanges: bool  # copies of the attention exchange tokens, and networks have latency; else neither takes time


SENT_BYTES: Final = 1.5  # of an element to one expert, out in fp8 and back in 16 bits: the mean of both ways
FLOOR: Final = Efficiencies(
    compute_fraction=1.0,
    bandwidth_fraction=1.0,
    unpacked_compute_fraction=1.0,
    attention_compute_fraction=1.0,
    interconnect_fraction=1.0,
    layer_latency_s=0.0,
    all_reduce_latency_s=0.0,
    pcie=None,
    experts_spread=False,
    exchanges=False,
)


def roofline_tables(workload: Workload, gpu: Gpu, layout: Layout, efficiencies: Efficiencies) -> StepTables:
    """Return step times of a model on any GPU.

        matrices  = sum max(bytes / (bandwidth x e_b), flop / (peak x e_c)); see `unpacked`
        attention = max(cache bytes / (bandwidth x e_b), flop / (peak x e_a))
        all-reduce = 2 x layers x (latency + 2 (tp - 1) / tp x tokens x hidden x 2 / (interconnect x e_i)); see `links`
        exchange   = 2 x layers with experts x (latency + (dp - 1) x tokens x hidden x 2 / (interconnect x e_i))
        by DeepEP  = the same with chosen experts x 1.5 bytes in place of (dp - 1) x 2; out in fp8, back in 16 bits
        hops       = (pp - 1) x (latency + tokens x hidden x 2 / (the link between two stages x e_i))
        network    = latencies of both over several nodes; see `nodes`

    vLLM `distributed/device_communicators/all2all.py`: the tokens of all copies of the attention are gathered by each
    rank before the experts, and scattered after them.

    Databricks, "LLM Inference Performance Engineering: Best Practices": a model of 7B in 16 bits whose token takes 14
    ms moves 1 TB/s, half of the 2 TB/s of an A100, which takes 7 ms:

    >>> from service.engine.families import parse_architecture
    >>> from service.engine.formats.quantization import UNQUANTIZED
    >>> from service.performance.workload import workload_of
    >>> llama = parse_architecture({
    ...     "architectures": ["LlamaForCausalLM"], "hidden_size": 4_096, "intermediate_size": 11_008,
    ...     "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32_000, "max_position_embeddings": 4_096})
    >>> gpu = Gpu(
    ...     id="a100", name="NVIDIA A100", vendor="nvidia", architecture="ampere", compute_capability="8.0",
    ...     memory_bytes=80 * 2**30, memory_bandwidth_bytes_per_s=2e12, peak_flop_per_s={"bf16": 3.12e14},
    ...     gpus_per_node=8, scale_up_domain_gpus=8, scale_up_bytes_per_s=3e11, scale_out_bytes_per_s=2.5e10)
    >>> tables = roofline_tables(workload_of(llama, UNQUANTIZED, gpu, Layout(), "bf16"), gpu, Layout(), FLOOR)
    >>> f"{tables.decode[0][0] * 1_000:.0f} ms"
    '7 ms'

    Args:
        workload: the model on one rank; see `workload_of`.
        gpu: peaks and bandwidths.
        layout: how one replica is spread.
        efficiencies: what share of them kernels reach.
    """
    tokens = _tokens_s(workload, gpu, layout, efficiencies, OF_TOKENS)
    decode = tokens[: len(REQUESTS), None] + _decode_attention_s(workload, gpu, efficiencies, OF_REQUESTS, OF_CONTEXTS)
    return StepTables(
        decode=as_rows(decode),
        tokens=as_row(tokens),
        attention=as_row(_prefill_attention_s(workload, gpu, efficiencies, OF_ATTENDED)),
    )


def _tokens_s(workload: Workload, gpu: Gpu, layout: Layout, reached: Efficiencies, tokens: Floats) -> Floats:
    """Return the seconds of everything but attention, for so many tokens of one attention rank."""
    bandwidth = gpu.memory_bandwidth_bytes_per_s * reached.bandwidth_fraction
    seconds = workload.num_layers * reached.layer_latency_s + _all_reduce_s(workload, gpu, layout, reached, tokens)
    if reached.exchanges:
        if layout.data_parallel_size > 1:
            seconds = seconds + _exchange_s(workload, gpu, layout, reached, tokens)
        seconds = seconds + _network_s(workload, gpu, layout)
        if layout.pipeline_parallel_size > 1:
            seconds = seconds + _hops_s(workload, gpu, layout, reached, tokens)
    for part in workload.matrices:
        share = reached.unpacked_compute_fraction if part.is_unpacked else reached.compute_fraction
        compute = tokens * (part.flop_per_token / (part.peak_flop_per_s * share))
        seconds = seconds + np.maximum(part.weight_bytes / bandwidth, compute)
    routed = tokens * workload.attention_ranks
    for experts in workload.experts:
        compute = routed * (experts.flop_per_token / (experts.peak_flop_per_s * reached.compute_fraction))
        seconds = seconds + np.maximum(experts.weight_bytes * _touched(experts, routed, reached) / bandwidth, compute)
    return seconds


def own_share(workload: Workload, gpu: Gpu, layout: Layout) -> float:
    """Return the part of a long step that goes by the tokens of a rank's own copy of the attention. [fraction].

        own / (own + experts + exchange),  each in seconds of a token, at the peaks and at the full rate of the link

    The rest goes by the tokens of all copies, which meet in the experts: 1 where there is but one copy. DeepSeek-V3
    (arXiv:2412.19437) passes 20.4 of 37 billion parameters in experts, so that less than 0.45 is a copy's own.
    """
    own_s = sum(part.flop_per_token / part.peak_flop_per_s for part in workload.matrices)
    experts_s = sum(experts.flop_per_token / experts.peak_flop_per_s for experts in workload.experts)
    exchange_s = float(_exchange_s(workload, gpu, layout, FLOOR, np.ones(1))[0])
    return own_s / (own_s + workload.attention_ranks * experts_s + exchange_s)


def _touched(experts: Experts, tokens: Floats, reached: Efficiencies) -> Floats:
    """Return the share of experts that a batch reads: 1 - (1 - k / E)^n when tokens choose evenly."""
    share = experts.routing.num_experts_per_tok / experts.routing.num_experts
    if reached.experts_spread and share < 1:
        return 1.0 - np.power(1.0 - share, tokens)
    return np.full_like(tokens, share)


def _all_reduce_s(workload: Workload, gpu: Gpu, layout: Layout, reached: Efficiencies, tokens: Floats) -> Floats:
    ranks = layout.tensor_parallel_size
    if ranks == 1:
        return np.zeros_like(tokens)
    sent = tokens * (2 * (ranks - 1) / ranks * workload.hidden_size * HALF_BYTES)
    rate = slowest_link(gpu, ranks)
    if reached.pcie is not None and joined_by_pcie(gpu, ranks):
        once = reached.pcie.seconds(sent, rate, ranks)
    else:
        once = reached.all_reduce_latency_s + sent / (rate * reached.interconnect_fraction)
    return ALL_REDUCES_PER_LAYER * workload.num_layers * once


def _exchange_s(workload: Workload, gpu: Gpu, layout: Layout, reached: Efficiencies, tokens: Floats) -> Floats:
    """Return the seconds that copies of the attention take to hand each other's tokens to the experts and back."""
    copies: float = (layout.data_parallel_size - 1) * HALF_BYTES
    if layout.all2all_backend is not None:
        chosen = max((experts.routing.num_experts_per_tok for experts in workload.experts), default=0)
        copies = min(copies, chosen * SENT_BYTES)
    received = tokens * (copies * workload.hidden_size)
    ranks = ranks_of_stage(layout)
    rate = slowest_link(gpu, ranks)
    if reached.pcie is not None and joined_by_pcie(gpu, ranks):
        once = reached.pcie.seconds(received, rate, ranks)
    else:
        once = reached.all_reduce_latency_s + received / (rate * reached.interconnect_fraction)
    return EXCHANGES_PER_LAYER * workload.num_expert_layers * once


def _hops_s(workload: Workload, gpu: Gpu, layout: Layout, reached: Efficiencies, tokens: Floats) -> Floats:
    """Return the seconds that tokens take from each pipeline stage to the next, of which some are on other nodes."""
    stages, ranks = layout.pipeline_parallel_size, layout.tensor_parallel_size
    nodes = min(ceil_div(ranks * stages, gpu.gpus_per_node), stages)
    sent = tokens * (workload.hidden_size * HALF_BYTES / reached.interconnect_fraction)
    seconds = np.zeros_like(tokens)
    for hops, joined in ((stages - nodes, 2 * ranks), (nodes - 1, ranks * stages)):
        seconds = seconds + hops * (reached.all_reduce_latency_s + sent / slowest_link(gpu, joined))
    return seconds


def _network_s(workload: Workload, gpu: Gpu, layout: Layout) -> float:
    return collectives_s(gpu, layout, layers=workload.num_layers, exchanges=workload.num_expert_layers)


def _decode_attention_s(
    workload: Workload, gpu: Gpu, reached: Efficiencies, requests: Floats, context_tokens: Floats
) -> Floats:
    """Return the seconds of attention, one row per number of requests."""
    bandwidth = gpu.memory_bandwidth_bytes_per_s * reached.bandwidth_fraction
    peak = peak_at(gpu, "bf16") * reached.attention_compute_fraction
    of_one = np.zeros_like(context_tokens)
    for mixer in workload.mixers:
        attended = np.minimum(context_tokens / mixer.ratio, mixer.longest)
        read = attended * mixer.token_bytes + mixer.state_bytes + context_tokens * mixer.scan_bytes
        flop = attended * mixer.decode_flop_per_pair + context_tokens * mixer.scan_flop_per_pair
        of_one = of_one + np.maximum(read / bandwidth, flop / peak)
    return np.outer(requests, of_one)


def _prefill_attention_s(workload: Workload, gpu: Gpu, reached: Efficiencies, attended_tokens: Floats) -> Floats:
    """Return the seconds of one prompt token; the cache is read once for many tokens and not counted."""
    peak = peak_at(gpu, "bf16") * reached.attention_compute_fraction
    flop = np.zeros_like(attended_tokens)
    for mixer in workload.mixers:
        attended = np.minimum(attended_tokens / mixer.ratio, mixer.longest)
        flop = flop + attended * mixer.prefill_flop_per_pair + attended_tokens * mixer.scan_flop_per_pair
    return flop / peak
