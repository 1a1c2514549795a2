"""SK Telecom's A.X K1: latents, with a third norm in every layer.

Sources:
    vLLM 0.33 `model_executor/models/AXK1.py`.
"""

from typing import Final

from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.latent import latent
from service.engine.families.parts.sparsity import first_dense

FAMILIES: Final = (
    Family(
        classes=("AXK1ForCausalLM",),
        attention=latent,
        feed_forward=FeedForward(experts=Experts(splits_tokens=True, has_score_correction=True, sparsity=first_dense)),
        norms_per_layer=3,
    ),
)
