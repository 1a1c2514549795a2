"""InternLM 2 and 3.

Sources:
    vLLM 0.33 `model_executor/models/internlm2.py`, `llama.py` (InternLM 3).
"""

from typing import Final

from service.engine.families.parts.attention import full_only, windowed_as_stated
from service.engine.families.parts.family import Family

FAMILIES: Final = (
    Family(classes=("InternLM2ForCausalLM",), model_types=("internlm2",), attention=full_only),
    Family(classes=("InternLM3ForCausalLM",), attention=windowed_as_stated),
)
