"""Isaac: Qwen 3 behind SigLIP 2, whose patches are shuffled into fewer, wider ones.

Sources:
    vLLM 0.33 `model_executor/models/isaac.py`, `transformers_utils/configs/isaac.py`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.family import Family
from service.engine.families.parts.siglip import Siglip
from service.engine.families.parts.towers import seen, tower_heads
from service.engine.families.parts.wrappers import always
from service.engine.layers import Encoder

WIDENING: Final = 4  # of the projector's inner width


def _tower(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP with a position for each of its grid's places, and a projector without biases."""
    shape = Siglip(
        hidden=vision.positive("hidden_size"),
        depth=vision.positive("num_hidden_layers"),
        size=vision.positive("intermediate_size"),
        patch=vision.positive("patch_size"),
        positions=vision.positive("num_patches", default=256),
    )
    split, whole = shape.parameters()
    merged = shape.hidden * vision.positive("pixel_shuffle_scale_factor", default=1) ** 2
    projector = WIDENING * merged * (merged + text.positive("hidden_size"))
    return Encoder(split_parameters=split + projector, whole_parameters=whole, num_heads=tower_heads(vision))


FAMILIES: Final = (
    Family(classes=("IsaacForConditionalGeneration",), wraps=always("Qwen3ForCausalLM"), tower=seen(_tower)),
)
