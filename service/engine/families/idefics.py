"""Idefics 3, SmolVLM and PaliGemma: SigLIP with one projection that no rank splits.

Sources:
    vLLM 0.33 `model_executor/models/`: idefics2_vision_model.py with idefics3.py and smolvlm.py, paligemma.py.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.family import Family, whatever_stated
from service.engine.families.parts.siglip import siglip_tower
from service.engine.families.parts.towers import seen, with_whole
from service.engine.families.parts.wrappers import named_inside
from service.engine.layers import Encoder


def _merged(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the projection of merged patches."""
    merged = text.positive("scale_factor", default=2) ** 2 * vision.positive("hidden_size")
    return with_whole(siglip_tower(vision), merged * text.positive("hidden_size"))


def _projected(vision: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return the projection of each patch."""
    tower, hidden = siglip_tower(vision), vision.positive("hidden_size")
    out = vision.positive("projection_dim")
    return with_whole(tower, hidden * out + out)


FAMILIES: Final = (
    Family(
        classes=("Idefics3ForConditionalGeneration", "SmolVLMForConditionalGeneration"),
        wraps=named_inside,
        tower=seen(_merged),
        has_stages=False,
    ),
    Family(
        classes=("PaliGemmaForConditionalGeneration",),
        wraps=named_inside,
        tower=seen(_projected),
        sees_images_both_ways=whatever_stated,
    ),
)
