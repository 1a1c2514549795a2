"""Molmo 2: Qwen 3 or OLMo 3 behind a tower whose patches are pooled by attention.

Sources:
    vLLM 0.33 `model_executor/models/molmo2.py`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import full_only
from service.engine.families.parts.biases import inputs_only
from service.engine.families.parts.family import Family, whatever_stated
from service.engine.families.parts.norms import on_heads, over_all_heads
from service.engine.families.parts.towers import blocks, tower_heads
from service.engine.layers import Encoder, Heads

DEFAULT_LAYERS: Final = (-3, -9)  # of the tower, whose outputs are pooled side by side


def _head_norms(reader: ConfigReader, heads: Heads) -> int:
    """Return norms on each head as Qwen 3 has them, or over all heads as OLMo 3 does."""
    if not reader.flag("use_qk_norm"):
        return 0
    kind = reader.text("qk_norm_type", default="olmo")
    if kind not in ("qwen3", "olmo"):
        raise unknown_kind("text_config.qk_norm_type", kind, "qwen3, olmo")
    return on_heads(reader, heads) if kind == "qwen3" else over_all_heads(reader, heads)


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the tower up to the last used layer, the pooling, the projector, and rows for tokens of images."""
    vision = ConfigReader(outer.mapping("vit_config") or {})
    adapter = ConfigReader(outer.mapping("adapter_config") or {})
    hidden, stated = vision.positive("hidden_size"), vision.positive("num_hidden_layers")
    layers = adapter.integers("vit_layers") or DEFAULT_LAYERS
    depth = min(max(layer if layer >= 0 else layer + stated for layer in layers) + 1, stated)
    split, whole = blocks(hidden, vision.positive("intermediate_size"))
    pixels = 3 * vision.positive("image_patch_size", default=14) ** 2
    around = (pixels + 1 + vision.positive("image_num_pos", default=577)) * hidden
    pooling, bias = _pooling(adapter, len(layers) * hidden)
    rows = text.integer("additional_vocab_size", default=128) * text.positive("hidden_size")
    return Encoder(
        split_parameters=depth * split + pooling + rows,
        whole_parameters=depth * (whole + 4 * hidden) + around + bias,
        num_heads=tower_heads(vision),
    )


def _pooling(adapter: ConfigReader, width: int) -> tuple[int, int]:
    """Return attention over patches and a gated projector without biases: split over ranks, and the whole bias."""
    hidden, inner = adapter.positive("hidden_size"), adapter.positive("intermediate_size")
    attention = 3 * (width + 1) * hidden + hidden * hidden
    return attention + 2 * hidden * inner + inner * adapter.positive("text_hidden_size"), hidden


FAMILIES: Final = (
    Family(
        classes=("Molmo2ForConditionalGeneration",),
        attention=full_only,
        biases=inputs_only("qkv_bias"),
        head_norms=_head_norms,
        tower=_tower,
        sees_images_both_ways=whatever_stated,
    ),
)
