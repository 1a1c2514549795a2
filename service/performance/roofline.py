"""Step times from data sheets: bytes over bandwidth and FLOP over peak, each with a fitted efficiency.

Sources:
    S. Williams, A. Waterman, D. Patterson, Roofline: an insightful visual performance model (2009).
    P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms (2009): 2 (n - 1) / n x bytes per rank.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, assert_never

import numpy as np
from numpy.typing import NDArray

from service.engine.formats.quantization import Quantization, Scheme
from service.engine.formats.stored import matrix_bytes
from service.engine.inputs import Gpu, KvCacheDtype, Layout
from service.engine.layers import (
    Architecture,
    Attention,
    CompressedAttention,
    DecoderLayer,
    GatedDeltaNet,
    GroupedQueryAttention,
    KimiDeltaAttention,
    LatentAttention,
    Mamba1,
    Mamba2,
    MoeMlp,
    NoAttention,
    NoMlp,
    ShortConvolution,
)
from service.engine.memory.matrices import embedding_matrices, layer_matrices
from service.engine.memory.specs import DEFAULT_BLOCK_SIZE, Sharding, state_bytes
from service.engine.time.records import ATTENDED, CONTEXTS, REQUESTS, TOKENS
from service.performance.tables import StepTables

Floats = NDArray[np.float64]

ELEMENT_BYTES: Final = 2  # of activations
FLOP_PER_MULTIPLICATION: Final = 2
ALL_REDUCES_PER_LAYER: Final = 2  # after attention and after the feed-forward part
FP8_BYTES: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiencies:
    """How much of a data sheet kernels reach. All ones and zeros give the physical floor."""

    compute_fraction: float
    bandwidth_fraction: float
    attention_compute_fraction: float
    interconnect_fraction: float
    layer_latency_s: float  # launches and synchronisation of one layer
    all_reduce_latency_s: float  # of the smallest message
    experts_spread: bool  # tokens choose experts evenly; else they all choose the same


FLOOR: Final = Efficiencies(
    compute_fraction=1.0,
    bandwidth_fraction=1.0,
    attention_compute_fraction=1.0,
    interconnect_fraction=1.0,
    layer_latency_s=0.0,
    all_reduce_latency_s=0.0,
    experts_spread=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matrices:
    """Weights that every token passes on one rank, at one precision."""

    weight_bytes: float
    flop_per_token: float
    peak_flop_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Experts:
    """Routed experts of one or more equal layers on one rank."""

    weight_bytes: float  # of all experts on the rank
    flop_per_token: float  # of the whole batch's tokens, on this rank
    peak_flop_per_s: float
    num_experts: int
    top_k: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mixer:
    """What equal attention layers read and compute on one rank."""

    token_bytes: float  # of one cached token that is read
    state_bytes: float  # of one request's state, read and written
    longest: float  # tokens a query attends to at most
    ratio: float  # cached tokens behind one that is read
    decode_flop_per_pair: float
    prefill_flop_per_pair: float
    scan_bytes: float = 0.0  # of every cached token, read to select which to attend to
    scan_flop_per_pair: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A model on one rank, as sums over its layers."""

    matrices: tuple[_Matrices, ...]
    experts: tuple[_Experts, ...]
    mixers: tuple[_Mixer, ...]
    num_layers: int
    hidden_size: int
    attention_ranks: int  # data-parallel ranks whose tokens meet in the experts


def roofline_tables(workload: Workload, gpu: Gpu, layout: Layout, efficiencies: Efficiencies) -> StepTables:
    """Return step times of a model on any GPU.

        matrices  = sum max(bytes / (bandwidth x e_b), flop / (peak x e_c))
        attention = max(cache bytes / (bandwidth x e_b), flop / (peak x e_a))
        all-reduce = 2 x layers x (latency + 2 (tp - 1) / tp x tokens x hidden x 2 / (interconnect x e_i))

    Args:
        workload: the model on one rank; see `workload_of`.
        gpu: peaks and bandwidths.
        layout: how one replica is spread.
        efficiencies: what share of them kernels reach.
    """
    requests, contexts = np.array(REQUESTS), np.array(CONTEXTS)
    decode = _tokens_s(workload, gpu, layout, efficiencies, requests)[:, None]
    decode = decode + _decode_attention_s(workload, gpu, efficiencies, requests, contexts)
    return StepTables(
        decode=tuple(map(tuple, decode.tolist())),
        tokens=tuple(_tokens_s(workload, gpu, layout, efficiencies, np.array(TOKENS)).tolist()),
        attention=tuple(_prefill_attention_s(workload, gpu, efficiencies, np.array(ATTENDED)).tolist()),
    )


def _tokens_s(workload: Workload, gpu: Gpu, layout: Layout, it: Efficiencies, tokens: Floats) -> Floats:
    """Return the seconds of everything but attention, for so many tokens of one attention rank."""
    bandwidth = gpu.memory_bandwidth_bytes_per_s * it.bandwidth_fraction
    seconds = workload.num_layers * it.layer_latency_s + _all_reduce_s(workload, gpu, layout, it, tokens)
    for part in workload.matrices:
        compute = tokens * (part.flop_per_token / (part.peak_flop_per_s * it.compute_fraction))
        seconds = seconds + np.maximum(part.weight_bytes / bandwidth, compute)
    routed = tokens * workload.attention_ranks
    for experts in workload.experts:
        compute = routed * (experts.flop_per_token / (experts.peak_flop_per_s * it.compute_fraction))
        seconds = seconds + np.maximum(experts.weight_bytes * _touched(experts, routed, it) / bandwidth, compute)
    return seconds


def _touched(experts: _Experts, tokens: Floats, it: Efficiencies) -> Floats:
    """Return the share of experts that a batch reads: 1 - (1 - k / E)^n when tokens choose evenly."""
    share = experts.top_k / experts.num_experts
    if it.experts_spread and share < 1:
        return 1.0 - np.power(1.0 - share, tokens)
    return np.full_like(tokens, share)


def _all_reduce_s(workload: Workload, gpu: Gpu, layout: Layout, it: Efficiencies, tokens: Floats) -> Floats:
    ranks = layout.tensor_parallel_size
    if ranks == 1:
        return np.zeros_like(tokens)
    sent = tokens * (2 * (ranks - 1) / ranks * workload.hidden_size * ELEMENT_BYTES)
    rate = gpu.scale_up_bytes_per_s if ranks <= gpu.scale_up_domain_gpus else _slowest_link(gpu, ranks)
    once = it.all_reduce_latency_s + sent / (rate * it.interconnect_fraction)
    return ALL_REDUCES_PER_LAYER * workload.num_layers * once


def _slowest_link(gpu: Gpu, ranks: int) -> float:
    """Return the rate between ranks that no fast fabric joins: PCIe within a node, the network beyond it."""
    return gpu.scale_up_bytes_per_s if ranks <= gpu.gpus_per_node else gpu.scale_out_bytes_per_s


def _decode_attention_s(
    workload: Workload, gpu: Gpu, it: Efficiencies, requests: Floats, context_tokens: Floats
) -> Floats:
    """Return the seconds of attention, one row per number of requests."""
    bandwidth = gpu.memory_bandwidth_bytes_per_s * it.bandwidth_fraction
    peak = _peak(gpu, "bf16") * it.attention_compute_fraction
    of_one = np.zeros_like(context_tokens)
    for mixer in workload.mixers:
        attended = np.minimum(context_tokens / mixer.ratio, mixer.longest)
        read = attended * mixer.token_bytes + mixer.state_bytes + context_tokens * mixer.scan_bytes
        flop = attended * mixer.decode_flop_per_pair + context_tokens * mixer.scan_flop_per_pair
        of_one = of_one + np.maximum(read / bandwidth, flop / peak)
    return np.outer(requests, of_one)


def _prefill_attention_s(workload: Workload, gpu: Gpu, it: Efficiencies, attended_tokens: Floats) -> Floats:
    """Return the seconds of one prompt token; the cache is read once for many tokens and not counted."""
    peak = _peak(gpu, "bf16") * it.attention_compute_fraction
    flop = np.zeros_like(attended_tokens)
    for mixer in workload.mixers:
        attended = np.minimum(attended_tokens / mixer.ratio, mixer.longest)
        flop = flop + attended * mixer.prefill_flop_per_pair + attended_tokens * mixer.scan_flop_per_pair
    return flop / peak


@lru_cache(maxsize=2048)
def workload_of(
    architecture: Architecture,
    quantization: Quantization,
    gpu: Gpu,
    layout: Layout,
    kv_cache_dtype: KvCacheDtype,
) -> Workload:
    """Return what one rank of a model reads and computes; pipeline stages are summed, as one token sees them.

    Args:
        architecture: the model.
        quantization: how weights are stored; decides bytes and the peak they are multiplied at.
        gpu: whose peaks.
        layout: how one replica is spread.
        kv_cache_dtype: element type of the cache.
    """
    whole = Layout(
        tensor_parallel_size=layout.tensor_parallel_size,
        data_parallel_size=layout.data_parallel_size,
        expert_parallel=layout.expert_parallel,
    )
    ranks = whole.gpus_per_replica
    dense: dict[float, list[float]] = {}
    experts: dict[tuple[int, int, float], list[float]] = {}
    mixers: dict[Attention, int] = {}
    for layer, count in _kinds(architecture):
        for mixer in layer.mixers:
            mixers[mixer] = mixers.get(mixer, 0) + count
        for matrix in layer_matrices(architecture, layer, whole):
            elements = matrix.count * matrix.rows * matrix.columns
            stored = matrix_bytes(matrix, quantization, ELEMENT_BYTES)
            if not stored:
                continue
            scheme = quantization.of(matrix.module)
            peak = _peak(gpu, "bf16" if scheme.keeps(matrix.module) else _operand(scheme.scheme, gpu))
            if ".experts" in matrix.module and isinstance(layer.mlp, MoeMlp):
                mlp = layer.mlp
                sums = experts.setdefault((mlp.num_experts, mlp.num_experts_per_tok, peak), [0.0, 0.0])
                # All ranks together hold every expert once; a rank computes its share of the batch.
                multiplications = elements * mlp.num_experts_per_tok / mlp.num_experts
            else:
                sums = dense.setdefault(peak, [0.0, 0.0])
                multiplications = elements if matrix.is_linear else 0
            sums[0] += count * stored
            sums[1] += count * FLOP_PER_MULTIPLICATION * multiplications
    _, last = embedding_matrices(architecture, whole)
    head = dense.setdefault(_peak(gpu, "bf16"), [0.0, 0.0])
    head[0] += sum(matrix_bytes(matrix, quantization, ELEMENT_BYTES) for matrix in last)
    element = FP8_BYTES if kv_cache_dtype == "fp8" else ELEMENT_BYTES
    return Workload(
        matrices=tuple(
            _Matrices(weight_bytes=stored, flop_per_token=flop, peak_flop_per_s=peak)
            for peak, (stored, flop) in dense.items()
        ),
        experts=tuple(
            _Experts(
                weight_bytes=stored, flop_per_token=flop, peak_flop_per_s=peak, num_experts=num_experts, top_k=top_k
            )
            for (num_experts, top_k, peak), (stored, flop) in experts.items()
        ),
        mixers=tuple(
            _times(_mixer(mixer, layout.tensor_parallel_size, element), count)
            for mixer, count in mixers.items()
            if not isinstance(mixer, NoAttention)
        ),
        num_layers=sum(not (isinstance(it.mlp, NoMlp) and not it.mixers) for it in architecture.layers),
        hidden_size=architecture.hidden_size,
        attention_ranks=layout.data_parallel_size if ranks > 1 else 1,
    )


def _kinds(architecture: Architecture) -> list[tuple[DecoderLayer, int]]:
    """Return one layer of each kind, and how many there are: the last, as first layers are often kept apart."""
    layers: dict[tuple[object, object], DecoderLayer] = {}
    counts: dict[tuple[object, object], int] = {}
    for layer in architecture.layers:
        kind = (layer.mixers, layer.mlp)
        layers[kind] = layer
        counts[kind] = counts.get(kind, 0) + 1
    return [(layer, counts[kind]) for kind, layer in layers.items()]


def _times(mixer: _Mixer, layers: int) -> _Mixer:
    return _Mixer(
        token_bytes=layers * mixer.token_bytes,
        state_bytes=layers * mixer.state_bytes,
        longest=mixer.longest,
        ratio=mixer.ratio,
        decode_flop_per_pair=layers * mixer.decode_flop_per_pair,
        prefill_flop_per_pair=layers * mixer.prefill_flop_per_pair,
        scan_bytes=layers * mixer.scan_bytes,
        scan_flop_per_pair=layers * mixer.scan_flop_per_pair,
    )


def _mixer(mixer: Attention, tp: int, element: int) -> _Mixer:
    """Return what one layer reads and multiplies per pair of query and attended token, on one rank."""
    match mixer:
        case GroupedQueryAttention():
            heads, kv_heads = max(mixer.num_attention_heads // tp, 1), max(mixer.num_key_value_heads // tp, 1)
            width = mixer.head_dim + mixer.v_head_dim
            flop = FLOP_PER_MULTIPLICATION * heads * width
            return _Mixer(
                token_bytes=kv_heads * width * element,
                state_bytes=0.0,
                longest=float(mixer.sliding_window or mixer.attention_chunk_size or float("inf")),
                ratio=1.0,
                decode_flop_per_pair=flop,
                prefill_flop_per_pair=flop,
            )
        case LatentAttention():
            heads = max(mixer.num_attention_heads // tp, 1)
            latent = mixer.kv_lora_rank + mixer.qk_rope_head_dim
            whole = mixer.qk_nope_head_dim + mixer.qk_rope_head_dim + mixer.v_head_dim
            index = mixer.indexer
            return _Mixer(
                token_bytes=latent * element,
                state_bytes=0.0,
                longest=float(index.top_k) if index is not None else float("inf"),
                ratio=1.0,
                decode_flop_per_pair=FLOP_PER_MULTIPLICATION * heads * (latent + mixer.kv_lora_rank),
                prefill_flop_per_pair=FLOP_PER_MULTIPLICATION * heads * whole,
                scan_bytes=index.head_dim * FP8_BYTES if index is not None else 0.0,
                scan_flop_per_pair=(
                    FLOP_PER_MULTIPLICATION * index.num_heads * index.head_dim if index is not None else 0.0
                ),
            )
        case CompressedAttention():
            heads = max(mixer.num_attention_heads // tp, 1)
            index = mixer.indexer
            flop = 2 * FLOP_PER_MULTIPLICATION * heads * mixer.head_dim
            if mixer.compress_ratio <= 1:
                longest = float(mixer.sliding_window)
            else:
                longest = float(index.top_k) if index is not None else float("inf")
            return _Mixer(
                token_bytes=mixer.head_dim * element,
                state_bytes=0.0,
                longest=longest,
                ratio=float(max(mixer.compress_ratio, 1)),
                decode_flop_per_pair=flop,
                prefill_flop_per_pair=flop,
            )
        case GatedDeltaNet() | KimiDeltaAttention() | Mamba1() | Mamba2() | ShortConvolution():
            sharding = Sharding(
                tensor_parallel_size=tp,
                cache_element_bytes=element,
                model_element_bytes=ELEMENT_BYTES,
                block_size=DEFAULT_BLOCK_SIZE,
                is_checkpoints_dtype=False,
                keeps_states=False,
            )
            state = state_bytes(mixer, sharding)
            return _Mixer(
                token_bytes=0.0,
                state_bytes=2.0 * state,  # read and written
                longest=0.0,
                ratio=1.0,
                decode_flop_per_pair=0.0,
                prefill_flop_per_pair=0.0,
            )
        case NoAttention():
            return _Mixer(
                token_bytes=0.0,
                state_bytes=0.0,
                longest=0.0,
                ratio=1.0,
                decode_flop_per_pair=0.0,
                prefill_flop_per_pair=0.0,
            )
        case _ as never:
            assert_never(never)


def _operand(scheme: Scheme, gpu: Gpu) -> str:
    """Return the precision a scheme multiplies at; weight-only schemes unpack to two bytes."""
    match scheme:
        case "none" | "int4-group" | "bitsandbytes-4bit":
            return "bf16"
        case "fp8-tensor" | "fp8-channel" | "fp8-block" | "mxfp8":
            return "fp8"
        case "int8-channel":
            return "int8"
        case "mxfp4":
            # Activations stay in 8 bits where the hardware multiplies 4-bit weights, in 16 elsewhere.
            return "fp8" if "fp4" in gpu.peak_flop_per_s else "bf16"
        case "nvfp4":
            return "fp4"
        case _ as never:
            assert_never(never)


WIDER: Final[Mapping[str, str]] = {"fp4": "fp8", "fp8": "bf16", "int8": "bf16", "bf16": "fp16"}


def _peak(gpu: Gpu, operand: str) -> float:
    """Return the dense peak at a precision, or at the next wider one the hardware has. [FLOP/s]."""
    wanted: str | None = operand
    while wanted is not None:
        if wanted in gpu.peak_flop_per_s:
            return gpu.peak_flop_per_s[wanted]
        wanted = WIDER.get(wanted)
    return min(gpu.peak_flop_per_s.values())
