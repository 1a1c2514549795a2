"""What one rank of a model reads and computes: bytes and FLOP, as sums over its layers.

    matrices   bytes as stored, 2 x elements FLOP a token, at the peak of the precision they are multiplied at
    experts    the same, of which a token takes chosen / experts
    mixers     what each layer says of itself (`Mixer.work`)

Source:
    S. Williams, A. Waterman, D. Patterson, Roofline: an insightful visual performance model (2009).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from service.engine.derived import derived
from service.engine.formats.elements import HALF_BYTES, cache_bytes
from service.engine.formats.matrix import Matrix
from service.engine.formats.quantization import Quantization, Scheme
from service.engine.formats.stored import matrix_bytes
from service.engine.inputs import Gpu, KvCacheDtype, Layout
from service.engine.layers import FLOP_PER_MULTIPLICATION, Architecture, DecoderLayer, Mixer, Routing, Work
from service.engine.memory.matrices import embedding_matrices, layer_matrices

# Stored as they are multiplied; or unpacked whole, by a kernel of its own.
NOT_UNPACKED: Final[frozenset[Scheme]] = frozenset({"none", "bitsandbytes-4bit"})
WIDER: Final[Mapping[str, str]] = {"fp4": "fp8", "fp8": "bf16", "int8": "bf16", "bf16": "fp16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrices:
    """Weights that every token passes on one rank, at one precision."""

    weight_bytes: float
    flop_per_token: float
    peak_flop_per_s: float
    is_unpacked: bool  # stored in fewer bits than it is multiplied in


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Routed experts of one or more equal layers on one rank."""

    weight_bytes: float  # of all experts on the rank
    flop_per_token: float  # of the whole batch's tokens, on this rank
    peak_flop_per_s: float
    routing: Routing


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A model on one rank, as sums over its layers."""

    matrices: tuple[Matrices, ...]
    experts: tuple[Experts, ...]
    mixers: tuple[Work, ...]
    num_layers: int
    num_expert_layers: int
    hidden_size: int
    attention_ranks: int  # data-parallel ranks whose tokens meet in the experts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rate:
    """At which matrices are multiplied."""

    peak_flop_per_s: float
    is_unpacked: bool = False


@dataclass(slots=True)
class _Sum:
    """Bytes and FLOP that belong together."""

    weight_bytes: float = 0.0
    flop_per_token: float = 0.0


@dataclass(slots=True)
class _Sums:
    """Weights by the rate they are multiplied at; experts by their routing and by the peak alone."""

    dense: dict[_Rate, _Sum] = field(default_factory=lambda: defaultdict(_Sum))
    experts: dict[tuple[Routing, float], _Sum] = field(default_factory=lambda: defaultdict(_Sum))

    def add(self, matrix: Matrix, stored_bytes: int, rate: _Rate, routing: Routing | None, layers: int) -> None:
        """Add one matrix of so many layers alike."""
        elements = matrix.count * matrix.rows * matrix.columns
        if matrix.is_routed and routing is not None:
            total = self.experts[routing, rate.peak_flop_per_s]
            # All ranks together hold every expert once; a rank computes its share of the batch.
            multiplications = elements * routing.num_experts_per_tok / routing.num_experts
        else:
            total = self.dense[rate]
            multiplications = elements if matrix.is_linear else 0
        total.weight_bytes += layers * stored_bytes
        total.flop_per_token += layers * FLOP_PER_MULTIPLICATION * multiplications


def of_whole(layout: Layout) -> Layout:
    """Return the layout of which a rank reads and computes as much in all stages, as one token sees them."""
    if layout.pipeline_parallel_size == 1 and layout.decode_context_parallel_size == 1:
        return layout
    return replace(layout, pipeline_parallel_size=1, decode_context_parallel_size=1)


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
    return _workload(architecture, quantization, gpu, of_whole(layout), kv_cache_dtype)


@derived(192)
def _workload(
    architecture: Architecture, quantization: Quantization, gpu: Gpu, layout: Layout, kv_cache_dtype: KvCacheDtype
) -> Workload:
    """Return the same of a layout in one stage."""
    sums = _weights(architecture, quantization, gpu, layout)
    return Workload(
        matrices=tuple(
            Matrices(
                weight_bytes=amount.weight_bytes,
                flop_per_token=amount.flop_per_token,
                peak_flop_per_s=rate.peak_flop_per_s,
                is_unpacked=rate.is_unpacked,
            )
            for rate, amount in sums.dense.items()
        ),
        experts=tuple(
            Experts(
                weight_bytes=amount.weight_bytes,
                flop_per_token=amount.flop_per_token,
                peak_flop_per_s=peak,
                routing=routing,
            )
            for (routing, peak), amount in sums.experts.items()
        ),
        mixers=_mixers(architecture, layout.tensor_parallel_size, cache_bytes(kv_cache_dtype, HALF_BYTES)),
        num_layers=len(architecture.layers),
        num_expert_layers=architecture.num_expert_layers,
        hidden_size=architecture.hidden_size,
        attention_ranks=layout.data_parallel_size if layout.gpus_per_replica > 1 else 1,
    )


def _weights(architecture: Architecture, quantization: Quantization, gpu: Gpu, layout: Layout) -> _Sums:
    """Return bytes and FLOP of all weights that a token passes, the embedding table apart."""
    sums = _Sums()
    for each in _passed(architecture, quantization, layout):
        sums.add(each.matrix, each.stored_bytes, _rate(each.scheme or "none", gpu), each.routing, each.layers)
    sums.dense[_rate("none", gpu)].weight_bytes += _head_bytes(architecture, quantization, layout)
    return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passed:
    """A matrix that tokens pass in so many layers alike, whatever GPU multiplies it."""

    matrix: Matrix
    stored_bytes: int
    scheme: Scheme | None  # None: kept in the model's dtype
    routing: Routing | None
    layers: int


@derived(192)
def _passed(architecture: Architecture, quantization: Quantization, layout: Layout) -> tuple[_Passed, ...]:
    """Return the matrices of every kind of layer."""
    passed = []
    for layer, count in _kinds(architecture):
        for matrix in layer_matrices(architecture, layer, layout):
            stored, scheme = matrix_bytes(matrix, quantization, HALF_BYTES), quantization.of(matrix.module)
            if stored:
                passed.append(
                    _Passed(
                        matrix=matrix,
                        stored_bytes=stored,
                        scheme=None if matrix.is_kept or scheme.keeps(matrix.module) else scheme.scheme,
                        routing=layer.mlp.routing,
                        layers=count,
                    )
                )
    return tuple(passed)


@derived(192)
def _head_bytes(architecture: Architecture, quantization: Quantization, layout: Layout) -> int:
    """Return what stands behind the last layer: a head that is the table of embeddings is read like any other. [bytes].

    Llama 3.2 1B, whose head is its table: 1.24 billion parameters in all, and each token reads them
    (huggingface.co/meta-llama/Llama-3.2-1B).
    """
    # Of several stages, the last one holds it.
    _, last = embedding_matrices(architecture, replace(layout, pipeline_parallel_size=2))
    return sum(matrix_bytes(matrix, quantization, HALF_BYTES) for matrix in last)


@derived(16)
def _mixers(architecture: Architecture, tensor_parallel_size: int, cache_element_bytes: int) -> tuple[Work, ...]:
    """Return the work of each kind of mixer, of all layers that have it."""
    counts: dict[Mixer, int] = defaultdict(int)
    for layer, count in _kinds(architecture):
        for mixer in layer.mixers:
            counts[mixer] += count
    return tuple(
        mixer.work(tensor_parallel_size, cache_element_bytes).times(count)
        for mixer, count in counts.items()
        if not mixer.is_empty
    )


@derived(16)
def _kinds(architecture: Architecture) -> tuple[tuple[DecoderLayer, int], ...]:
    """Return one layer of each kind, and how many there are: the last, as first layers are often kept apart."""
    layers = {layer.parts: layer for layer in architecture.layers}
    counts = Counter(layer.parts for layer in architecture.layers)
    return tuple((layer, counts[parts]) for parts, layer in layers.items())


def _rate(scheme: Scheme, gpu: Gpu) -> _Rate:
    """Return the rate at which a GPU multiplies weights of a scheme."""
    peak = peak_at(gpu, _operand(scheme, gpu))
    return _Rate(peak_flop_per_s=peak, is_unpacked=scheme not in NOT_UNPACKED and peak == peak_at(gpu, "bf16"))


def _operand(scheme: Scheme, gpu: Gpu) -> str:
    """Return the precision a scheme multiplies at; weight-only schemes unpack to two bytes."""
    match scheme:
        case "none" | "int4-group" | "int8-group" | "bitsandbytes-4bit":
            return "bf16"
        case "fp8-tensor" | "fp8-channel" | "fp8-block" | "mxfp8":
            return "fp8"
        case "int8-both":
            return "int8"
        case "mxfp4":
            # Activations stay in 8 bits where the hardware multiplies 4-bit weights, in 16 elsewhere.
            return "fp8" if "fp4" in gpu.peak_flop_per_s else "bf16"
        case "nvfp4":
            # Without four-bit tensor cores weights are unpacked to two bytes, as vLLM's Marlin does on Hopper and Ada.
            return "fp4" if "fp4" in gpu.peak_flop_per_s else "bf16"
        case _ as never:
            assert_never(never)


def peak_at(gpu: Gpu, operand: str) -> float:
    """Return the dense peak at a precision, or at the next wider one the hardware has. [FLOP/s]."""
    wanted: str | None = operand
    while wanted is not None:
        if wanted in gpu.peak_flop_per_s:
            return gpu.peak_flop_per_s[wanted]
        wanted = WIDER.get(wanted)
    return min(gpu.peak_flop_per_s.values())
