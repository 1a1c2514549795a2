"""MiMo, and MiMo-V2, whose sliding layers have heads of their own, alone or behind towers for images and sound.

Sources:
    vLLM 0.33 `model_executor/models/`: mimo.py, mimo_mtp.py, mimo_v2.py, mimo_v2_mtp.py, mimo_v2_omni.py,
    mimo_audio.py;
    `transformers_utils/configs/mimo_v2_omni.py`, `transformers_utils/model_arch_config_convertor.py`: a config with
    `vision_config` is served by the class with towers, whatever class it names. The tokenizer for sound in the folder
    `audio_tokenizer`, which is loaded where the model is named by a path, has no sizes there and is not counted.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import Mixers, alone, base_attention, not_stated, windowed_where_asked
from service.engine.families.parts.biases import output_apart
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.mtp import Draft, head_of, like_the_last, sliding_dense
from service.engine.families.parts.rotary import stated_tables
from service.engine.families.parts.sizes import num_hidden_layers
from service.engine.families.parts.towers import audio_part, vision_part
from service.engine.layers import Architecture, DecoderLayer, DraftHead, Encoder, GroupedQueryAttention, RotaryTable

HEAD_DIM: Final = 64  # of the tower for images, where the config does not say [elements]


def _attention(reader: ConfigReader) -> Mixers:
    """Return full or sliding layers by `hybrid_layer_pattern`."""
    attention = base_attention(reader)
    attention = replace(attention, v_head_dim=reader.positive("v_head_dim", default=attention.head_dim))
    sliding = _sliding(reader, attention)
    pattern = reader.integers("hybrid_layer_pattern")
    if pattern is None or len(pattern) < num_hidden_layers(reader):
        raise not_stated("hybrid_layer_pattern", "one 0 (full) or 1 (sliding) per layer")
    return alone(sliding if pattern[index] else attention for index in range(num_hidden_layers(reader)))


def _sliding(reader: ConfigReader, attention: GroupedQueryAttention) -> GroupedQueryAttention:
    head_dim = reader.positive("swa_head_dim", default=attention.head_dim)
    return replace(
        attention,
        num_attention_heads=reader.positive("swa_num_attention_heads", default=attention.num_attention_heads),
        num_key_value_heads=reader.positive("swa_num_key_value_heads", default=attention.num_key_value_heads),
        head_dim=head_dim,
        v_head_dim=reader.positive("swa_v_head_dim", default=head_dim),
        sliding_window=reader.positive("sliding_window_size", "sliding_window"),
        has_sinks=reader.flag("add_swa_attention_sink_bias"),
    )


def _modules(reader: ConfigReader, architecture: Architecture, modules: int) -> DraftHead:
    """Return dense, sliding layers, whose output projection keeps the model's dtype."""
    head = head_of(architecture, sliding_dense(reader, architecture), modules, first="model.mtp.layers")
    return replace(head, unquantized=("o_proj",), is_loaded_by_step=True)


def _tables(reader: ConfigReader, layers: tuple[DecoderLayer, ...]) -> tuple[RotaryTable, ...]:
    """Return one table, and one for layers with a window where they turn at another pace."""
    tables = stated_tables(reader, layers)
    is_told = reader.raw("swa_rope_theta") is None or len(tables) > 1  # one for each kind of layer
    return tables if is_told else (*tables, *tables)


def _tower(outer: ConfigReader, _text: ConfigReader) -> Encoder | None:
    """Return the tower for images, whose fewer heads for keys ranks divide, and whole layers for sound.

    Nothing of it is quantized, and a config without `vision_config` has neither.
    """
    vision = vision_part(outer)
    if not vision.values():
        return None
    hidden, depth = vision.positive("hidden_size"), vision.positive("depth")
    heads = vision.positive("num_heads")
    keys = vision.positive("num_key_value_heads", default=heads)
    query, value = (vision.positive(name, default=HEAD_DIM) for name in ("qk_channels", "kv_channels"))
    projected, gated = heads * query + keys * (query + value), 2 * vision.positive("intermediate_size")
    merged = hidden * vision.positive("spatial_merge_size", default=2) ** 2
    sinks = depth - len(vision.integers("fullatt_block_indexes") or ()) if vision.flag("use_sink") else 0
    frames = vision.positive("temporal_patch_size", default=2)
    patches = vision.positive("in_channels", "in_chans", default=3) * vision.positive("patch_size") ** 2 * frames
    layer = (hidden + 1) * (projected + gated) + hidden * (heads * value + gated // 2)
    return Encoder(
        split_parameters=depth * layer + merged * (merged + vision.positive("out_hidden_size")),
        whole_parameters=(4 * depth + patches + 1) * hidden + sinks * heads + _sound(audio_part(outer)),
        num_heads=keys,
    )


def _sound(audio: ConfigReader) -> int:
    """Return layers of Qwen 2 over codes of every channel, and a projection of grouped ones; 0 where none is stated."""
    if not audio.values():
        return 0
    width, out = audio.positive("input_local_dim"), audio.positive("out_hidden_size")
    inner = audio.positive("input_local_attn_heads") * audio.positive("input_local_head_dim")
    layer = 4 * width * inner + 3 * inner + 3 * width * audio.positive("input_local_intermediate_size") + 2 * width
    grouped = width * audio.positive("group_size")
    is_one = audio.positive("projection_layers", default=1) == 1
    projection = grouped * out if is_one else 4 * grouped * (grouped + out)
    last_norm = width if audio.flag("add_post_norm") else 0
    return audio.positive("input_local_layers") * layer + _codes(audio) * width + projection + last_norm


def _codes(audio: ConfigReader) -> int:
    """Return the codes of all channels: one number for each of them, or one apiece between dashes.

    Raises:
        UnsupportedModelError: anything else.
    """
    stated, channels = str(audio.raw("speech_vocab_size")), audio.positive("audio_channels")
    sizes = [int(size) for size in stated.split("-") if size.isdecimal()]
    if len(sizes) not in (1, channels):
        raise unknown_kind("audio_config.speech_vocab_size", stated, "one number, or one for every channel")
    return sum(sizes) * (channels if len(sizes) == 1 else 1)


def _scheme(reader: ConfigReader) -> str:
    """Return how checkpoints with fp8 blocks may store routed experts: MiMo-V2.6 in four bits.

    Source: vLLM 0.33 `model_executor/layers/quantization/fp8.py` (`store_dtype`).
    """
    stated = ConfigReader(reader.mapping("quantization_config") or {})
    return "mxfp4" if stated.raw("store_dtype") == "mxfp4" else ""


FAMILIES: Final = (
    Family(
        classes=("MiMoForCausalLM",),
        attention=windowed_where_asked,
        biases=output_apart(default=True),
        draft=Draft(build=like_the_last),
    ),
    Family(
        classes=("MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM", "MiMoV2OmniForCausalLM"),
        attention=_attention,
        feed_forward=FeedForward(
            experts=Experts(router_dtype_name="moe_router_dtype", has_wide_router=True, scheme=_scheme)
        ),
        draft=Draft(build=_modules, default_count=1, builds_only_the_first=True),
        rotary=_tables,
        tower=_tower,
        has_window_pool=True,
    ),
)
