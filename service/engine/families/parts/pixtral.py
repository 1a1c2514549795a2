"""Pixtral's vision transformer: gated, without biases, norms without bias.

Source:
    vLLM 0.33 `model_executor/models/pixtral.py`.
"""

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.towers import blocks
from service.engine.layers import Encoder


def gated_layers(vision: ConfigReader, depth: int) -> tuple[int, int]:
    """Return so many layers behind their patches and first norm: split over ranks, and whole."""
    hidden = vision.positive("hidden_size")
    split, _ = blocks(hidden, vision.positive("intermediate_size"), is_gated=True, has_biases=False)
    patches = 3 * vision.positive("patch_size") ** 2 * hidden + hidden
    return depth * split, depth * 2 * hidden + patches


def pixtral(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the tower, its patch merger and two-layer projector."""
    split, whole = gated_layers(vision, vision.positive("num_hidden_layers", default=24))
    hidden, out = vision.positive("hidden_size"), text.positive("hidden_size")
    merger = 4 * hidden * hidden + hidden
    projector = hidden * out + out * out
    return Encoder(split_parameters=split + projector, whole_parameters=whole + merger, copied_parameters=projector)
