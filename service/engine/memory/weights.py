"""Weights: what one rank loads, and how many parameters a model has.

loaded = sum over the fullest stage's matrices of their stored bytes, and what loading repacks
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from service.engine.arithmetic import round_up
from service.engine.formats.matrix import CACHE_SCALES, Matrix
from service.engine.formats.quantization import UNQUANTIZED, Quantization
from service.engine.formats.stored import matrix_bytes
from service.engine.inputs import Layout
from service.engine.layers import Architecture, DecoderLayer, DraftHead
from service.engine.memory.draft_weights import draft_matrices
from service.engine.memory.matrices import EMBEDDINGS, HEAD, TOWER, embedding_matrices, layer_matrices
from service.engine.memory.stages import pipeline_stages

EXPERT_TILE: Final = 256  # columns that MXFP4 kernels work on at once [elements]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWeights:
    """The fullest rank's weights. [bytes]."""

    param_bytes: int  # as instantiated, before anything is repacked
    loaded_bytes: int  # resident once loaded, as the start-up log prints it
    by_component: Mapping[str, int]


@lru_cache(maxsize=4096)
def rank_weights(
    architecture: Architecture, *, layout: Layout, quantization: Quantization, draft: DraftHead | None = None
) -> RankWeights:
    """Return the bytes that the fullest rank loads.

    Args:
        architecture: the model.
        layout: tensor parallelism splits matrices, pipeline parallelism splits layers, expert
            parallelism deals experts out whole.
        quantization: how the checkpoint stores weights.
        draft: layers that draft tokens, on the last pipeline stage.
    """
    stages = _stage_matrices(architecture, layout)
    ranks = [_by_component(matrices, quantization, architecture.element_bytes) for matrices in stages]
    if draft is not None:
        ranks[-1]["draft"] = _draft_bytes(draft, layout, quantization)
    fullest = max(range(len(ranks)), key=lambda index: sum(ranks[index].values()))
    start, end = pipeline_stages(len(architecture.layers), layout.pipeline_parallel_size)[fullest]
    repacked = _repacked_bytes(architecture, architecture.layers[start:end], layout, quantization)
    if draft is not None and draft.is_quantized and fullest == len(ranks) - 1:
        repacked += _repacked_bytes(draft.body, draft.body.layers, layout, quantization)
    param_bytes = sum(ranks[fullest].values())
    return RankWeights(
        param_bytes=param_bytes,
        loaded_bytes=param_bytes + repacked,
        by_component={**ranks[fullest], "repacked": repacked},
    )


def _stage_matrices(architecture: Architecture, layout: Layout) -> list[list[Matrix]]:
    """Return what one rank of each pipeline stage holds."""
    first, last = embedding_matrices(architecture, layout)
    stages = [
        [it for layer in architecture.layers[start:end] for it in layer_matrices(architecture, layer, layout)]
        for start, end in pipeline_stages(len(architecture.layers), layout.pipeline_parallel_size)
    ]
    stages[0] = [*first, *stages[0]]
    stages[-1] += last
    return stages


def _draft_bytes(draft: DraftHead, layout: Layout, quantization: Quantization) -> int:
    """Return the weights of the layers that draft, as the checkpoint or an EAGLE head's own stores them. [bytes]."""
    stored = quantization if draft.is_quantized else UNQUANTIZED
    return sum(matrix_bytes(matrix, stored, draft.body.element_bytes) for matrix in draft_matrices(draft, layout))


def _repacked_bytes(
    architecture: Architecture, layers: tuple[DecoderLayer, ...], layout: Layout, quantization: Quantization
) -> int:
    """Return what loading adds to some layers. [bytes]."""
    return sum(
        _repacked_matrix_bytes(matrix, architecture, quantization)
        for layer in layers
        for matrix in layer_matrices(architecture, layer, layout)
    )


def _repacked_matrix_bytes(matrix: Matrix, architecture: Architecture, quantization: Quantization) -> int:
    """Return what loading adds to one matrix. [bytes].

    MXFP4 experts are padded to whole tiles of the hidden size (gpt-oss-120b: 64.4 GiB logged for
    60.8 GiB of parameters). Latent attention keeps its up-projection in two bytes beside a
    quantized one, to absorb it into queries and outputs.

    Sources:
        vLLM 0.33 `quantization/utils/mxfp4_utils.py`, `layers/attention/mla_attention.py`
        (`process_weights_after_loading`).
    """
    scheme = quantization.of(matrix.module)
    if scheme.keeps(matrix.module):
        return 0
    if matrix.is_routed and scheme.scheme == "mxfp4" and not matrix.scheme:
        hidden = architecture.hidden_size
        stored = matrix_bytes(matrix, quantization, architecture.element_bytes)
        return stored * (round_up(hidden, EXPERT_TILE) - hidden) // hidden
    return matrix.rows * matrix.columns * architecture.element_bytes if matrix.is_absorbed else 0


def _by_component(matrices: list[Matrix], quantization: Quantization, element_bytes: int) -> dict[str, int]:
    components: dict[str, int] = {}
    for matrix in matrices:
        name = _component(matrix)
        components[name] = components.get(name, 0) + matrix_bytes(matrix, quantization, element_bytes)
    return components


def _component(matrix: Matrix) -> str:
    """Return the part of the model a reader would name."""
    if matrix.is_routed:
        return "experts"
    if matrix.module == TOWER:
        return "encoder"
    if matrix.module in (EMBEDDINGS, HEAD):
        return "embeddings"
    if ".mlp." in matrix.module:
        return "feed_forward"
    return "attention" if ".layers." in matrix.module else "other"


@lru_cache(maxsize=1024)
def num_parameters(architecture: Architecture) -> int:
    """Return the parameters of the whole model: every matrix, norm, bias and embedding."""
    (matrices,) = _stage_matrices(architecture, Layout())
    return sum(_elements(matrix, architecture) for matrix in matrices)


@lru_cache(maxsize=1024)
def num_active_parameters(architecture: Architecture) -> int:
    """Return the parameters that one token passes through: of the experts only those it is routed to.

    active = total - sum over layers (1 - top_k / experts) x routed expert parameters
    """
    first, last = embedding_matrices(architecture, Layout())
    active = sum(_elements(matrix, architecture) for matrix in [*first, *last])
    for layer in architecture.layers:
        routing = layer.mlp.routing
        for matrix in layer_matrices(architecture, layer, Layout()):
            elements = _elements(matrix, architecture)
            if routing is not None and matrix.is_routed:
                elements = elements * routing.num_experts_per_tok // routing.num_experts
            active += elements
    return active


def _elements(matrix: Matrix, architecture: Architecture) -> int:
    """Return the parameters of one matrix: without scales of the cache, and without the vocabulary's padding."""
    if matrix.module.endswith(CACHE_SCALES):
        return 0
    padding = matrix.rows - architecture.vocab_size if matrix.module in (EMBEDDINGS, HEAD) else 0
    return matrix.elements - padding * architecture.hidden_size
