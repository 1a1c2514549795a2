"""ByteDance's Seed-OSS: biases on queries, keys and values, one of its own on the output.

Sources:
    vLLM 0.33 `model_executor/models/transformers` (the engine's generic backend).
"""

from typing import Final

from service.engine.families.parts.attention import windowed_as_stated
from service.engine.families.parts.biases import output_apart
from service.engine.families.parts.family import Family

FAMILIES: Final = (
    Family(
        classes=("SeedOssForCausalLM",),
        model_types=("seed_oss",),
        attention=windowed_as_stated,
        biases=output_apart(default=True),
    ),
)
