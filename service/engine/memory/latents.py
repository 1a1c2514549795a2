"""Which caches a version keeps of latent attention: latents, or the key and value of every head.

Sources:
    vLLM 0.7.0 `model_executor/models/deepseek_v2.py` and `deepseek_v3.py` (queries, keys and values "padded to 256":
    "TODO, support head_size 192"); release notes of 0.7.1 (MLA of DeepSeek's models: "~10x memory capacity for
    tokens"), pull request 10927.
"""

from typing import Final

from service.engine.derived import derived
from service.engine.engines.plans import PlanRules
from service.engine.layers import Architecture
from service.engine.memory.indexers import as_indexed

FILLED_WIDTH: Final = 256  # to which keys and values of heads are filled up [elements]


def as_cached(architecture: Architecture, plan: PlanRules) -> Architecture:
    """Return the model as a version caches it: with indexers as it has them, and heads where it keeps no latents."""
    indexed = as_indexed(architecture, plan)
    return indexed if plan.keeps_latents else _with_heads(indexed)


@derived(1)
def _with_heads(architecture: Architecture) -> Architecture:
    return architecture.with_mixers(lambda mixer: mixer.with_heads(FILLED_WIDTH))
