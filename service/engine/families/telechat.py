"""TeleChat and Tele-FLM.

Sources:
    vLLM 0.33 `model_executor/models/telechat2.py`, `teleflm.py`, `llama.py` (TeleChat3).
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import windowed_as_stated
from service.engine.families.parts.biases import Biases
from service.engine.families.parts.dense import Dense
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward


def _output_only(_reader: ConfigReader, _stated: Biases) -> Biases:
    return False, True


_SECOND: Final = Family(
    classes=("TeleChat2ForCausalLM",),
    attention=windowed_as_stated,
    feed_forward=FeedForward(dense=Dense(has_output_bias=True)),
    biases=_output_only,
)
FAMILIES: Final = (
    replace(_SECOND, classes=("TeleChatForCausalLM",), last_vllm="0.25"),
    _SECOND,
    Family(classes=("TeleChat3ForCausalLM", "TeleFLMForCausalLM"), attention=windowed_as_stated),
)
