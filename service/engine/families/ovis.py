"""Ovis: a tower that picks from a table of visual words.

Sources:
    vLLM 0.33 `model_executor/models/`: ovis.py with aimv2.py, ovis2_5.py with siglip2navit.py.
"""

from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.family import Family
from service.engine.families.parts.siglip import siglip_tower
from service.engine.families.parts.towers import blocks, tower_heads, with_whole
from service.engine.families.parts.wrappers import named_inside
from service.engine.layers import Encoder

# Of the visual words, those that mark where an image begins and ends, which no patch can be.
FIRST_INDICATORS: Final = 5
LATER_INDICATORS: Final = 4


def _aimv2(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the AIMv2 tower, gated and without biases, and its table of visual words."""
    tokenizer = ConfigReader(outer.mapping("visual_tokenizer_config") or {})
    vision = ConfigReader(tokenizer.mapping("backbone_config") or {})
    kind = vision.text("model_type", default="aimv2")
    if kind != "aimv2" or vision.flag("use_bias") or vision.flag("qkv_bias"):
        raise unknown_kind("visual_tokenizer_config.backbone_config", kind, "aimv2 without biases")
    hidden, layers = vision.positive("hidden_size"), vision.positive("num_hidden_layers")
    patch = vision.positive("patch_size", default=14)
    split, _ = blocks(hidden, vision.positive("intermediate_size"), is_gated=True, has_biases=False)
    positions = (vision.positive("image_size") // patch) ** 2 * hidden
    around = 3 * patch * patch * hidden + 2 * hidden + positions
    merged = hidden * _merged(tokenizer, vision.positive("image_size") // patch, "visual_tokenizer_config")
    words = _visual_words(tokenizer.positive("vocab_size"), FIRST_INDICATORS, merged, text)
    return Encoder(
        split_parameters=layers * split,
        whole_parameters=layers * 2 * hidden + around + words,
        num_heads=tower_heads(vision),
    )


def _siglip2(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the SigLIP 2 tower and its table of visual words."""
    vision = ConfigReader(outer.mapping("vit_config") or {})
    if (patches := vision.raw("num_patches")) not in (None, -1):
        raise unknown_kind("vit_config.num_patches", patches, "-1: as many as the image size has")
    tower, words = siglip_tower(vision), outer.positive("visual_vocab_size")
    side = vision.positive("image_size") // vision.positive("patch_size")
    merged = vision.positive("hidden_size") * _merged(vision, side, "vit_config")
    return with_whole(tower, _visual_words(words, LATER_INDICATORS, merged, text))


def _merged(stated: ConfigReader, side: int, where: str) -> int:
    """Return how many patches become one visual word, of an image with so many on a side.

    Raises:
        UnsupportedModelError: more on a side than an image has.
    """
    stride = stated.positive("hidden_stride", default=2)
    if stride > side:
        raise unknown_kind(f"{where}.hidden_stride", stride, f"1 to {side}, the patches on a side of an image")
    return stride * stride


def _visual_words(words: int, indicators: int, merged: int, text: ConfigReader) -> int:
    """Return the head that picks visual words with its norm, and their embeddings."""
    picked = max(words - indicators, 0)
    return picked * merged + 2 * picked + words * text.positive("hidden_size")


FAMILIES: Final = (
    Family(classes=("Ovis",), wraps=named_inside, tower=_aimv2),
    Family(
        classes=("Ovis2_5", "Ovis2_6ForCausalLM", "Ovis2_6_MoeForCausalLM"),
        wraps=named_inside,
        tower=_siglip2,
    ),
)
