"""StableLM and Orion: full attention, norms with biases.

Sources:
    vLLM 0.33 `model_executor/models/stablelm.py`, `orion.py`.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import full_only
from service.engine.families.parts.biases import Biases
from service.engine.families.parts.family import Family
from service.engine.families.parts.rotary import rotating, stated_tables


def _where_stated(reader: ConfigReader, _stated: Biases) -> Biases:
    """Return biases of queries, keys and values where `use_qkv_bias` says so."""
    return reader.flag("use_qkv_bias"), False


_STABLELM: Final = Family(
    classes=("StableLmForCausalLM",),
    attention=full_only,
    has_norm_biases=True,
    biases=_where_stated,
    rotary=rotating(0.25),
)
FAMILIES: Final = (
    _STABLELM,
    replace(_STABLELM, classes=("OrionForCausalLM",), rotary=stated_tables),
    replace(_STABLELM, classes=("StableLMEpochForCausalLM",), last_vllm="0.28"),
)
