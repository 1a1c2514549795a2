"""Every matrix of a model as one rank holds it: its layers' own, and what stands around them.

Sources:
    vLLM 0.33 model files and `model_executor/layers/{linear,vocab_parallel_embedding}.py`.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from service.engine.derived import derived
from service.engine.formats.matrix import Matrix, vector
from service.engine.inputs import Layout
from service.engine.layers import Architecture, DecoderLayer, hyper_connections, stream_joiner, vocabulary_rows
from service.engine.patience import go_on

EMBEDDINGS: Final = "model.embed_tokens"
HEAD: Final = "lm_head"
TOWER: Final = "visual"
# A norm and a query, wherever a model attends over its earlier layers' outputs.
RESIDUAL_VECTORS: Final = 2


class Spread(NamedTuple):
    """Over which ranks attention and embeddings are split, and over which all else is."""

    attention: Layout
    rest: Layout


def beside_attention(layout: Layout, *, joins_copies: bool) -> Layout:
    """Return over which ranks all but attention is split: those that a backend sends tokens to have the rest whole.

    Source: SGLang 0.5.23 `models/deepseek_v2.py` (`_shared_expert_use_tp1`), `--moe-dense-tp-size 1` and
    `--enable-dp-lm-head`, as in LMSYS' commands for 96 H100 (github.com/sgl-project/sglang/issues/6017).
    """
    return joined(layout) if joins_copies and layout.all2all_backend is None else layout


def joined(layout: Layout) -> Layout:
    """Return a layout whose copies of the attention are ranks like any other."""
    ranks = layout.tensor_parallel_size * layout.data_parallel_size
    return replace(layout, tensor_parallel_size=ranks, data_parallel_size=1)


@derived(1)
def projecting_all(architecture: Architecture) -> Architecture:
    """Return a model whose every layer projects keys and values, whether it keeps a cache of them or not."""
    return architecture.with_mixers(lambda mixer: mixer.projecting_all())


def layer_matrices(
    architecture: Architecture, layer: DecoderLayer, layout: Layout, rest: Layout | None = None
) -> list[Matrix]:
    """Return what one rank holds of one decoder layer.

    Args:
        architecture: the model.
        layer: one of its layers.
        layout: how one replica is spread.
        rest: where all but attention is split otherwise.
    """
    go_on()
    prefix, hidden = f"model.layers.{layer.index}.", architecture.hidden_size
    matrices = [matrix for part in layer.mixers for matrix in part.matrices(hidden, layout, prefix)]
    matrices += layer.mlp.matrices(hidden, rest or layout, prefix)
    if (embedding := architecture.per_layer_embeddings) is not None:
        matrices += embedding.layer_matrices(hidden, prefix)
    if (updates := architecture.alternating_updates) is not None:
        matrices += updates.layer_matrices(hidden, layout.tensor_parallel_size, prefix)
    gated, streams, mixes = architecture.gated_connections, architecture.residual_streams, architecture.mixes_streams
    return [
        *matrices,
        vector(prefix + "norms", _norm_elements(architecture, layer)),
        *([] if gated is None else gated.layer_matrices(hidden, prefix)),
        hyper_connections(1 if gated else streams, hidden, prefix, mixes_streams=mixes),
    ]


def joined_streams(architecture: Architecture, module: str) -> list[Matrix]:
    """Return what makes one stream of several, before an output head."""
    hidden, streams = architecture.hidden_size, architecture.residual_streams
    if (gated := architecture.gated_connections) is not None:
        return gated.joining_matrices(hidden, module)
    return [stream_joiner(streams, hidden, module)]


def expert_columns(architecture: Architecture, layout: Layout) -> frozenset[int]:
    """Return the columns of routed experts that one rank holds of each."""
    kinds = {id(layer.mlp): layer for layer in architecture.layers}.values()
    matrices = (matrix for layer in kinds for matrix in layer_matrices(architecture, layer, layout, joined(layout)))
    return frozenset(matrix.inner_columns for matrix in matrices if matrix.is_routed and matrix.inner_side)


def _norm_elements(architecture: Architecture, layer: DecoderLayer) -> int:
    """Return the norms of one layer: one before each part (or on both sides), with biases, and of the residuals."""
    hidden, norms = architecture.hidden_size, architecture.norms_per_layer
    parts = sum(not part.is_empty for part in layer.parts)
    elements = min(norms, 2 * parts if norms > 2 else parts) * hidden * (2 if architecture.norm_biases else 1)
    return elements + (parts * RESIDUAL_VECTORS * hidden if architecture.has_attention_residuals else 0)


def embedding_matrices(
    architecture: Architecture, layout: Layout, rest: Layout | None = None
) -> tuple[list[Matrix], list[Matrix]]:
    """Return what the first and the last pipeline stage hold besides layers."""
    hidden, vocabulary, ends = architecture.hidden_size, architecture.vocab_size, architecture.ends
    split = vocabulary_rows(vocabulary, layout.tensor_parallel_size)
    shared = Matrix(module=EMBEDDINGS, rows=split, columns=hidden, is_linear=False)
    table = replace(shared, rows=vocabulary) if ends.has_whole_table else shared
    first = [table, vector("model.extra", architecture.extra_parameters), *_beside(architecture, layout)]
    final_norm = vector("model.norm", hidden * _final_vectors(architecture))
    rows = vocabulary_rows(vocabulary, (rest or layout).tensor_parallel_size)
    head = Matrix(module=HEAD, rows=rows, columns=hidden, biases=rows if architecture.has_head_bias else 0)
    more = ends.more_heads * [head]
    if architecture.ties_embeddings:
        return first, [final_norm, *more] if layout.pipeline_parallel_size == 1 else [final_norm, shared, *more]
    joining = joined_streams(architecture, "model.hc_head") if architecture.joins_streams else []
    return first, [final_norm, *joining, head, *more]


def _final_vectors(architecture: Architecture) -> int:
    """Return the vectors of the norm before the output head."""
    own = 0 if architecture.norms_per_layer == 0 else 2 if architecture.norm_biases else 1
    return own + RESIDUAL_VECTORS * architecture.has_attention_residuals


def _beside(architecture: Architecture, layout: Layout) -> list[Matrix]:
    """Return the tower, per-layer embeddings, shared blocks, and the projections that make and join streams."""
    hidden, tp = architecture.hidden_size, layout.tensor_parallel_size
    matrices: list[Matrix] = []
    if (encoder := architecture.encoder) is not None:
        matrices.append(vector(TOWER, encoder.parameters(tp)))
    if (embedding := architecture.per_layer_embeddings) is not None:
        ranks = 1 if architecture.ends.has_whole_table else tp
        matrices += embedding.model_matrices(hidden, len(architecture.layers), ranks)
    if (blocks := architecture.shared_blocks) is not None:
        matrices += blocks.matrices(hidden, tp)
    if (updates := architecture.alternating_updates) is not None:
        matrices += updates.model_matrices(hidden, tp)
    return matrices
