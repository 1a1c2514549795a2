"""CLIP: a vision transformer with biases, a class token and a norm ahead of its layers.

Source:
    vLLM 0.33 `model_executor/models/clip.py` with `llava.py`.
"""

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.towers import blocks, perceptron, tower_heads, used_layers
from service.engine.layers import Encoder

LARGE_HIDDEN = 1024
LARGE_PATCH = 14  # [pixels]
LARGE_HEADS = 16


def clip(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return CLIP up to the layer whose features are used, and the projector."""
    hidden, patch = vision.positive("hidden_size"), vision.positive("patch_size")
    split, whole = blocks(hidden, vision.positive("intermediate_size"))
    depth = used_layers(vision.positive("num_hidden_layers"), text.raw("vision_feature_layer"))
    positions = ((vision.positive("image_size") // patch) ** 2 + 1) * hidden
    projector, bias = perceptron(hidden, text.positive("hidden_size"), text.positive("hidden_size"))
    return Encoder(
        split_parameters=depth * split + projector,
        whole_parameters=depth * (whole + 4 * hidden) + 3 * patch * patch * hidden + positions + 3 * hidden + bias,
        num_heads=tower_heads(vision),
    )


def clip_large(*, side: int, layers: int) -> tuple[int, int]:
    """Return CLIP's large tower without its last norm, for an image of so many patches on a side: split, and whole."""
    hidden = LARGE_HIDDEN
    split, whole = blocks(hidden, 4 * hidden)
    around = 3 * LARGE_PATCH * LARGE_PATCH * hidden + (side * side + 1) * hidden + hidden + 2 * hidden
    return layers * split, layers * (whole + 4 * hidden) + around
