"""gpt-oss: biases and sinks, windows in even layers, experts in MXFP4.

Sources:
    vLLM 0.33 `model_executor/models/gpt_oss.py` (`layer_idx % 2 == 0`),
    `model_executor/layers/quantization/mxfp4.py`.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import Mixers, alone, base_attention
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.rotary import in_single
from service.engine.families.parts.sizes import num_hidden_layers

RANK_MULTIPLE: Final = 64  # rows of an expert on one rank, as the MXFP4 kernels on Hopper want them


def _attention(reader: ConfigReader) -> Mixers:
    """Return windows in even layers."""
    attention = replace(
        base_attention(reader), has_sinks=True, has_query_bias=True, has_key_value_bias=True, has_output_bias=True
    )
    sliding = replace(attention, sliding_window=reader.positive("sliding_window", default=128))
    return alone(sliding if index % 2 == 0 else attention for index in range(num_hidden_layers(reader)))


FAMILIES: Final = (
    Family(
        classes=("GptOssForCausalLM",),
        model_types=("gpt_oss",),
        attention=_attention,
        feed_forward=FeedForward(
            experts=Experts(own_multiple=RANK_MULTIPLE, has_plain_activation=False, has_biases=True)
        ),
        rotary=in_single,
        has_window_pool=True,
    ),
)
