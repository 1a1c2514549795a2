"""Every matrix of a model as one rank holds it.

Sources:
    vLLM 0.33 model files and `model_executor/layers/{linear,vocab_parallel_embedding}.py`.
"""

from dataclasses import replace
from typing import assert_never

from service.engine.arithmetic import ceil_div, round_up
from service.engine.formats.matrix import CACHE_SCALES, LATENT_CACHE_SCALES, Matrix
from service.engine.inputs import Layout
from service.engine.layers import (
    Architecture,
    Attention,
    CompressedAttention,
    DecoderLayer,
    DenseMlp,
    Encoder,
    GatedDeltaNet,
    GroupedQueryAttention,
    KimiDeltaAttention,
    LatentAttention,
    Mamba1,
    Mamba2,
    Mlp,
    MoeMlp,
    NoAttention,
    NoMlp,
    SharedBlocks,
    ShortConvolution,
)

# Embedding tables are padded so that they divide over ranks (vLLM DEFAULT_VOCAB_PADDING_SIZE).
VOCABULARY_PADDING = 64
# Query heads that the sparse kernel of DeepSeek V4 works on at once, at least.
SINK_PADDING = 64
# Rows of Kimi K3's fused projection are padded to a multiple of this on each rank.
KDA_ROW_ALIGNMENT = 16
# A norm and a query, wherever a model attends over its earlier layers' outputs.
RESIDUAL_VECTORS = 2


def layer_matrices(architecture: Architecture, layer: DecoderLayer, layout: Layout) -> list[Matrix]:
    """Return what one rank holds of one decoder layer."""
    prefix = f"model.layers.{layer.index}."
    hidden = architecture.hidden_size
    matrices: list[Matrix] = []
    for mixer in layer.mixers:
        matrices += _mixer(mixer, hidden, layout.tensor_parallel_size, prefix)
    matrices += _mlp(layer.mlp, hidden, layout, prefix)
    parts = sum(not isinstance(it, NoAttention) for it in layer.mixers) + (not isinstance(layer.mlp, NoMlp))
    norms = (
        min(architecture.norms_per_layer, 2 * parts if architecture.norms_per_layer > 2 else parts)
        * hidden
        * (2 if architecture.norm_biases else 1)
    )
    if architecture.has_attention_residuals:
        norms += parts * RESIDUAL_VECTORS * hidden
    streams = _hyper_connections(architecture, prefix)
    matrices += _layer_embedding(architecture, prefix) + _alternating(architecture, layout, prefix)
    return [*matrices, _vector(prefix + "norms", norms), streams]


def _layer_embedding(architecture: Architecture, prefix: str) -> list[Matrix]:
    """Return how one layer takes its own embedding in, whole on every rank."""
    embedding, hidden = architecture.per_layer_embeddings, architecture.hidden_size
    if embedding is None:
        return []
    return [
        Matrix(module=prefix + "per_layer_input_gate", rows=embedding.width, columns=hidden),
        Matrix(module=prefix + "per_layer_projection", rows=hidden, columns=embedding.width),
        _vector(prefix + "post_per_layer_input_norm", hidden),
    ]


def _alternating(architecture: Architecture, layout: Layout, prefix: str) -> list[Matrix]:
    """Return the coefficients that predict and correct the copies of the stream, and the low-rank residual."""
    updates, hidden = architecture.alternating_updates, architecture.hidden_size
    if updates is None:
        return []
    streams, rank = updates.num_streams, updates.residual_rank // layout.tensor_parallel_size
    coefficients = streams**2 + streams**3 + streams * hidden
    return [
        _vector(prefix + "altup", coefficients + hidden),
        _single(prefix + "altup.correct_output_scale", hidden),
        Matrix(module=prefix + "laurel.linear_left", rows=rank, columns=hidden),
        Matrix(module=prefix + "laurel.linear_right", rows=hidden, columns=rank),
        _vector(prefix + "laurel.post_laurel_norm", hidden),
    ]


def embedding_matrices(architecture: Architecture, layout: Layout) -> tuple[list[Matrix], list[Matrix]]:
    """Return what the first and the last pipeline stage hold besides layers."""
    rows = ceil_div(round_up(architecture.vocab_size, VOCABULARY_PADDING), layout.tensor_parallel_size)
    hidden = architecture.hidden_size
    table = Matrix(module="model.embed_tokens", rows=rows, columns=hidden, is_linear=False)
    head = Matrix(module="lm_head", rows=rows, columns=hidden, biases=rows if architecture.has_head_bias else 0)
    first: list[Matrix] = [table, _vector("model.extra", architecture.extra_parameters)]
    streams = architecture.residual_streams
    mixing = _single("model.hc_head", streams * streams * hidden + streams + 1 if streams > 1 else 0)
    own = 0 if architecture.norms_per_layer == 0 else 2 if architecture.norm_biases else 1
    vectors = own + RESIDUAL_VECTORS * architecture.has_attention_residuals
    final_norm = _vector("model.norm", hidden * vectors)
    if architecture.encoder is not None:
        first.append(_vector("visual", _tower_elements(architecture.encoder, layout.tensor_parallel_size)))
    first += _model_embeddings(architecture, layout)
    if not architecture.ties_embeddings:
        return first, [final_norm, mixing, head]
    return first, [final_norm] if layout.pipeline_parallel_size == 1 else [final_norm, table]


def _tower_elements(encoder: Encoder, tp: int) -> int:
    """Return the parameters of a tower, and of any beside it, on one rank."""
    is_whole = encoder.is_whole_where_uneven and encoder.num_heads is not None and encoder.num_heads % tp > 0
    elements = encoder.whole_parameters + ceil_div(encoder.split_parameters, 1 if is_whole else tp)
    return elements + (0 if encoder.beside is None else _tower_elements(encoder.beside, tp))


def _model_embeddings(architecture: Architecture, layout: Layout) -> list[Matrix]:
    """Return the tables of per-layer embeddings, and the projections that make and join copies of the stream."""
    tp, hidden = layout.tensor_parallel_size, architecture.hidden_size
    matrices: list[Matrix] = []
    if (embedding := architecture.per_layer_embeddings) is not None:
        rows = ceil_div(round_up(embedding.vocab_size, VOCABULARY_PADDING), tp)
        width = len(architecture.layers) * embedding.width
        matrices += [
            Matrix(module="model.embed_tokens_per_layer", rows=rows, columns=width, is_linear=False),
            Matrix(module="model.per_layer_model_projection", rows=width // tp, columns=hidden),
            _vector("model.per_layer_projection_norm", embedding.width),
        ]
    if architecture.shared_blocks is not None:
        matrices += _shared_blocks(architecture.shared_blocks, hidden, tp)
    if (updates := architecture.alternating_updates) is not None:
        count = 2 * (updates.num_streams - 1)
        matrices.append(Matrix(module="model.altup_projections", rows=hidden // tp, columns=hidden, count=count))
    return matrices


def _shared_blocks(blocks: SharedBlocks, hidden: int, tp: int) -> list[Matrix]:
    """Return the shared blocks once each, and the low-rank adapters of every use."""
    prefix, width, size = "model.shared_transformer.", blocks.attention_width, blocks.intermediate_size // tp
    rank, uses = blocks.adapter_rank, blocks.num_uses
    always = _dense(size, hidden, prefix + "feed_forward.", is_gated=True, has_bias=False)
    matrices = [
        Matrix(module=prefix + "qkv_proj", rows=3 * width // tp, columns=width, parts=3),
        Matrix(module=prefix + "o_proj", rows=hidden, columns=width // tp),
        *always,
        _vector(prefix + "norms", width + hidden),
    ]
    adapters = [(hidden, 2 * size)] + [(width, width // tp)] * (3 if blocks.adapts_attention else 0)
    return [replace(it, count=blocks.num_blocks) for it in matrices] + [
        Matrix(module=prefix + "adapters", rows=rows, columns=columns, count=uses)
        for inputs, outputs in adapters
        for rows, columns in ((rank // tp, inputs), (outputs, rank))
    ]


def _vector(module: str, elements: int) -> Matrix:
    return Matrix(module=module, rows=elements, columns=1, is_linear=False)


def _mixer(mixer: Attention, hidden: int, tp: int, prefix: str) -> list[Matrix]:
    match mixer:
        case GroupedQueryAttention():
            return _grouped(mixer, hidden, tp, prefix + "self_attn.")
        case LatentAttention():
            return _latent(mixer, hidden, tp, prefix + "self_attn.")
        case CompressedAttention():
            return _compressed(mixer, hidden, tp, prefix + "attn.")
        case GatedDeltaNet():
            return _delta_net(mixer, hidden, tp, prefix + "linear_attn.")
        case KimiDeltaAttention():
            return _kimi_delta(mixer, hidden, tp, prefix + "self_attn.")
        case Mamba2():
            return _mamba2(mixer, hidden, tp, prefix + "mixer.")
        case Mamba1():
            return _mamba1(mixer, hidden, tp, prefix + "mixer.")
        case ShortConvolution():
            return _short_convolution(mixer, hidden, tp, prefix + "conv.")
        case NoAttention():
            return []
        case _ as never:
            assert_never(never)


def _grouped(it: GroupedQueryAttention, hidden: int, tp: int, prefix: str) -> list[Matrix]:
    """Return query, key, value and output; key-value heads are replicated above their number."""
    if it.is_shared_block:
        return [Matrix(module=prefix + "linear", rows=hidden, columns=hidden)]
    if it.query_rank:
        return _low_rank_queries(it, hidden, tp, prefix)
    heads = it.num_attention_heads // tp
    kv_heads = max(1, it.num_key_value_heads // tp)
    query = heads * it.head_dim * (2 if it.has_output_gate else 1)
    key_value = kv_heads * (it.head_dim + it.v_head_dim)
    shares = it.shares_cache_with is not None
    rows = query + (0 if shares else key_value)
    index_norms = 0
    if it.selector is not None:  # its queries and one key come out of the same projection
        rows += (max(1, it.selector.num_heads // tp) + 1) * it.selector.head_dim
        index_norms = 2 * it.selector.head_dim
    norms = it.norm_elements + index_norms + ((heads + kv_heads) * it.head_dim if it.has_wide_norms else 0)
    biases = query * it.has_query_bias + key_value * it.has_key_value_bias
    return [
        Matrix(module=prefix + "q_proj", rows=rows, columns=hidden, parts=1 if shares else 3, biases=biases),
        Matrix(
            module=prefix + "o_proj",
            rows=hidden,
            columns=heads * it.v_head_dim,
            biases=hidden if it.has_output_bias else 0,
        ),
        _vector(prefix + "norms", norms),
        Matrix(module=prefix + "g_proj", rows=heads if it.has_head_gate else 0, columns=hidden),
        _vector(prefix + "sinks", heads if it.has_sinks else 0),
        Matrix(module=prefix + CACHE_SCALES, rows=2, columns=1, is_linear=False, element_bytes=4),
    ]


def _low_rank_queries(it: GroupedQueryAttention, hidden: int, tp: int, prefix: str) -> list[Matrix]:
    """Return Step 3's attention: a narrow query and one key and value, whole on every rank, before the query's heads.

    Source: vLLM 0.33 `model_executor/models/step3_text.py`.
    """
    width = it.num_attention_heads // tp * it.head_dim
    rows = it.query_rank + it.num_key_value_heads * (it.head_dim + it.v_head_dim)
    return [
        Matrix(module=prefix + "qkv_proj", rows=rows, columns=hidden),
        Matrix(module=prefix + "wq", rows=width, columns=it.query_rank),
        Matrix(module=prefix + "o_proj", rows=hidden, columns=width),
        _vector(prefix + "inter_norm", it.query_rank),
        Matrix(module=prefix + CACHE_SCALES, rows=2, columns=1, is_linear=False, element_bytes=4),
    ]


def _latent(it: LatentAttention, hidden: int, tp: int, prefix: str) -> list[Matrix]:
    """Return the down-projections (whole on every rank) and up-projections (split by heads)."""
    heads = it.num_attention_heads // tp
    query_width = heads * (it.qk_nope_head_dim + it.qk_rope_head_dim)
    latent = it.kv_lora_rank + it.qk_rope_head_dim
    matrices = [
        Matrix(
            module=prefix + "kv_b_proj",
            rows=heads * (it.qk_nope_head_dim + it.v_head_dim),
            columns=it.kv_lora_rank,
        ),
        Matrix(module=prefix + "o_proj", rows=hidden, columns=heads * it.v_head_dim),
        _vector(prefix + "norms", it.kv_lora_rank + (it.q_lora_rank or 0)),
        Matrix(module=prefix + LATENT_CACHE_SCALES, rows=2, columns=1, is_linear=False, element_bytes=4),
    ]
    if it.q_lora_rank is None:
        matrices += [
            Matrix(module=prefix + "q_proj", rows=query_width, columns=hidden),
            Matrix(module=prefix + "kv_a_proj_with_mqa", rows=latent, columns=hidden),
        ]
    else:
        matrices += [
            Matrix(module=prefix + "q_a_proj", rows=it.q_lora_rank, columns=hidden),
            Matrix(module=prefix + "kv_a_proj_with_mqa", rows=latent, columns=hidden),
            Matrix(module=prefix + "q_b_proj", rows=query_width, columns=it.q_lora_rank),
        ]
    if it.has_output_gate:
        matrices.append(Matrix(module=prefix + "g_proj", rows=heads * it.v_head_dim, columns=hidden))
    if it.has_sinks:
        matrices.append(_single(prefix + "sinks", heads))
    if it.indexer is not None:
        index = it.indexer
        matrices += [
            Matrix(module=prefix + "indexer.wq_b", rows=index.num_heads * index.head_dim, columns=index.q_lora_rank),
            Matrix(
                module=prefix + "indexer.wk", rows=index.head_dim + index.num_heads, columns=hidden, is_linear=False
            ),
            Matrix(
                module=prefix + "indexer.k_norm", rows=2 * index.head_dim, columns=1, is_linear=False, element_bytes=4
            ),
        ]
    return matrices


def _compressed(it: CompressedAttention, hidden: int, tp: int, prefix: str) -> list[Matrix]:
    """Return DeepSeek V4's attention: down-projections, compressors and indexer whole on every rank."""
    heads = it.num_attention_heads // tp
    rows = it.o_groups * it.o_lora_rank // tp
    padded_heads = max(heads, SINK_PADDING)
    matrices = [
        Matrix(module=prefix + "fused_wqa_wkv", rows=it.q_lora_rank + it.head_dim, columns=hidden, scale_bytes=1),
        Matrix(module=prefix + "wq_b", rows=heads * it.head_dim, columns=it.q_lora_rank, scale_bytes=1),
        Matrix(
            module=prefix + "wo_a",
            rows=rows,
            columns=it.num_attention_heads * it.head_dim // it.o_groups,
            scale_bytes=1,
        ),
        Matrix(module=prefix + "wo_b", rows=hidden, columns=rows, scale_bytes=1),
        _vector(prefix + "norms", it.q_lora_rank + it.head_dim),
        _single(prefix + "attn_sink", padded_heads),
    ]
    if it.compress_ratio > 1:
        overlap = 1 if it.indexer is None else 2
        matrices += _compressor(it.head_dim, it.compress_ratio, overlap, hidden, prefix + "compressor.")
    if it.indexer is not None:
        index = it.indexer
        matrices += [
            Matrix(
                module=prefix + "indexer.wq_b",
                rows=index.num_heads * index.head_dim,
                columns=index.q_lora_rank,
                scale_bytes=1,
            ),
            Matrix(module=prefix + "indexer.weights_proj", rows=index.num_heads, columns=hidden, is_linear=False),
            *_compressor(index.head_dim, it.compress_ratio, 2, hidden, prefix + "indexer.compressor."),
        ]
    return matrices


def _compressor(head_dim: int, ratio: int, overlap: int, hidden: int, prefix: str) -> list[Matrix]:
    width = overlap * head_dim
    return [
        _single(prefix + "ape", ratio * width),
        Matrix(module=prefix + "fused_wkv_wgate", rows=2 * width, columns=hidden, is_linear=False),
        _vector(prefix + "norm", head_dim),
    ]


def _single(module: str, elements: int) -> Matrix:
    """Return a vector kept in single precision."""
    return Matrix(module=module, rows=elements, columns=1, is_linear=False, element_bytes=4)


def _hyper_connections(architecture: Architecture, prefix: str) -> Matrix:
    """Return the fp32 weights that mix residual streams before and after a layer's two parts."""
    streams, mixes = architecture.residual_streams, architecture.mixes_streams
    rows = (2 + streams * mixes) * streams
    elements = 2 * (rows * streams * architecture.hidden_size + rows + 2 + mixes)
    return _single(prefix + "hc", elements if streams > 1 else 0)


def _delta_net(it: GatedDeltaNet, hidden: int, tp: int, prefix: str) -> list[Matrix]:
    key = it.num_key_heads * it.key_head_dim // tp
    value = it.num_value_heads * it.value_head_dim // tp
    heads = it.num_value_heads // tp
    matrices = [
        Matrix(module=prefix + "in_proj_qkv", rows=2 * key + 2 * value, columns=hidden, parts=4),
        _vector(prefix + "head_norms", 2 * it.key_head_dim if it.has_head_norms else 0),
        Matrix(module=prefix + "out_proj", rows=hidden, columns=value),
    ]
    if it.has_fixed_decay:
        return [*matrices, _vector(prefix + "norm", value)]
    decay = _vector(prefix + "A_log", heads) if it.has_narrow_decay else _single(prefix + "A_log", heads)
    return [
        *matrices,
        Matrix(module=prefix + "in_proj_b", rows=2 * heads, columns=hidden, parts=2),
        Matrix(module=prefix + "conv1d", rows=2 * key + value, columns=it.conv_kernel_size, is_linear=False),
        _vector(prefix + "dt_bias", heads),
        decay,
        _vector(prefix + "norm", it.value_head_dim),
    ]


def _kimi_delta(it: KimiDeltaAttention, hidden: int, tp: int, prefix: str) -> list[Matrix]:
    """Return Kimi's linear attention: decay and low-rank gate have one narrow projection, whole on every rank."""
    heads = it.num_heads // tp
    width = heads * it.head_dim
    rows = (4 if it.has_full_rank_gate else 3) * width + it.head_dim + heads
    if it.has_full_rank_gate:
        rows = round_up(rows, KDA_ROW_ALIGNMENT)
    matrices = [
        Matrix(module=prefix + "in_proj_qkvgfab", rows=rows, columns=hidden, parts=6),
        Matrix(module=prefix + "f_b_proj", rows=width, columns=it.head_dim),
        _single(prefix + "conv1d", 3 * width * it.conv_kernel_size),
        _single(prefix + "dt_bias_and_decay", width + heads),
        _vector(prefix + "o_norm", it.head_dim),
        Matrix(module=prefix + "o_proj", rows=hidden, columns=width),
    ]
    if not it.has_full_rank_gate:
        matrices += [
            Matrix(module=prefix + "g_a_proj", rows=it.head_dim, columns=hidden),
            Matrix(module=prefix + "g_b_proj", rows=width, columns=it.head_dim),
        ]
    return matrices


def _mamba2(it: Mamba2, hidden: int, tp: int, prefix: str) -> list[Matrix]:
    groups = it.num_groups if it.num_groups % tp == 0 else tp
    width = it.num_heads * it.head_dim // tp
    state = 2 * groups * it.state_size // tp
    heads = it.num_heads // tp
    conv = width + state
    in_rows = 2 * width + state + heads
    return [
        Matrix(module=prefix + "in_proj", rows=in_rows, columns=hidden, biases=in_rows if it.has_bias else 0),
        Matrix(
            module=prefix + "conv1d",
            rows=conv,
            columns=it.conv_kernel_size,
            is_linear=False,
            biases=conv if it.has_conv_bias else 0,
        ),
        _vector(prefix + "norm_and_skip", (width if it.has_norm else 0) + 2 * heads),
        Matrix(module=prefix + "A", rows=heads, columns=1, is_linear=False, element_bytes=4),
        Matrix(module=prefix + "out_proj", rows=hidden, columns=width, biases=hidden if it.has_bias else 0),
    ]


def _mamba1(it: Mamba1, hidden: int, tp: int, prefix: str) -> list[Matrix]:
    width = it.intermediate_size // tp
    rank = it.time_step_rank
    return [
        Matrix(module=prefix + "in_proj", rows=2 * width, columns=hidden, biases=2 * width if it.has_bias else 0),
        Matrix(
            module=prefix + "conv1d",
            rows=width,
            columns=it.conv_kernel_size,
            is_linear=False,
            biases=width if it.has_conv_bias else 0,
        ),
        Matrix(module=prefix + "x_proj", rows=rank + 2 * it.state_size, columns=width),
        Matrix(module=prefix + "dt_proj", rows=width, columns=rank, biases=width, is_linear=False),
        _single(prefix + "A", width * it.state_size),
        _vector(prefix + "D", width),
        _vector(prefix + "norms", it.norm_elements),
        Matrix(module=prefix + "out_proj", rows=hidden, columns=width, biases=hidden if it.has_bias else 0),
    ]


def _short_convolution(it: ShortConvolution, hidden: int, tp: int, prefix: str) -> list[Matrix]:
    width = it.hidden_size // tp
    return [
        Matrix(module=prefix + "in_proj", rows=3 * width, columns=hidden, biases=3 * width if it.has_bias else 0),
        Matrix(module=prefix + "conv", rows=width, columns=it.conv_kernel_size, is_linear=False),
        Matrix(module=prefix + "out_proj", rows=hidden, columns=width, biases=hidden if it.has_bias else 0),
    ]


def _mlp(mlp: Mlp, hidden: int, layout: Layout, prefix: str) -> list[Matrix]:
    match mlp:
        case DenseMlp():
            return _dense(
                mlp.intermediate_size
                // (1 if mlp.is_whole or _takes_own_tokens(mlp, layout) else layout.tensor_parallel_size),
                hidden,
                prefix + "mlp.",
                is_gated=mlp.is_gated,
                has_bias=mlp.has_bias,
                has_output_bias=mlp.has_output_bias,
            )
        case MoeMlp():
            return _experts(mlp, hidden, layout, prefix + "mlp.")
        case NoMlp():
            return []
        case _ as never:
            assert_never(never)


def _takes_own_tokens(mlp: DenseMlp | MoeMlp, layout: Layout) -> bool:
    """Return whether each rank runs what it holds for tokens of its own (vLLM 0.33 `use_sequence_parallel_moe`)."""
    return mlp.splits_tokens and layout.expert_parallel and layout.data_parallel_size > 1


def _dense(
    size: int, hidden: int, prefix: str, *, is_gated: bool, has_bias: bool = False, has_output_bias: bool = False
) -> list[Matrix]:
    parts = 2 if is_gated else 1
    return [
        Matrix(
            module=prefix + ("gate_proj" if is_gated else "up_proj"),
            rows=parts * size,
            columns=hidden,
            parts=parts,
            biases=parts * size if has_bias else 0,
        ),
        Matrix(
            module=prefix + "down_proj",
            rows=hidden,
            columns=size,
            biases=hidden if has_bias or has_output_bias else 0,
        ),
    ]


def _routed(mlp: MoeMlp, size: int, width: int, count: int, prefix: str) -> list[Matrix]:
    """Return `count` experts of `size` columns each."""
    parts = 2 if mlp.is_gated else 1
    return [
        Matrix(
            module=prefix + "experts.gate_up_proj",
            rows=parts * size,
            columns=width,
            count=count,
            parts=parts,
            scheme=mlp.expert_scheme,
            biases=parts * size if mlp.has_bias else 0,
        ),
        Matrix(
            module=prefix + "experts.down_proj",
            rows=width,
            columns=size,
            count=count,
            scheme=mlp.expert_scheme,
            biases=width if mlp.has_bias else 0,
        ),
    ]


def _experts(mlp: MoeMlp, hidden: int, layout: Layout, prefix: str) -> list[Matrix]:
    """Return routed experts (cut by tensor parallelism, or dealt out whole), router and shared experts."""
    ranks = layout.tensor_parallel_size * layout.data_parallel_size
    count = ceil_div(mlp.num_experts, ranks) if layout.expert_parallel else mlp.num_experts
    # Without expert parallelism the engine cuts experts over all ranks of the replica.
    size = mlp.moe_intermediate_size if layout.expert_parallel else ceil_div(mlp.moe_intermediate_size, ranks)
    if ranks > 1 and not layout.expert_parallel:
        size = max(size, mlp.min_rank_columns)
    width = mlp.latent_size or hidden
    routed = mlp.num_experts * (2 if mlp.image_expert_size else 1) + mlp.num_idle_experts
    # Beside a dense network of its own, the experts are not part of it by name either.
    experts = prefix.removesuffix("mlp.") if mlp.dense_intermediate_size else prefix
    padded = _routed(mlp, round_up(size, mlp.rank_padding), width, count, experts)
    matrices = [
        *(replace(it, in_mxfp4=it4) for it, it4 in zip(_routed(mlp, size, width, count, experts), padded, strict=True)),
        Matrix(
            module=prefix + "gate",
            rows=routed,
            columns=hidden,
            is_linear=False,
            element_bytes=4 if mlp.has_wide_router else None,
            biases=routed if mlp.has_router_bias else 0,
        ),
    ]
    if mlp.image_expert_size:
        matrices += _routed(
            mlp, ceil_div(mlp.image_expert_size, 1 if layout.expert_parallel else ranks), width, count, experts
        )
    if mlp.hash_table_rows:
        matrices.append(_single(prefix + "tid2eid", mlp.hash_table_rows * mlp.num_experts_per_tok))
    if mlp.has_score_correction:
        matrices.append(_single(prefix + "correction", routed))
    if mlp.shared_expert_intermediate_size:
        is_whole = _takes_own_tokens(mlp, layout)
        shared = mlp.shared_expert_intermediate_size // (1 if is_whole else layout.tensor_parallel_size)
        always = _dense(shared, hidden, prefix + "shared_experts.", is_gated=mlp.is_gated, has_bias=False)
        matrices += [replace(it, scale_bytes=1) for it in always] if mlp.expert_scheme else always
    if mlp.latent_size:
        matrices += [
            Matrix(module=prefix + "fc1_latent_proj", rows=width, columns=hidden),
            Matrix(module=prefix + "fc2_latent_proj", rows=hidden, columns=width),
            _vector(prefix + "latent_norm", width if mlp.has_latent_norm else 0),
        ]
    if mlp.dense_intermediate_size:
        dense = mlp.dense_intermediate_size // layout.tensor_parallel_size
        beside = _dense(dense, hidden, prefix, is_gated=mlp.is_gated)
        matrices += [replace(it, count=mlp.dense_count) for it in beside]
    if mlp.has_expert_norms:
        # three norms around the experts, the router's scale, and one scale per expert
        matrices.append(_vector(prefix + "expert_norms", 4 * hidden + mlp.num_experts))
    if mlp.has_shared_gate:
        matrices.append(_vector(prefix + "shared_expert_gate", hidden))
    return matrices
