"""LongCat: two latents and two dense networks beside the experts of every layer, some of which pass a token on.

Sources:
    vLLM 0.33 `model_executor/models/longcat_flash.py`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import Mixers, repeated
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.latent import latent_attention


def _attention(reader: ConfigReader) -> Mixers:
    attention = latent_attention(reader)
    return repeated(reader, attention, attention)


def _dense_beside(reader: ConfigReader) -> int:
    return reader.positive("ffn_hidden_size", "intermediate_size")


def _idle(reader: ConfigReader) -> int:
    return reader.integer("zero_expert_num", default=0)


FAMILIES: Final = (
    Family(
        classes=("LongcatFlashForCausalLM",),
        attention=_attention,
        feed_forward=FeedForward(
            experts=Experts(
                dense_beside=_dense_beside,
                dense_count=2,
                num_idle=_idle,
                has_wide_router=True,
                has_score_correction=True,
            )
        ),
        norms_per_layer=4,
    ),
)
