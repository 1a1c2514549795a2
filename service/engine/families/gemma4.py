"""Gemma 4: wide heads in full layers, shared caches, experts beside a dense network, towers for images and sound.

Sources:
    vLLM 0.33 `model_executor/models/`: gemma4.py, gemma4_mm.py (`audio_tower`, `embed_audio`), gemma4_unified.py;
    transformers 5.20 `models/gemma4/modeling_gemma4.py` (`Gemma4AudioModel`).
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, is_mapping, unknown_kind
from service.engine.families.parts.attention import (
    FULL_KINDS,
    Mixers,
    alone,
    alternating,
    base_attention,
    check_length,
)
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.profiling import Item
from service.engine.families.parts.residual import layer_embeddings
from service.engine.families.parts.sizes import num_hidden_layers
from service.engine.families.parts.towers import audio_part, blocks, divided, vision_part, with_whole
from service.engine.families.parts.wrappers import always
from service.engine.layers import DenseMlp, Encoder, GroupedQueryAttention, Mlp

MAX_DIGITS: Final = 9  # of a layer's number
SOUND_WIDTH: Final = 640  # of the raw frames of a model without a conformer
VIDEO_TOKENS: Final = 32 * (70 + 8)  # of 32 frames, each with up to 8 around it: `get_mm_max_tokens_per_item` of both
WIDE_HEAD_DIM: Final = 512  # of full layers, where the config does not state it


def _attention(reader: ConfigReader) -> Mixers:
    """Return sliding layers, and full ones with wider heads; late ones read the last cache of their kind."""
    sliding = replace(base_attention(reader), sliding_window=reader.positive("sliding_window", default=1024))
    full = _full(reader, sliding)
    layers = num_hidden_layers(reader)
    kinds = reader.strings("layer_types") or alternating(reader, 6)
    check_length("layer_types", len(kinds), layers)
    first_shared = layers - reader.integer("num_kv_shared_layers", default=0)
    owners = {kind: index for index, kind in enumerate(kinds[: max(first_shared, 0)])}

    def attention(index: int, kind: str) -> GroupedQueryAttention:
        own = full if kind in FULL_KINDS else sliding
        return replace(own, shares_cache_with=owners.get(kind)) if index >= first_shared > 0 else own

    return alone(attention(index, kind) for index, kind in enumerate(kinds[:layers]))


def _full(reader: ConfigReader, sliding: GroupedQueryAttention) -> GroupedQueryAttention:
    own = _of_full_layers(reader)
    wide = own.integer("head_dim", "global_head_dim", default=WIDE_HEAD_DIM) or sliding.head_dim
    heads = (
        own.optional("num_key_value_heads", "num_global_key_value_heads") if reader.flag("attention_k_eq_v") else None
    )
    return replace(
        sliding,
        num_key_value_heads=heads or sliding.num_key_value_heads,
        head_dim=wide,
        v_head_dim=wide,
        sliding_window=None,
    )


def _of_full_layers(reader: ConfigReader) -> ConfigReader:
    """Return what full layers state: under names of their own, or layer by layer, which must be the same for all.

    Source: transformers 5.24 `models/gemma4/configuration_gemma4.py` (`per_layer_config`, as it saves both).
    """
    stated = reader.mapping("per_layer_config")
    if stated is None:
        names = ("global_head_dim", "num_global_key_value_heads")
        return ConfigReader({name: reader.raw(name) for name in names if reader.states(name)})
    kinds = reader.strings("layer_types") or alternating(reader, 6)
    by_layer = {int(name): own for name, own in stated.items() if name.isdecimal() and len(name) <= MAX_DIGITS}
    full = [by_layer.get(index) or {} for index, kind in enumerate(kinds) if kind in FULL_KINDS]
    own = full[0] if full else {}
    others = [index for index in by_layer if index < len(kinds) and kinds[index] not in FULL_KINDS]
    if others or not is_mapping(own) or any(each != own for each in full):
        raise unknown_kind("per_layer_config", stated, "the same of every full layer, and nothing of others")
    return ConfigReader({"head_dim": reader.raw("head_dim"), **own})


def _dense_layers(reader: ConfigReader, dense: DenseMlp, num_layers: int) -> tuple[Mlp, ...]:
    """Return dense layers, where the config asks for it twice as wide in those that share a cache."""
    if not reader.flag("use_double_wide_mlp"):
        return (dense,) * num_layers
    first_shared = num_layers - reader.integer("num_kv_shared_layers", default=0)
    wide = replace(dense, intermediate_size=2 * dense.intermediate_size)
    return tuple(wide if index >= first_shared > 0 else dense for index in range(num_layers))


def _dense_beside(reader: ConfigReader) -> int:
    return reader.positive("intermediate_size")


def _tower(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the gated tower with its two position tables."""
    hidden = vision.positive("hidden_size")
    depth = vision.positive("num_hidden_layers")
    split, _ = blocks(hidden, vision.positive("intermediate_size"), is_gated=True, has_biases=False)
    head_norms = 2 * vision.positive("head_dim", default=72)
    patches = 3 * vision.positive("patch_size") ** 2 * hidden
    positions = 2 * vision.positive("position_embedding_size", default=10240) * hidden
    projection = hidden * text.positive("hidden_size")
    layers = depth * (split + 4 * hidden + head_norms)
    whole = layers + patches + positions + projection
    return Encoder(split_parameters=0, whole_parameters=whole, copied_parameters=-depth * split)


def _towers(outer: ConfigReader, text: ConfigReader) -> Encoder | None:
    """Return the tower, and the conformer that the small models hear with and the large do not."""
    tower = divided(_tower)(outer, text)
    if tower is None or not is_mapping(outer.raw("audio_config")):
        return tower
    return with_whole(tower, _sound(audio_part(outer), text))


def _sound(sound: ConfigReader, text: ConfigReader) -> int:
    """Return the parameters of the conformer and of its projection to the language model, on every rank.

    parameters = convolutions + layers x (24 w^2 + (9 + kernel) w + w / heads) + (w + 1) out + out x hidden

    Google's model card counts "~300M" of Gemma 4 E2B for sound:

    >>> round(_sound(ConfigReader({}), ConfigReader({"hidden_size": 1_536})) / 1e6, -2)
    300.0
    """
    width, depth = sound.positive("hidden_size", default=1024), sound.positive("num_hidden_layers", default=12)
    kernel, heads = sound.positive("conv_kernel_size", default=5), sound.positive("num_attention_heads", default=8)
    first, second = _channels(sound)
    convolutions = (9 * first + first) + (9 * first * second + second) + first // 4 * second * width
    layer = 24 * width * width + (9 + kernel) * width + width // heads
    out = sound.positive("output_proj_dims", default=1536)
    return convolutions + depth * layer + (width + 1) * out + out * text.positive("hidden_size")


def _channels(sound: ConfigReader) -> tuple[int, int]:
    stated = sound.integers("subsampling_conv_channels") or (128, 32)
    if len(stated) != 2 or min(stated) <= 0:
        raise unknown_kind("audio_config.subsampling_conv_channels", stated, "two numbers above 0")
    return stated[0], stated[1]


def _embedded_patches(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the direct embeddings: of patches two norms around one matrix, and positions; of sound one matrix."""
    vision = vision_part(outer)
    width = vision.positive("mm_embed_dim", default=3840)
    patch = vision.positive("model_patch_size", default=48)
    inputs = 3 * patch * patch
    positions = 2 * vision.positive("mm_posemb_size", default=1120) * width
    tower = Encoder(
        split_parameters=inputs * width + width,
        copied_parameters=inputs * width + width,
        whole_parameters=positions + 2 * inputs + 4 * width + width * text.positive("hidden_size"),
    )
    if not is_mapping(outer.raw("audio_config")):
        return tower
    sound = audio_part(outer).positive("output_proj_dims", "hidden_size", default=SOUND_WIDTH)
    return with_whole(tower, sound * text.positive("hidden_size"))


def _sees_both_ways(text: ConfigReader) -> bool:
    """Return whether tokens of one image attend to each other."""
    return text.raw("use_bidirectional_attention") == "vision"


def _sees_both_ways_by_default(text: ConfigReader) -> bool:
    """Return the same of the config class that says so where nothing is stated."""
    return _sees_both_ways(text) if text.states("use_bidirectional_attention") else True


_GEMMA4: Final = Family(
    classes=("Gemma4ForCausalLM",),
    attention=_attention,
    feed_forward=FeedForward(
        experts=Experts(dense_beside=_dense_beside, has_expert_norms=True, has_plain_activation=False),
        dense_layers=_dense_layers,
    ),
    head_norms=on_heads,
    norms_per_layer=4,
    ties_embeddings=True,
    per_layer_embeddings=layer_embeddings,
    has_window_pool=True,
)
FAMILIES: Final = (
    _GEMMA4,
    replace(
        _GEMMA4,
        classes=("Gemma4ForConditionalGeneration",),
        tower=_towers,
        largest_item=Item(tokens=VIDEO_TOKENS, patches_per_token=9),
        sees_images_both_ways=_sees_both_ways,
        both_ways_since="0.20",  # 0.19 `config/model.py` lists the models (`MM_PREFIX_LM_MODELS`), without this one
    ),
    Family(
        classes=("Gemma4UnifiedForConditionalGeneration",),
        wraps=always("Gemma4ForCausalLM"),
        tower=_embedded_patches,
        tower_size=(0, 1_024),  # it has none
        largest_item=Item(tokens=VIDEO_TOKENS, patches_per_token=1, inner_name="mm_embed_dim"),
        sees_images_both_ways=_sees_both_ways_by_default,
        has_window_pool=True,
    ),
)
