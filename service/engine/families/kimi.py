"""Kimi: latents alone (VL, K2.5), or beside linear attention (Linear, K3), and towers for images.

Sources:
    vLLM 0.33 `models/kimi_k3/nvidia/model.py`, `transformers_utils/configs/kimi_linear.py`, and in
    `model_executor/models/`: kimi_vl.py, kimi_k25.py, kimi_k25_vit.py, config.py (quantization).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.errors import MissingConfigFieldError
from service.engine.families.deepseek import SPLIT_TOKENS
from service.engine.families.parts.attention import Mixers, alone
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.latent import latent, latent_attention
from service.engine.families.parts.profiling import Item
from service.engine.families.parts.siglip import so400m
from service.engine.families.parts.sizes import num_hidden_layers
from service.engine.families.parts.sparsity import first_dense
from service.engine.families.parts.towers import divided, seen
from service.engine.layers import Encoder, KimiDeltaAttention

RANK_COLUMNS: Final = 256  # of one expert on a rank, at least


def _linear(reader: ConfigReader) -> Mixers:
    """Return what `linear_attn_config` lists as layers of either kind, counted from 1."""
    stated = ConfigReader(reader.mapping("linear_attn_config") or {})
    linear_layers = frozenset(stated.integers("kda_layers") or ())
    full_layers = frozenset(stated.integers("full_attn_layers") or ())
    attention = replace(
        latent_attention(reader),
        q_lora_rank=reader.optional("q_lora_rank") or None,
        has_output_gate=reader.flag("mla_use_output_gate"),
    )
    if not reader.flag("mla_use_nope"):
        raise unknown_kind("mla_use_nope", False, "true: the engine runs these latents without rotary positions only")
    linear = KimiDeltaAttention(
        num_heads=stated.positive("num_heads"),
        head_dim=stated.positive("head_dim"),
        conv_kernel_size=stated.positive("short_conv_kernel_size"),
        has_full_rank_gate=stated.flag("use_full_rank_gate"),
    )
    numbers = range(1, num_hidden_layers(reader) + 1)
    if unnamed := set(numbers) - linear_layers - full_layers:
        raise MissingConfigFieldError(
            f"linear_attn_config does not say what layer {min(unnamed)} is",
            field="model_config.linear_attn_config",
            accepted="every layer, counted from 1, in kda_layers or full_attn_layers",
        )
    return alone(linear if number in linear_layers else attention for number in numbers)


def _moon_vit(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return MoonViT and its two-layer projector, which no rank splits."""
    shape = so400m(vision, _positions(vision))
    split, whole = shape.parameters()
    merged, out = shape.hidden * 4, text.positive("hidden_size")
    projector = merged * merged + merged + merged * out + out
    return Encoder(split_parameters=split, whole_parameters=whole + projector + 2 * shape.hidden)


def _moon_vit_3d(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the same of K2.5, whose feed-forward parts SGLang does not split."""
    shape = so400m(vision, _positions(vision))
    return replace(_moon_vit(vision, text), copied_parameters=shape.feed_forward())


def _positions(vision: ConfigReader) -> int:
    return vision.positive("init_pos_emb_height", default=64) * vision.positive("init_pos_emb_width", default=64)


def _wide_tower(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return K3's tower without biases, whose attention is wider than its stream, and its projector."""
    hidden = vision.positive("vt_hidden_size", "hidden_size", default=1024)
    inner = vision.positive("qkv_hidden_size", default=1536)
    depth = vision.positive("vt_num_hidden_layers", "num_hidden_layers", default=27)
    size = vision.positive("vt_intermediate_size", "intermediate_size", default=4096)
    positions = _positions(vision) * hidden
    patches = 3 * vision.positive("patch_size", default=14) ** 2 * hidden
    merged = 4 * vision.positive("mm_hidden_size", default=hidden)
    out = text.positive("hidden_size")
    projector = merged * merged + merged * out + out
    return Encoder(
        split_parameters=depth * (4 * hidden * inner + 2 * hidden * size),
        whole_parameters=depth * 2 * hidden + (patches + positions + hidden) + projector,
        num_heads=vision.positive("vt_num_attention_heads", "num_attention_heads", default=12),
        is_whole_where_uneven=True,
    )


def _through_mxfp4(stated: Mapping[str, object]) -> Mapping[str, object]:
    """Return what K3's loader takes four-bit experts for."""
    return {**stated, "quant_method": "mxfp4"} if stated.get("format") == "mxfp4-pack-quantized" else stated


_IMAGE: Final = Item(tokens=4_096, patches_per_token=4)
_LINEAR: Final = Family(
    classes=("KimiLinearForCausalLM",),
    attention=_linear,
    feed_forward=FeedForward(
        experts=Experts(min_rank_columns=RANK_COLUMNS, has_score_correction=True, sparsity=first_dense)
    ),
)
_MOON_VIT: Final = Family(
    classes=("KimiVLForConditionalGeneration",),
    attention=latent,
    feed_forward=SPLIT_TOKENS,
    tower=divided(_moon_vit, is_whole_where_uneven=True),
    tower_size=(27, 1_152),
    largest_item=_IMAGE,
)
FAMILIES: Final = (
    _MOON_VIT,
    replace(
        _MOON_VIT,
        classes=("KimiK25ForConditionalGeneration",),
        tower=divided(_moon_vit_3d, is_whole_where_uneven=True),
    ),
    _LINEAR,
    replace(
        _LINEAR,
        classes=("KimiK3ForConditionalGeneration",),
        tower=seen(_wide_tower),
        tower_size=(27, 1_024),
        largest_item=_IMAGE,
        requantizes=_through_mxfp4,
    ),
)
