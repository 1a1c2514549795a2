"""Arcee's Trinity: windows with a gate on the attention's output, experts behind a few dense layers.

Sources:
    vLLM 0.33 `model_executor/models/afmoe.py`.
"""

from typing import Final

from service.engine.families.parts.attention import windowed_with_gate
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.sparsity import first_dense_as

FAMILIES: Final = (
    Family(
        classes=("AfmoeForCausalLM",),
        attention=windowed_with_gate,
        feed_forward=FeedForward(
            experts=Experts(
                has_wide_router=True, has_score_correction=True, sparsity=first_dense_as("num_dense_layers")
            )
        ),
        head_norms=on_heads,
        norms_per_layer=4,
    ),
)
