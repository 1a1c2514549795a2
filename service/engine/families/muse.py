"""Muse Glimmer: windows with a gate on the attention's output, and a tower with split attention.

Sources:
    vLLM 0.33 `model_executor/models/muse_glimmer.py`.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import windowed_with_gate
from service.engine.families.parts.family import Family
from service.engine.families.parts.towers import divided
from service.engine.layers import Encoder


def _tower(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the tower: attention split over ranks, everything else whole."""
    hidden, size = vision.positive("hidden_size"), vision.positive("intermediate_size")
    depth = vision.positive("num_hidden_layers")
    split = depth * (4 * hidden * hidden + 3 * hidden)
    layers = depth * (2 * hidden * size + size + hidden + hidden + 4 * hidden)
    patches = 3 * vision.positive("patch_temporal", default=2) * vision.positive("patch_size") ** 2 * hidden
    positions = vision.positive("pos_emb_height") * vision.positive("pos_emb_width") * hidden + 4 * hidden
    merged = text.positive("out_hidden_size", default=4 * hidden)
    inner = text.positive("projector_hidden_size", default=4096)
    projector = merged * inner + inner * inner + inner * text.positive("hidden_size")
    return Encoder(split_parameters=split, whole_parameters=layers + patches + positions + projector)


_MUSE: Final = Family(classes=("MuseGlimmerForCausalLM",), attention=windowed_with_gate, norms_per_layer=4)
FAMILIES: Final = (
    _MUSE,
    replace(
        _MUSE,
        classes=("MuseGlimmerForConditionalGeneration",),
        tower=divided(_tower, is_whole_where_uneven=True),
    ),
)
