"""Snowflake Arctic: a dense network as wide as the stream beside the experts, with a norm of its own.

Sources:
    vLLM 0.28 `model_executor/models/arctic.py`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import Mixers, full_only
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.sizes import hidden_size


def _attention(reader: ConfigReader) -> Mixers:
    """Return full attention of models whose layers all have experts, since norms differ otherwise.

    Raises:
        UnsupportedModelError: layers between that have none.
    """
    every = reader.positive("moe_layer_frequency", default=2)
    if every != 1:
        raise unknown_kind("moe_layer_frequency", every, "1: experts in every layer")
    return full_only(reader)


def _dense_beside(reader: ConfigReader) -> int:
    return hidden_size(reader) if reader.flag("use_residual") else 0


def _norms(reader: ConfigReader) -> int:
    return 3 if reader.flag("use_residual") else 2


FAMILIES: Final = (
    Family(
        classes=("ArcticForCausalLM",),
        attention=_attention,
        feed_forward=FeedForward(experts=Experts(dense_beside=_dense_beside)),
        norms_per_layer=_norms,
        last_vllm="0.28",
    ),
)
