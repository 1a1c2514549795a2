"""Qwen 2 and 3, dense and with experts.

Sources:
    vLLM 0.33 `model_executor/models/`: qwen2.py, qwen3.py, qwen2_moe.py, qwen3_moe.py.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import Mixers, base_attention, repeated, windowed_where_asked
from service.engine.families.parts.biases import inputs_only
from service.engine.families.parts.experts import Experts, none_shared
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.norms import on_heads

# Their configs state a shared expert that the model code does not build.
UNSHARED: Final = FeedForward(experts=Experts(shared=none_shared))


def _all_or_none(reader: ConfigReader) -> Mixers:
    """Return the attention of the configs without `layer_types`: all layers slide, or none."""
    attention = base_attention(reader)
    window = reader.integer("sliding_window", default=0) if reader.flag("use_sliding_window") else 0
    return repeated(reader, replace(attention, sliding_window=window) if window else attention)


FAMILIES: Final = (
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
        feed_forward=FeedForward(experts=Experts(has_shared_gate=True)),
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
