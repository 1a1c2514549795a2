"""Softmax attention of every layer, as each family's config and the engine's model code state it.

Sources:
    vLLM 0.33 `transformers_utils/model_arch_config_convertor.py` (heads, head size, fields'
    synonyms), `engine/arg_utils.py` (a window without `layer_types` holds in every layer) and
    the model files named beside each rule.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from service.engine.config_reader import ConfigReader, is_list, is_mapping, unknown_kind
from service.engine.errors import MissingConfigFieldError
from service.engine.layers import Attention, BlockSelector, GroupedQueryAttention, NoAttention

Mixers = tuple[tuple[Attention, ...], ...]
FULL_KINDS = frozenset({"full_attention", "attention", "global_attention", "full"})
SLIDING_KINDS = frozenset({"sliding_attention", "local_attention", "sliding_window_attention"})
SPARSE_BLOCK_TOKENS = 128  # the only block that MiniMax M3's kernels read [tokens]
GEMMA4_WIDE_HEAD_DIM = 512  # of full layers, where the config does not state it
KEY_VALUE_HEAD_NAMES = (
    "num_key_value_heads",
    "n_head_kv",
    "num_kv_heads",
    "multi_query_group_num",
    "num_attention_groups",
)


def num_hidden_layers(reader: ConfigReader) -> int:
    """Return the decoder layers."""
    return reader.layers("num_hidden_layers", "n_layer", "n_layers", "num_layers")


def hidden_size(reader: ConfigReader) -> int:
    """Return the width of the residual stream. [elements]."""
    return reader.positive("hidden_size", "n_embd", "d_model")


def base_attention(reader: ConfigReader) -> GroupedQueryAttention:
    """Return full attention with the heads that the config states."""
    heads = reader.positive("num_attention_heads", "n_head", "n_heads")
    key_value_heads = reader.positive(*KEY_VALUE_HEAD_NAMES, default=heads)
    head_dim = reader.integer("head_dim", "hidden_size_per_head", default=0) or hidden_size(reader) // heads
    if head_dim == 0:
        raise MissingConfigFieldError(
            f"hidden_size {hidden_size(reader)} leaves no width for {heads} heads",
            field="model_config.head_dim",
            accepted="a whole number above 0",
        )
    return GroupedQueryAttention(
        num_attention_heads=heads,
        num_key_value_heads=key_value_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
    )


def repeated(reader: ConfigReader, attention: Attention) -> Mixers:
    """Return the same mixer for every layer."""
    return ((attention,),) * num_hidden_layers(reader)


def by_layer_types(
    reader: ConfigReader, attention: GroupedQueryAttention, layer_types: Sequence[str], window: int
) -> Mixers:
    """Return windows where `layer_types` says sliding, full attention where it says full.

    Raises:
        UnsupportedModelError: a layer type without a rule.
    """
    sliding = replace(attention, sliding_window=window)
    mixers: list[tuple[Attention, ...]] = []
    for kind in layer_types[: num_hidden_layers(reader)]:
        if kind in SLIDING_KINDS:
            mixers.append((sliding,))
        elif kind in FULL_KINDS:
            mixers.append((attention,))
        else:
            raise unknown_kind("layer_types", kind, "full_attention, sliding_attention")
    if len(mixers) < num_hidden_layers(reader):
        raise MissingConfigFieldError(
            f"layer_types names {len(mixers)} of {num_hidden_layers(reader)} layers",
            field="model_config.layer_types",
            accepted="one entry per layer",
        )
    return tuple(mixers)


def alternating(reader: ConfigReader, period: int) -> tuple[str, ...]:
    """Return the published default of a family: every `period`-th layer is full, the others slide."""
    return tuple(
        "full_attention" if (index + 1) % period == 0 else "sliding_attention"
        for index in range(num_hidden_layers(reader))
    )


def windowed_like_llama(reader: ConfigReader, attention: GroupedQueryAttention | None = None) -> Mixers:
    """Return the rule most families share.

    `layer_types` decides layer by layer; without it a `sliding_window` holds in every layer; a
    window of 0 or null means none.
    """
    attention = attention or base_attention(reader)
    window = reader.integer("sliding_window", default=0)
    layer_types = reader.strings("layer_types")
    if layer_types is None:
        return repeated(reader, replace(attention, sliding_window=window) if window else attention)
    if not window and SLIDING_KINDS.intersection(layer_types):
        window = reader.positive("sliding_window")
    return by_layer_types(reader, attention, layer_types, window)


def full_only(reader: ConfigReader) -> Mixers:
    """Return full attention everywhere; any window in the config is not used by the model."""
    return repeated(reader, base_attention(reader))


def windowed_by_default(default_window: int) -> Callable[[ConfigReader], Mixers]:
    """Return the llama rule for families whose config class supplies a window when none is stated."""

    def parse(reader: ConfigReader) -> Mixers:
        attention = base_attention(reader)
        if reader.states("sliding_window") or reader.raw("layer_types") is not None:
            return windowed_like_llama(reader, attention)
        return repeated(reader, replace(attention, sliding_window=default_window))

    return parse


def qwen(reader: ConfigReader) -> Mixers:
    """Return Qwen's rule: a window counts only with `use_sliding_window`, from `max_window_layers` on."""
    attention = base_attention(reader)
    window = reader.integer("sliding_window", default=0)
    if not reader.flag("use_sliding_window") or not window:
        return repeated(reader, attention)
    layers = num_hidden_layers(reader)
    first = reader.integer("max_window_layers", default=layers)
    kinds = reader.strings("layer_types") or tuple(
        "sliding_attention" if index >= first else "full_attention" for index in range(layers)
    )
    return by_layer_types(reader, attention, kinds, window)


def qwen_moe(reader: ConfigReader) -> Mixers:
    """Return the rule of Qwen's MoE configs, which have no `layer_types`: all layers slide, or none."""
    attention = base_attention(reader)
    window = reader.integer("sliding_window", default=0) if reader.flag("use_sliding_window") else 0
    return repeated(reader, replace(attention, sliding_window=window) if window else attention)


def patterned(period: int, default_window: int, extra: int = 0) -> Callable[[ConfigReader], Mixers]:
    """Return the rule of families with a fixed pattern of sliding and full layers.

    Args:
        period: every `period`-th layer is full unless the config says otherwise. [layers]
        default_window: the window of the family's config class. [tokens]
        extra: tokens the family's model code adds to the window. [tokens]
    """

    def parse(reader: ConfigReader) -> Mixers:
        kinds = reader.strings("layer_types") or alternating(
            reader, reader.positive("sliding_window_pattern", "_sliding_window_pattern", default=period)
        )
        window = reader.integer("sliding_window", default=default_window)
        if not window and SLIDING_KINDS.intersection(kinds):
            kinds = ("full_attention",) * num_hidden_layers(reader)
        return by_layer_types(reader, base_attention(reader), kinds, window + extra)

    return parse


def gpt_oss(reader: ConfigReader) -> Mixers:
    """Return gpt-oss's rule: even layers slide (gpt_oss.py: `layer_idx % 2 == 0`)."""
    attention = replace(
        base_attention(reader), has_sinks=True, has_query_bias=True, has_key_value_bias=True, has_output_bias=True
    )
    sliding = replace(attention, sliding_window=reader.positive("sliding_window", default=128))
    return tuple((sliding,) if index % 2 == 0 else (attention,) for index in range(num_hidden_layers(reader)))


def llama4(reader: ConfigReader) -> Mixers:
    """Return Llama 4's rule: layers with rotary positions attend inside chunks (llama4.py)."""
    attention = base_attention(reader)
    layers = num_hidden_layers(reader)
    interval = reader.positive("no_rope_layer_interval", default=4)
    rope = reader.integers("no_rope_layers") or tuple(int((index + 1) % interval != 0) for index in range(layers))
    chunk = reader.integer("attention_chunk_size", default=8192)
    if len(rope) < layers:
        raise MissingConfigFieldError(
            f"no_rope_layers names {len(rope)} of {layers} layers",
            field="model_config.no_rope_layers",
            accepted="one entry per layer",
        )
    local = replace(attention, attention_chunk_size=chunk) if chunk else attention
    return tuple((local,) if rope[index] else (attention,) for index in range(layers))


def multi_query(reader: ConfigReader) -> Mixers:
    """Return StarCoder's rule: `multi_query` means one key-value head."""
    attention = base_attention(reader)
    if reader.flag("multi_query", default=True):
        attention = replace(attention, num_key_value_heads=1)
    return repeated(reader, attention)


def chatglm(reader: ConfigReader) -> Mixers:
    """Return ChatGLM's rule: `multi_query_group_num` key-value heads, where `multi_query_attention` says so."""
    attention = base_attention(reader)
    width = reader.positive("kv_channels", default=attention.head_dim)
    heads = attention.num_attention_heads
    return repeated(
        reader,
        replace(
            attention,
            num_key_value_heads=reader.positive("multi_query_group_num")
            if reader.flag("multi_query_attention")
            else heads,
            head_dim=width,
            v_head_dim=width,
            has_query_bias=reader.flag("add_qkv_bias") or reader.flag("add_bias_linear"),
            has_key_value_bias=reader.flag("add_qkv_bias") or reader.flag("add_bias_linear"),
            has_output_bias=reader.flag("add_bias_linear"),
        ),
    )


def opt(reader: ConfigReader) -> Mixers:
    """Return full attention of OPT models whose embeddings are as wide as their stream."""
    width = reader.positive("word_embed_proj_dim", default=hidden_size(reader))
    if width != hidden_size(reader):
        raise unknown_kind("word_embed_proj_dim", width, str(hidden_size(reader)))
    return full_only(reader)


def falcon(reader: ConfigReader) -> Mixers:
    """Return Falcon's rule: `multi_query` means one key-value head, unless the new decoder is used.

    The engine does not pass the cache's dtype on to this model (vLLM 0.33 `model_executor/models/falcon.py`).
    """
    attention = replace(base_attention(reader), keeps_model_dtype=True)
    if not reader.flag("new_decoder_architecture") and reader.flag("multi_query", default=True):
        attention = replace(attention, num_key_value_heads=1)
    return repeated(reader, attention)


def nemotron_nas(reader: ConfigReader) -> Mixers:
    """Return the rule of architecture search: `block_configs` gives or removes each layer's attention."""
    attention = base_attention(reader)
    mixers: list[tuple[Attention, ...]] = []
    for block in _blocks(reader):
        part = ConfigReader(block).mapping("attention") or {}
        settings = ConfigReader(part)
        if settings.flag("no_op") or settings.raw("n_heads_in_group") is None:
            if settings.raw("replace_with_linear"):
                raise unknown_kind("block_configs", "replace_with_linear", "attention or no_op")
            mixers.append((NoAttention(),))
            continue
        group = settings.positive("n_heads_in_group")
        mixers.append((replace(attention, num_key_value_heads=max(attention.num_attention_heads // group, 1)),))
    return tuple(mixers)


def _blocks(reader: ConfigReader) -> list[dict[str, object]]:
    blocks = reader.raw("block_configs")
    if not is_list(blocks) or len(blocks) != num_hidden_layers(reader):
        raise MissingConfigFieldError(
            "the config does not state block_configs for every layer",
            field="model_config.block_configs",
            accepted="one object per layer",
        )
    return [dict(block) if is_mapping(block) else {} for block in blocks]


def mimo_v2(reader: ConfigReader) -> Mixers:
    """Return MiMo-V2's rule: sliding layers have heads of their own (mimo_v2.py)."""
    attention = replace(base_attention(reader), v_head_dim=reader.positive("v_head_dim", default=1))
    if reader.raw("v_head_dim") is None:
        attention = replace(attention, v_head_dim=attention.head_dim)
    head_dim = reader.positive("swa_head_dim", default=attention.head_dim)
    sliding = replace(
        attention,
        num_attention_heads=reader.positive("swa_num_attention_heads", default=attention.num_attention_heads),
        num_key_value_heads=reader.positive("swa_num_key_value_heads", default=attention.num_key_value_heads),
        head_dim=head_dim,
        v_head_dim=reader.positive("swa_v_head_dim", default=head_dim),
        sliding_window=reader.positive("sliding_window_size", "sliding_window"),
        has_sinks=reader.flag("add_swa_attention_sink_bias"),
    )
    pattern = reader.integers("hybrid_layer_pattern")
    if pattern is None or len(pattern) < num_hidden_layers(reader):
        raise MissingConfigFieldError(
            "the config does not state hybrid_layer_pattern for every layer",
            field="model_config.hybrid_layer_pattern",
            accepted="one 0 (full) or 1 (sliding) per layer",
        )
    return tuple((sliding,) if pattern[index] else (attention,) for index in range(num_hidden_layers(reader)))


def gemma4(reader: ConfigReader) -> Mixers:
    """Return Gemma 4's rule: full layers have wider heads of their own, and late layers share caches."""
    sliding = replace(base_attention(reader), sliding_window=reader.positive("sliding_window", default=1024))
    wide = reader.integer("global_head_dim", default=GEMMA4_WIDE_HEAD_DIM) or sliding.head_dim
    full = replace(
        sliding,
        num_key_value_heads=(reader.optional("num_global_key_value_heads") if reader.flag("attention_k_eq_v") else None)
        or sliding.num_key_value_heads,
        head_dim=wide,
        v_head_dim=wide,
        sliding_window=None,
    )
    layers = num_hidden_layers(reader)
    kinds = reader.strings("layer_types") or alternating(reader, 6)
    if len(kinds) < layers:
        raise MissingConfigFieldError(
            f"layer_types names {len(kinds)} of {layers} layers",
            field="model_config.layer_types",
            accepted="one entry per layer",
        )
    first_shared = layers - reader.integer("num_kv_shared_layers", default=0)
    mixers: list[tuple[Attention, ...]] = []
    for index, kind in enumerate(kinds[:layers]):
        attention = full if kind in FULL_KINDS else sliding
        if index >= first_shared > 0:
            owner = max((i for i in range(first_shared) if kinds[i] == kind), default=None)
            attention = replace(attention, shares_cache_with=owner)
        mixers.append((attention,))
    return tuple(mixers)


def step(reader: ConfigReader) -> Mixers:
    """Return the rule of Step 3.5 and 3.7: windows by `layer_types`, where sliding layers may have heads of their own.

    Source: vLLM 0.33 `model_executor/models/step3p5.py` (`_get_num_attention_heads`).
    """
    full = replace(base_attention(reader), has_head_gate=reader.flag("use_head_wise_attn_gate"))
    other = ConfigReader(reader.mapping("attention_other_setting") or {})
    stated = reader.optional("num_sliding_attention_heads")
    if stated is None and other.raw("attention_type") == "sliding_attention":
        stated = other.positive("num_attention_heads")
    layer_types = reader.strings("layer_types")
    if layer_types is None:
        raise MissingConfigFieldError(
            "the config does not state layer_types",
            field="model_config.layer_types",
            accepted="full_attention or sliding_attention per layer",
        )
    mixers = by_layer_types(reader, full, layer_types, reader.positive("sliding_window"))
    sliding = replace(
        full,
        num_attention_heads=stated or full.num_attention_heads,
        sliding_window=reader.positive("sliding_window"),
    )
    return tuple((full,) if layer == (full,) else (sliding,) for layer in mixers)


def minimax_m3(reader: ConfigReader) -> Mixers:
    """Return MiniMax M3's rule: `sparse_attention_freq` marks the layers that attend to selected blocks.

    Source: vLLM 0.33 `models/minimax_m3/nvidia/model.py`.
    """
    attention = base_attention(reader)
    stated = ConfigReader(reader.mapping("sparse_attention_config") or {})
    frequency = stated.integers("sparse_attention_freq") or (0,) * num_hidden_layers(reader)
    if len(frequency) < num_hidden_layers(reader):
        raise MissingConfigFieldError(
            f"sparse_attention_freq names {len(frequency)} of {num_hidden_layers(reader)} layers",
            field="model_config.sparse_attention_config.sparse_attention_freq",
            accepted="one 0 (full) or 1 (selected blocks) per layer",
        )
    if not any(frequency):
        return repeated(reader, attention)
    selector = BlockSelector(
        num_heads=stated.positive("sparse_num_index_heads"),
        head_dim=stated.positive("sparse_index_dim"),
        block_size=stated.positive("sparse_block_size", default=128),
    )
    if selector.num_heads != attention.num_key_value_heads:
        raise unknown_kind("sparse_num_index_heads", selector.num_heads, str(attention.num_key_value_heads))
    if selector.block_size != SPARSE_BLOCK_TOKENS:
        raise unknown_kind("sparse_block_size", selector.block_size, str(SPARSE_BLOCK_TOKENS))
    selecting = replace(attention, selector=selector)
    return tuple((selecting,) if frequency[index] else (attention,) for index in range(num_hidden_layers(reader)))


def gemma3n(reader: ConfigReader) -> Mixers:
    """Return Gemma 3n's rule: four of five layers slide, and late layers read the last caches before them.

    Source: vLLM 0.33 `model_executor/models/gemma3n.py` (one layer back for full, two for sliding).
    """
    full = base_attention(reader)
    layers = num_hidden_layers(reader)
    kinds = reader.strings("layer_types") or alternating(reader, 5)
    own = by_layer_types(reader, full, kinds, reader.positive("sliding_window", default=512))
    first_shared = layers - reader.integer("num_kv_shared_layers", default=15)
    if not 2 <= first_shared <= layers:
        raise unknown_kind("num_kv_shared_layers", layers - first_shared, f"0 to {max(layers - 2, 0)}")
    back = {True: 1, False: 2}
    return tuple(
        mixers
        if index < first_shared
        else tuple(
            replace(it, shares_cache_with=first_shared - back[kinds[index] in FULL_KINDS])
            for it in mixers
            if isinstance(it, GroupedQueryAttention)
        )
        for index, mixers in enumerate(own)
    )


def step3_text(reader: ConfigReader) -> Mixers:
    """Return Step 3's rule: one key-value head, queries from a narrow projection (step3_text.py)."""
    attention = replace(base_attention(reader), num_key_value_heads=1)
    rank = reader.integer("share_q_dim", default=0) or attention.head_dim
    return repeated(reader, replace(attention, query_rank=rank))


def plamo3(reader: ConfigReader) -> Mixers:
    """Return PLaMo 3's rule: `interleaved_sliding_window` gives each layer its window, or null (plamo3.py)."""
    attention = base_attention(reader)
    windows = reader.raw("interleaved_sliding_window")
    if not is_list(windows) or len(windows) < num_hidden_layers(reader):
        raise MissingConfigFieldError(
            "the config does not state interleaved_sliding_window for every layer",
            field="model_config.interleaved_sliding_window",
            accepted="one window or null per layer",
        )
    stated = [ConfigReader({"interleaved_sliding_window": it}) for it in windows[: num_hidden_layers(reader)]]
    lengths = [it.integer("interleaved_sliding_window", default=0) for it in stated]
    return tuple((replace(attention, sliding_window=it) if it else attention,) for it in lengths)


def laguna(reader: ConfigReader) -> Mixers:
    """Return Laguna's rule: windows by `layer_types`, query heads and an output gate per layer."""
    heads = reader.integers("num_attention_heads_per_layer")
    gating = reader.raw("gating")
    mixers: list[tuple[Attention, ...]] = []
    for index, layer in enumerate(windowed_like_llama(reader)):
        attention = layer[0]
        if not isinstance(attention, GroupedQueryAttention):
            continue
        if heads is not None and index < len(heads) and heads[index] > 0:
            attention = replace(attention, num_attention_heads=heads[index])
        if gating in (True, "per-head"):
            attention = replace(attention, has_head_gate=True)
        elif gating:
            attention = replace(attention, has_output_gate=True)
        mixers.append((attention,))
    return tuple(mixers)


def gated_like_llama(reader: ConfigReader) -> Mixers:
    """Return the llama rule with a gate on the attention's output."""
    return windowed_like_llama(reader, replace(base_attention(reader), has_output_gate=True))
