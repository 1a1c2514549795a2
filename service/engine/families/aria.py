"""Aria: experts behind SigLIP and cross-attention.

Sources:
    vLLM 0.33 `model_executor/models/aria.py`, `idefics2_vision_model.py`.
"""

from typing import Final

from service.engine.config_reader import MAX_COUNT, ConfigReader
from service.engine.families.parts.attention import full_only
from service.engine.families.parts.family import Family
from service.engine.families.parts.siglip import siglip_tower
from service.engine.families.parts.towers import vision_part, with_split, with_whole
from service.engine.layers import Encoder


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP without its last norm, cross-attention that no rank splits, and two split matrices."""
    vision = vision_part(outer)
    hidden, out = vision.positive("hidden_size"), text.positive("hidden_size")
    stated = outer.mapping("projector_patch_to_query_dict") or {}
    sizes = (size for size in stated.values() if isinstance(size, int) and 0 < size <= MAX_COUNT)
    queries = max(sizes, default=256)
    attention, norms = 8 * hidden * hidden + 5 * hidden, 6 * hidden
    tower = siglip_tower(vision, has_last_norm=False)
    return with_split(with_whole(tower, queries * hidden + attention + norms), hidden * out + out * out)


FAMILIES: Final = (
    Family(classes=("AriaForConditionalGeneration",), attention=full_only, tower=_tower, has_stages=False),
)
