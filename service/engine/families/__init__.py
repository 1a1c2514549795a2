"""From a published config.json to an `Architecture`, and to what it says of its quantization."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from service.engine.config_reader import MAX_COUNT, ConfigReader, is_list, is_mapping, text_reader, unknown_kind
from service.engine.errors import MissingConfigFieldError, UnsupportedModelError
from service.engine.families.adapters import joined_inputs, takes_adapters
from service.engine.families.captured import images_captured_since, prompts_left_out
from service.engine.families.early_states import early_states_over_stages, hands_early_states
from service.engine.families.ends import ends_of
from service.engine.families.in_sglang import (
    keeps_features,
    pads_experts_since,
    pools_all_layers,
    reads_text_alone,
    sglang_copies,
    sglang_ends,
    sglang_tower,
)
from service.engine.families.incomplete import all_missing
from service.engine.families.llama import EXAMPLE_CLASS
from service.engine.families.own_code import brings_code
from service.engine.families.parts.attention import KEY_VALUE_HEAD_NAMES
from service.engine.families.parts.biases import stated_biases
from service.engine.families.parts.context import context_lengths, former_context, plain_context
from service.engine.families.parts.family import Family
from service.engine.families.parts.profiling import profiled
from service.engine.families.parts.sizes import hidden_size
from service.engine.families.parts.supplied import with_supplied
from service.engine.families.quantized import as_loaded, cautions_of_quantization, stated_quantization
from service.engine.families.registry import REGISTRY, Registry
from service.engine.families.served_by import lacked_by, unstaged_by
from service.engine.families.since import lacked_until
from service.engine.families.vocabulary import adapted_class, table_adapted, vocabulary_adapted
from service.engine.layers import Architecture, Attention, DecoderLayer, Encoder, HeadDetails, Heads, Mlp

__all__ = [
    "EXAMPLE_CLASS",
    "REGISTRY",
    "as_loaded",
    "cautions_of_quantization",
    "parse_architecture",
    "stated_quantization",
]

# What the engine runs a published dtype in: full precision, and what no layer computes in, as bfloat16.
DTYPES = {
    **dict.fromkeys(("float16", "half"), "float16"),
    **dict.fromkeys(("bfloat16", "float32", "float", "float64", "double", "auto"), "bfloat16"),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "int8", "uint8"), "bfloat16"),
}


def parse_architecture(config: Mapping[str, object], registry: Registry = REGISTRY) -> Architecture:
    """Return what a config describes.

    Raises:
        UnsupportedModelError: an architecture, layer type or option without a rule, by its name.
        MissingConfigFieldError: fields that the rules need and the config does not state, all of them.
    """
    config = with_supplied(config)
    try:
        return _architecture(config, registry)
    except MissingConfigFieldError as first:
        raise all_missing(config, first, lambda tried: _architecture(tried, registry)) from None


def _architecture(config: Mapping[str, object], registry: Registry) -> Architecture:
    """Return what a config describes; refuse the first field that is not stated."""
    name = _architecture_name(config)
    outer = registry.family(name)
    inner = registry.language_model(config, outer)
    reader = text_reader(config)
    if inner.restates is not None:
        reader = reader.restated(inner.restates(reader))
    architecture = _whole(reader, outer, _language_model(reader, inner, name, registry.unscaled_types), config)
    architecture = _by_inner(architecture, name if outer.wraps is None else outer.wraps(config, registry))
    return architecture if outer.draft is None else replace(architecture, mtp=outer.draft.read(reader, architecture))


def _language_model(reader: ConfigReader, family: Family, name: str, unscaled_types: Collection[str]) -> Architecture:
    """Return the language model alone."""
    mixers = family.attention(reader) if family.attention is not None else ()
    mlps = family.feed_forward(reader, len(mixers))
    norms = family.norms_per_layer if isinstance(family.norms_per_layer, int) else family.norms_per_layer(reader)
    ties_embeddings = _ties_embeddings(reader, family)
    has_head_bias = reader.flag("lm_head_bias", default=family.has_head_bias)
    extra_parameters = family.extra_parameters(reader)
    longest, unasked = context_lengths(reader, unscaled_types)
    layers = _layers(reader, family, mixers, mlps)
    return Architecture(
        name=name,
        dtype=_dtype(reader),
        hidden_size=hidden_size(reader),
        vocab_size=reader.positive("vocab_size", "padded_vocab_size"),
        max_position_embeddings=longest,
        default_max_model_len=unasked,
        former_max_model_len=former_context(reader, unscaled_types),
        plain_max_model_len=plain_context(reader, unscaled_types),
        layers=layers,
        ties_embeddings=ties_embeddings,
        norms_per_layer=norms,
        norm_biases=family.has_norm_biases,
        has_head_bias=has_head_bias,
        has_attention_residuals=reader.raw("attn_res_block_size") is not None,
        shared_blocks=family.shared_blocks(reader) if family.shared_blocks is not None else None,
        extra_parameters=extra_parameters,
        rotary_tables=family.rotary(reader, layers),
    )


def _dtype(reader: ConfigReader) -> str:
    """Return what the model runs in, by the dtype that it was published in.

    Raises:
        UnsupportedModelError: that is none.
    """
    stated = reader.raw("dtype", "torch_dtype")
    dtype = DTYPES.get(str("bfloat16" if stated is None else stated).removeprefix("torch."))
    if dtype is None:
        name = "torch_dtype" if reader.raw("dtype") is None else "dtype"
        raise unknown_kind(name, stated, "bfloat16, float16 or float32")
    return dtype


def _check_heads(reader: ConfigReader, mixers: Iterable[Attention]) -> None:
    """Raise UnsupportedModelError where query heads cannot share key and value heads alike.

    Source: vLLM 0.33 `v1/attention/backends/flash_attn.py` (`num_heads % num_kv_heads == 0`).
    """
    for shared in (mixer.sharing for mixer in mixers):
        if shared is not None and shared.query_heads % shared.key_value_heads:
            stated = (name for name in KEY_VALUE_HEAD_NAMES if reader.raw(name) is not None)
            heads = shared.query_heads
            field = next(stated, KEY_VALUE_HEAD_NAMES[0])
            raise UnsupportedModelError(
                f"{heads} attention heads cannot share {shared.key_value_heads} key and value heads alike",
                field=f"model_config.{field}",
                accepted=f"a whole number that divides {heads}",
            )


def _layers(
    reader: ConfigReader, family: Family, mixers: tuple[tuple[Attention, ...], ...], mlps: tuple[Mlp, ...]
) -> tuple[DecoderLayer, ...]:
    """Return the layers, whose softmax attention has its family's biases and norms; few of them differ."""

    def details(heads: Heads) -> HeadDetails:
        inputs, output = family.biases(reader, stated_biases(reader, heads))
        return HeadDetails(
            has_input_biases=inputs, has_output_bias=output, norm_elements=family.head_norms(reader, heads)
        )

    once = {tuple(map(id, layer)): layer for layer in mixers}  # most layers share their parts, which are hashed once
    _check_heads(reader, {mixer for layer in once.values() for mixer in layer})
    alike = {layer: tuple(mixer.detailed(details) for mixer in layer) for layer in dict.fromkeys(once.values())}
    detailed = {identities: alike[layer] for identities, layer in once.items()}
    return tuple(
        DecoderLayer(index=index, mixers=detailed[tuple(map(id, layer))], mlp=mlps[index])
        for index, layer in enumerate(mixers)
    )


def _whole(reader: ConfigReader, family: Family, model: Architecture, config: Mapping[str, object]) -> Architecture:
    """Return the language model with what its outermost class puts around it."""
    per_layer, updates = family.per_layer_embeddings, family.alternating_updates
    connections = family.gated_connections
    return replace(
        model,
        residual_streams=family.residual_streams(reader),
        mixes_streams=family.mixes_streams,
        joins_streams=family.joins_streams,
        gated_connections=connections(reader) if connections is not None else None,
        hosted_parameters=family.hosted_parameters(reader),
        hosts_fp8=family.hosts_fp8,
        is_hybrid=family.is_hybrid,
        is_convolved=family.is_convolved,
        per_layer_embeddings=per_layer(reader) if per_layer is not None else None,
        alternating_updates=updates(reader) if updates is not None else None,
        encoder=_encoder(config, family),
        tower_size=_tower_size(config, family),
        has_window_pool=family.has_window_pool,
        sees_images_both_ways=_sees_images_both_ways(reader, family, config),
        both_ways_since=family.both_ways_since,
        prefers_fp8_cache=family.prefers_fp8_cache,
        runs_in_float16=family.runs_in_float16,
        deals_out_experts=family.deals_out_experts,
        drafts_beside_states=family.drafts_beside_states,
        has_stages=family.has_stages,
        lacked_until=lacked_until(model.name),
        lacked_by=lacked_by(model.name),
        unstaged_by=unstaged_by(model.name),
        images_captured_since=images_captured_since(model.name),
        prompts_left_out=prompts_left_out(model.name),
        brings_code=brings_code(model.name),
        hands_early_states=hands_early_states(model.name),
        ends=ends_of(model.name),
        sglang_ends=sglang_ends(model.name),
        sglang_tower=sglang_tower(model.name),
        sglang_copies=sglang_copies(model.name),
        padded_in_sglang=pads_experts_since(model.name),
        keeps_features_on_hopper=keeps_features(model.name),
        pools_all_in_sglang=pools_all_layers(model.name),
        reads_text_in_sglang=reads_text_alone(model.name),
        last_vllm=family.last_vllm,
    )


def _by_inner(model: Architecture, inner: str) -> Architecture:
    """Return the model with what adapters change of its class, or of the language model's inside, and drafts read."""
    whole = adapted_class(model.name, inner)
    return replace(
        model,
        takes_adapters=takes_adapters(model.name),
        vocabulary_adapted=vocabulary_adapted(whole),
        table_adapted=table_adapted(whole),
        joined_inputs=joined_inputs(model.name, inner),
        early_states_over_stages=early_states_over_stages(model.name, inner),
    )


def _sees_images_both_ways(reader: ConfigReader, family: Family, config: Mapping[str, object]) -> bool:
    """Return whether tokens of one image attend to each other, as the config says or its family does.

    Source: vLLM 0.33 `transformers_utils/model_arch_config_convertor.py` (`is_mm_prefix_lm`).
    """
    stated = config.get("is_mm_prefix_lm")
    return stated if isinstance(stated, bool) else family.sees_images_both_ways(reader)


def _encoder(config: Mapping[str, object], family: Family) -> Encoder | None:
    """Return everything a multimodal model has besides its language model, or None for a text model."""
    encoder = family.tower(ConfigReader(config), text_reader(config)) if family.tower is not None else None
    if encoder is None or family.largest_item is None:
        return encoder
    return profiled(encoder, config, family.largest_item)


def _tower_size(config: Mapping[str, object], family: Family) -> tuple[int, int] | None:
    """Return layers and width of a tower for images under the two names that SGLang looks for, else its defaults.

    Source: SGLang `server_args.py` (`adjust_mem_fraction_for_vlm`); its own config classes have defaults of their own
    (`configs/kimi_k25.py`, `configs/kimi_k3.py`), as Transformers' have (`Gemma3nVisionConfig`).
    """
    stated = config.get("vision_config")
    if family.tower is None or not is_mapping(stated):
        return None
    sizes = (stated.get("num_hidden_layers"), stated.get("hidden_size"))
    layers, width = (
        size if family.states_tower_size and isinstance(size, int) and 0 < size <= MAX_COUNT else default
        for size, default in zip(sizes, family.tower_size, strict=True)
    )
    return layers, width


def _ties_embeddings(reader: ConfigReader, family: Family) -> bool:
    """Return whether the head is the embedding table; a multimodal wrapper's word counts more than its inner config's.

    Source: vLLM 0.33 `config/vllm.py` (`with_hf_config`).
    """
    outer = reader.outer("tie_word_embeddings")
    if isinstance(outer, bool):
        return outer
    return reader.flag("tie_word_embeddings", default=family.ties_embeddings)


def _architecture_name(config: Mapping[str, object]) -> str:
    """Return the class name under `architectures`.

    Raises:
        MissingConfigFieldError: the config does not name its architecture.
    """
    names = config.get("architectures")
    if is_list(names) and names and isinstance(names[0], str):
        return names[0]
    stated = f"the config's architectures is {str(names)[:80]!r}"
    raise MissingConfigFieldError(
        "the config does not state architectures" if names is None else stated,
        field="model_config.architectures",
        accepted=f'a list with one class name, such as ["{EXAMPLE_CLASS}"]',
    )
