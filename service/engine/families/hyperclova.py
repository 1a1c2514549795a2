"""HyperCLOVA X, and behind a tower.

Sources:
    vLLM 0.33 `model_executor/models/hyperclovax.py`, `hyperclovax_vision_v2.py`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import windowed_as_stated
from service.engine.families.parts.family import Family
from service.engine.families.parts.norms import four_where
from service.engine.families.parts.patch_mergers import gated_merging_tower
from service.engine.families.parts.towers import vision_part, with_whole
from service.engine.families.parts.wrappers import named_inside
from service.engine.layers import Encoder


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return a gated tower with a merger, and one projection that no rank splits."""
    tower, out = gated_merging_tower(outer, text), text.positive("hidden_size")
    return with_whole(tower, vision_part(outer).positive("out_hidden_size") * out + out)


FAMILIES: Final = (
    Family(
        classes=("HyperCLOVAXForCausalLM",),
        model_types=("hyperclovax",),
        attention=windowed_as_stated,
        norms_per_layer=four_where("use_post_norm", default=True),
    ),
    Family(classes=("HCXVisionV2ForCausalLM",), wraps=named_inside, tower=_tower),
)
