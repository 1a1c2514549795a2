"""GLM's language models behind towers for images.

Sources:
    vLLM 0.33 `model_executor/models/`: glm4_1v.py, glm_ocr.py.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.family import Family
from service.engine.families.parts.profiling import Item
from service.engine.families.parts.towers import blocks, seen, tower_heads, vision_part
from service.engine.families.parts.wrappers import always
from service.engine.layers import Encoder

# A video of 47,040,000 pixels; the tower's feed-forward parts are as wide as its output.
VIDEO: Final = Item(tokens=30_000, patches_per_token=4, is_gated=True, inner_name="out_hidden_size")


def _around(vision: ConfigReader) -> int:
    """Return the patches in time and space, and the convolution that merges them."""
    hidden, out, patch = (
        vision.positive("hidden_size"),
        vision.positive("out_hidden_size"),
        vision.positive("patch_size"),
    )
    patches = 3 * vision.positive("temporal_patch_size", default=2) * patch * patch * hidden + hidden
    return patches + vision.positive("spatial_merge_size", default=2) ** 2 * hidden * out + out


def _tower(vision: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return the tower, whose feed-forward parts are as wide as its output, and its gated merger."""
    hidden, out = vision.positive("hidden_size"), vision.positive("out_hidden_size")
    depth, inner = vision.positive("depth"), vision.positive("intermediate_size")
    split, _ = blocks(hidden, out, is_gated=True, has_biases=False)
    around = _around(vision)
    positions = (vision.positive("image_size") // vision.positive("patch_size")) ** 2 * hidden
    return Encoder(
        split_parameters=depth * split + out * out + 3 * out * inner,
        whole_parameters=(depth + 1) * 2 * hidden + around + positions + 2 * out,
        num_heads=tower_heads(vision),
    )


def _ocr(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the gated tower with biases and head norms, and its gated merger, as wide as the text's networks."""
    return _normed(vision_part(outer), text.positive("intermediate_size"))


def gated_tower(outer: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return the same tower with a merger of a width of its own: GLM 5.3 Flash."""
    vision = vision_part(outer)
    return _normed(vision, vision.positive("projection_intermediate_size"))


def _normed(vision: ConfigReader, merged: int) -> Encoder:
    """Return the gated tower with biases and head norms, and a gated merger of a width."""
    hidden, out = vision.positive("hidden_size"), vision.positive("out_hidden_size")
    inner, depth, heads = vision.positive("intermediate_size"), vision.positive("depth"), tower_heads(vision)
    has_biases = vision.flag("attention_bias", default=True)
    split, whole = blocks(hidden, inner, is_gated=True, has_biases=has_biases)
    layers = depth * (whole + 2 * hidden + 2 * (hidden // heads))
    return Encoder(
        split_parameters=depth * split + out * out + 3 * out * merged,
        whole_parameters=layers + _around(vision) + hidden + 2 * out,
        num_heads=heads,
    )


FAMILIES: Final = (
    Family(
        classes=("Glm4vForConditionalGeneration",),
        wraps=always("Glm4ForCausalLM"),
        tower=seen(_tower),
        largest_item=VIDEO,
    ),
    Family(
        classes=("Glm4vMoeForConditionalGeneration",),
        wraps=always("Glm4MoeForCausalLM"),
        tower=seen(_tower),
        largest_item=VIDEO,
    ),
    Family(classes=("GlmOcrForConditionalGeneration",), wraps=always("Glm4ForCausalLM"), tower=_ocr),
)
