"""StableLM and Orion: full attention, norms with biases.

Sources:
    vLLM 0.33 `model_executor/models/stablelm.py`, `orion.py`.
"""

from dataclasses import replace
from typing import Final

from service.engine.families.parts.attention import full_only
from service.engine.families.parts.biases import inputs_only
from service.engine.families.parts.family import Family

_STABLELM: Final = Family(
    classes=("StableLmForCausalLM", "OrionForCausalLM"),
    attention=full_only,
    has_norm_biases=True,
    biases=inputs_only("use_qkv_bias"),
)
FAMILIES: Final = (
    _STABLELM,
    replace(_STABLELM, classes=("StableLMEpochForCausalLM",), last_vllm="0.28"),
)
