"""InternLM 1 to 3.

Sources:
    vLLM 0.33 `model_executor/models/internlm2.py`, `llama.py` (InternLM 3); 0.23 `llama.py` (InternLM 1).
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import full_only, windowed_as_stated
from service.engine.families.parts.biases import Biases
from service.engine.families.parts.family import Family


def _both_or_none(reader: ConfigReader, _stated: Biases) -> Biases:
    """Return biases in every projection where `bias` says so."""
    return reader.flag("bias"), reader.flag("bias")


FAMILIES: Final = (
    Family(classes=("InternLMForCausalLM",), attention=full_only, biases=_both_or_none, last_vllm="0.23"),
    Family(classes=("InternLM2ForCausalLM",), model_types=("internlm2",), attention=full_only),
    Family(classes=("InternLM3ForCausalLM",), attention=windowed_as_stated),
)
