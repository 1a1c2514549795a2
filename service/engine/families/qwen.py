"""Qwen 1 to 3, dense and with experts.

Sources:
    vLLM 0.33 `model_executor/models/`: qwen2.py, qwen3.py, qwen2_moe.py, qwen3_moe.py; of 0.23 qwen.py (Qwen 1).
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import Mixers, base_attention, full_only, repeated, windowed_where_asked
from service.engine.families.parts.biases import inputs_only
from service.engine.families.parts.dense import Dense
from service.engine.families.parts.experts import Experts, none_shared
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.norms import on_heads

# Their configs state a shared expert that the model code does not build.
UNSHARED: Final = FeedForward(experts=Experts(shared=none_shared, renormalizes=False))


def _all_or_none(reader: ConfigReader) -> Mixers:
    """Return the attention of the configs without `layer_types`: all layers slide, or none."""
    attention = base_attention(reader)
    window = reader.integer("sliding_window", default=0) if reader.flag("use_sliding_window") else 0
    return repeated(reader, replace(attention, sliding_window=window) if window else attention)


def _first(reader: ConfigReader) -> Mixers:
    """Return full attention of Qwen 1.

    Raises:
        UnsupportedModelError: a tower for images or sound, or the biases that no published one has.
    """
    for name in ("visual", "audio"):
        if reader.raw(name) is not None:
            raise unknown_kind(name, "a tower", "none: the language model alone")
    if not reader.flag("no_bias", default=True):
        raise unknown_kind("no_bias", False, "true")
    return full_only(reader)


def _half(reader: ConfigReader, _stated: int) -> int:
    """Return the width of one of two matrices, which Qwen 1 states together."""
    return reader.positive("intermediate_size") // 2


FAMILIES: Final = (
    Family(
        classes=("QWenLMHeadModel",),
        attention=_first,
        feed_forward=FeedForward(dense=Dense(width=_half)),
        biases=inputs_only("attention_bias"),
        last_vllm="0.23",
    ),
    Family(
        classes=("Qwen2ForCausalLM",),
        model_types=("qwen2",),
        attention=windowed_where_asked,
        biases=inputs_only("qkv_bias", "attention_bias"),
    ),
    Family(
        classes=("Qwen2MoeForCausalLM",),
        model_types=("qwen2_moe",),
        attention=_all_or_none,
        feed_forward=FeedForward(experts=Experts(has_shared_gate=True, renormalizes=False)),
        biases=inputs_only("qkv_bias", "attention_bias"),
    ),
    Family(
        classes=("Qwen3ForCausalLM",),
        model_types=("qwen3",),
        attention=windowed_where_asked,
        head_norms=on_heads,
    ),
    Family(
        classes=("Qwen3MoeForCausalLM",),
        model_types=("qwen3_moe",),
        attention=_all_or_none,
        feed_forward=UNSHARED,
        head_norms=on_heads,
    ),
)
