"""Upstage's Solar Open: GLM 4's experts in every layer, behind Llama's attention.

Source:
    transformers 5.23 `models/solar_open/modular_solar_open.py`.
"""

from typing import Final

from service.engine.families.parts.attention import full_only
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward

FAMILIES: Final = (
    Family(
        classes=("SolarOpenForCausalLM",),
        model_types=("solar_open",),
        attention=full_only,
        feed_forward=FeedForward(experts=Experts(has_wide_router=True, has_score_correction=True)),
    ),
)
