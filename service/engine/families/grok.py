"""Grok 1, and Grok 2 with a dense network beside its experts.

Sources:
    vLLM 0.24 `model_executor/models/grok1.py`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import full_only
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward


def _dense_beside(reader: ConfigReader) -> int:
    return reader.positive("intermediate_size") if reader.flag("residual_moe") else 0


FAMILIES: Final = (
    Family(
        classes=("Grok1ForCausalLM", "Grok1ModelForCausalLM"),
        attention=full_only,
        feed_forward=FeedForward(experts=Experts(dense_beside=_dense_beside, has_plain_activation=False)),
        norms_per_layer=4,
        ties_embeddings=True,
        last_vllm="0.24",
    ),
)
