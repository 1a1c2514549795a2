"""Keye: SigLIP with a second table of positions, in front of Qwen 3.

Sources:
    vLLM 0.33 `model_executor/models/keye.py`, `keye_vl1_5.py`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.family import Family
from service.engine.families.parts.siglip import siglip_tower
from service.engine.families.parts.towers import TowerRule, perceptron, vision_part, with_split, with_whole
from service.engine.families.parts.wrappers import always
from service.engine.layers import Encoder

POSITIONS: Final = 32_768


def _tower(*, norms_merged: bool) -> TowerRule:
    """Return the rule of a split projector over merged patches, with its norm ahead of the merging or behind it."""

    def tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
        vision = vision_part(outer)
        hidden = vision.positive("hidden_size")
        merged = vision.positive("spatial_merge_size", default=2) ** 2 * hidden
        projector, bias = perceptron(merged, merged, text.positive("hidden_size"))
        norm = 2 * (merged if norms_merged else hidden)
        return with_split(with_whole(siglip_tower(vision), POSITIONS * hidden + bias + norm), projector)

    return tower


FAMILIES: Final = (
    Family(
        classes=("KeyeForConditionalGeneration",),
        wraps=always("Qwen3ForCausalLM"),
        tower=_tower(norms_merged=False),
    ),
    Family(
        classes=("KeyeVL1_5ForConditionalGeneration",),
        wraps=always("Qwen3ForCausalLM"),
        tower=_tower(norms_merged=True),
    ),
)
