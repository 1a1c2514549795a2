"""Which caches a version keeps of latent attention: latents, or the key and value of every head.

Sources:
    vLLM 0.7.0 `model_executor/models/deepseek_v2.py` and `deepseek_v3.py` (queries, keys and values "padded to 256":
    "TODO, support head_size 192"); release notes of 0.7.1 (MLA of DeepSeek's models: "~10x memory capacity for
    tokens"), pull request 10927.
"""

from dataclasses import replace
from typing import Final

from service.engine.derived import derived
from service.engine.engines.plans import PlanRules
from service.engine.layers import Architecture, Mixer
from service.engine.layers.latent import LatentAttention
from service.engine.memory.indexers import as_indexed

FILLED_WIDTH: Final = 256  # to which keys and values of heads are filled up [elements]


def as_cached(architecture: Architecture, plan: PlanRules) -> Architecture:
    """Return the model as a version caches it: with indexers as it has them, and heads where it keeps no latents."""
    indexed = as_indexed(architecture, plan)
    return indexed if plan.keeps_latents else _with_heads(indexed)


@derived(1)
def _with_heads(architecture: Architecture) -> Architecture:
    if not any(isinstance(mixer, LatentAttention) for mixer in architecture.mixers):
        return architecture
    layers = (replace(layer, mixers=tuple(_kept(mixer) for mixer in layer.mixers)) for layer in architecture.layers)
    return replace(architecture, layers=tuple(layers))


def _kept(mixer: Mixer) -> Mixer:
    """Return latent attention that keeps what it makes of latents; what keeps heads by itself stays."""
    if not isinstance(mixer, LatentAttention) or mixer.keeps_heads:
        return mixer
    return replace(mixer, keeps_heads=True, kept_width=max(FILLED_WIDTH, mixer.key_width))
