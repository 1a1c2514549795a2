"""Weights: what one rank loads, and how many parameters a model has."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from service.engine.arithmetic import round_up
from service.engine.formats.matrix import CACHE_SCALES, Matrix
from service.engine.formats.quantization import UNQUANTIZED, Quantization
from service.engine.formats.stored import matrix_bytes
from service.engine.inputs import Layout
from service.engine.layers import Architecture, DecoderLayer, DraftHead, MoeMlp
from service.engine.memory.draft_weights import draft_matrices
from service.engine.memory.matrices import embedding_matrices, layer_matrices
from service.engine.memory.shared_pool import pipeline_stages

__all__ = ["RankWeights", "num_active_parameters", "num_parameters", "rank_weights"]

EXPERT_TILE = 256  # columns that MXFP4 kernels work on at once [elements]
ELEMENT_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


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
    first, last = embedding_matrices(architecture, layout)
    stages = pipeline_stages(len(architecture.layers), layout.pipeline_parallel_size)
    ranks: list[dict[str, int]] = []
    for index, (start, end) in enumerate(stages):
        matrices = list(first) if index == 0 else []
        for layer in architecture.layers[start:end]:
            matrices += layer_matrices(architecture, layer, layout)
        if index == len(stages) - 1:
            matrices += last
        ranks.append(_by_component(matrices, quantization, ELEMENT_BYTES.get(architecture.dtype, 2)))
    if draft is not None:
        ranks[-1]["draft"] = _draft_bytes(draft, layout, quantization)
    fullest = max(range(len(ranks)), key=lambda index: sum(ranks[index].values()))
    param_bytes = sum(ranks[fullest].values())
    start, end = stages[fullest]
    after_load = sum(
        _repacked_bytes(architecture, layer, layout, quantization) for layer in architecture.layers[start:end]
    )
    if draft is not None and draft.is_quantized and fullest == len(stages) - 1:
        after_load += sum(_repacked_bytes(draft.body, layer, layout, quantization) for layer in draft.body.layers)
    return RankWeights(
        param_bytes=param_bytes,
        loaded_bytes=param_bytes + after_load,
        by_component={**ranks[fullest], "repacked": after_load},
    )


def _draft_bytes(draft: DraftHead, layout: Layout, quantization: Quantization) -> int:
    """Return the weights of the layers that draft, as the checkpoint or an EAGLE head's own stores them. [bytes]."""
    stored = quantization if draft.is_quantized else UNQUANTIZED
    element_bytes = ELEMENT_BYTES.get(draft.body.dtype, 2)
    return sum(matrix_bytes(it, stored, element_bytes) for it in draft_matrices(draft, layout))


def _repacked_bytes(architecture: Architecture, layer: DecoderLayer, layout: Layout, quantization: Quantization) -> int:
    """Return what loading adds to one layer. [bytes].

    MXFP4 experts are padded to whole tiles of the hidden size (gpt-oss-120b: 64.4 GiB logged for
    60.8 GiB of parameters). Latent attention keeps its up-projection in two bytes beside a
    quantized one, to absorb it into queries and outputs.

    Sources:
        vLLM 0.33 `quantization/utils/mxfp4_utils.py`, `layers/attention/mla_attention.py`
        (`process_weights_after_loading`).
    """
    extra = 0
    for matrix in layer_matrices(architecture, layer, layout):
        scheme = quantization.of(matrix.module)
        if scheme.keeps(matrix.module):
            continue
        if ".experts" in matrix.module and scheme.scheme == "mxfp4" and not matrix.scheme:
            hidden = architecture.hidden_size
            stored = matrix_bytes(matrix, quantization, ELEMENT_BYTES.get(architecture.dtype, 2))
            extra += stored * (round_up(hidden, EXPERT_TILE) - hidden) // hidden
        elif matrix.module.endswith("kv_b_proj"):
            extra += matrix.rows * matrix.columns * ELEMENT_BYTES.get(architecture.dtype, 2)
    return extra


def _by_component(matrices: list[Matrix], quantization: Quantization, element_bytes: int) -> dict[str, int]:
    components: dict[str, int] = {}
    for matrix in matrices:
        name = _component(matrix.module)
        components[name] = components.get(name, 0) + matrix_bytes(matrix, quantization, element_bytes)
    return components


def _component(module: str) -> str:
    """Return the part of the model a reader would name."""
    if ".experts" in module:
        return "experts"
    if module.startswith("visual"):
        return "encoder"
    if module in ("model.embed_tokens", "lm_head"):
        return "embeddings"
    if ".mlp." in module:
        return "feed_forward"
    return "attention" if ".layers." in module else "other"


@lru_cache(maxsize=1024)
def num_parameters(architecture: Architecture) -> int:
    """Return the parameters of the whole model: every matrix, norm, bias and embedding."""
    return _elements(architecture, _matrices(architecture))


@lru_cache(maxsize=1024)
def num_active_parameters(architecture: Architecture) -> int:
    """Return the parameters that one token passes through: of the experts only those it is routed to.

    active = total - sum over layers (1 - top_k / experts) x routed expert parameters
    """
    active = 0
    for layer in architecture.layers:
        share = (1, 1)
        if isinstance(layer.mlp, MoeMlp):
            share = (layer.mlp.num_experts_per_tok, layer.mlp.num_experts)
        for matrix in layer_matrices(architecture, layer, Layout()):
            if matrix.module.endswith(CACHE_SCALES):
                continue
            elements = matrix.count * (matrix.rows * matrix.columns + matrix.biases)
            active += elements * share[0] // share[1] if ".experts" in matrix.module else elements
    first, last = embedding_matrices(architecture, Layout())
    return active + _elements(architecture, [*first, *last])


def _matrices(architecture: Architecture) -> list[Matrix]:
    first, last = embedding_matrices(architecture, Layout())
    layers = [it for layer in architecture.layers for it in layer_matrices(architecture, layer, Layout())]
    return [*first, *layers, *last]


def _elements(architecture: Architecture, matrices: list[Matrix]) -> int:
    """Return the elements, without the padding of the vocabulary."""
    padded = sum(it.rows - architecture.vocab_size for it in matrices if it.module in ("model.embed_tokens", "lm_head"))
    total = sum(
        it.count * (it.rows * it.columns + it.biases) for it in matrices if not it.module.endswith(CACHE_SCALES)
    )
    return total - padded * architecture.hidden_size
