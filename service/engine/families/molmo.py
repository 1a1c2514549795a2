"""Molmo 1 and 2: Qwen and OLMo behind a tower whose patches are pooled by attention.

Sources:
    vLLM 0.33 `model_executor/models/molmo.py`, `molmo2.py`.
"""

from collections.abc import Mapping
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import full_only
from service.engine.families.parts.biases import inputs_only
from service.engine.families.parts.clip import LARGE_HEADS, LARGE_HIDDEN, LARGE_PATCH, clip_large
from service.engine.families.parts.family import Family, whatever_stated
from service.engine.families.parts.norms import on_heads, over_all_heads
from service.engine.families.parts.towers import blocks, tower_heads
from service.engine.layers import Encoder, Heads

FIRST_IMAGE: Final = 336  # on a side [pixels]
FIRST_LAYERS: Final = 23  # of CLIP's 24
FURTHER_ROWS: Final = 128  # of the embeddings, for tokens of images
TOWER_NAMES: Final = ("vit_config", "vision_config")  # the publisher's, and that of transformers 5.24
DEFAULT_LAYERS: Final = (-3, -9)  # of the tower, whose outputs are pooled side by side


def _first_restated(reader: ConfigReader) -> Mapping[str, object]:
    """Return the columns of gate and up apart, which are stated together, and the rows of both tables."""
    return {
        "intermediate_size": reader.positive("intermediate_size") // 2,
        "vocab_size": reader.positive("embedding_size", "vocab_size"),
        "tie_word_embeddings": reader.flag("weight_tying"),
    }


def _first_tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return CLIP's large tower but for its last layer and norm, the pooling of two layers, and a gated projector.

    Its sizes stand in the model code alone.
    """
    hidden = LARGE_HIDDEN
    split, whole = clip_large(side=FIRST_IMAGE // LARGE_PATCH, layers=FIRST_LAYERS)
    pooling = 3 * (2 * hidden + 1) * hidden + hidden * hidden
    columns, out = outer.positive("intermediate_size") // 2, text.positive("hidden_size")
    rows = FURTHER_ROWS * out
    return Encoder(
        split_parameters=split + pooling + (2 * hidden + out) * columns + rows,
        whole_parameters=whole + hidden + 2 * 2 * hidden,  # the bias behind the pooling, and vectors for padding
        num_heads=LARGE_HEADS,
    )


def _head_norms(reader: ConfigReader, heads: Heads) -> int:
    """Return norms on each head as Qwen 3 has them, or over all heads as OLMo 3 does."""
    if not reader.flag("use_qk_norm"):
        return 0
    kind = reader.text("qk_norm_type", default="olmo")
    if kind not in ("qwen3", "olmo"):
        raise unknown_kind("text_config.qk_norm_type", kind, "qwen3, olmo")
    return on_heads(reader, heads) if kind == "qwen3" else over_all_heads(reader, heads)


def _over_all_heads_where(reader: ConfigReader, heads: Heads) -> int:
    return over_all_heads(reader, heads) if reader.flag("attention_layer_norm") else 0


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the tower up to the last used layer, the pooling, the projector, and rows for tokens of images."""
    vision = ConfigReader(outer.mapping(*TOWER_NAMES) or {})
    adapter = ConfigReader(outer.mapping("adapter_config") or {})
    hidden, stated = vision.positive("hidden_size"), vision.positive("num_hidden_layers")
    layers = adapter.integers("vit_layers") or adapter.integers("vision_feature_layer") or DEFAULT_LAYERS
    depth = min(max(layer if layer >= 0 else layer + stated for layer in layers) + 1, stated)
    split, whole = blocks(hidden, vision.positive("intermediate_size"))
    pixels = 3 * vision.positive("image_patch_size", "patch_size", default=14) ** 2
    around = (pixels + 1 + vision.positive("image_num_pos", "num_position_embeddings", default=577)) * hidden
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
        classes=("MolmoForCausalLM",),
        attention=full_only,
        restates=_first_restated,
        biases=inputs_only("qkv_bias"),
        head_norms=_over_all_heads_where,
        tower=_first_tower,
    ),
    Family(
        classes=("Molmo2ForConditionalGeneration",),
        attention=full_only,
        biases=inputs_only("qkv_bias", "attention_bias"),
        head_norms=_head_norms,
        tower=_tower,
        sees_images_both_ways=whatever_stated,
    ),
)
