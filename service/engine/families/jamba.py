"""Jamba: Mamba 1 with attention every few layers, and experts every few.

Sources:
    vLLM 0.33 `model_executor/models/jamba.py`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import Mixers, alone, base_attention
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.recurrent import time_step_rank
from service.engine.families.parts.rotary import no_tables
from service.engine.families.parts.sizes import hidden_size, num_hidden_layers
from service.engine.families.parts.sparsity import periodic
from service.engine.layers import Mamba1


def _attention(reader: ConfigReader) -> Mixers:
    """Return attention every `attn_layer_period` layers, Mamba 1 elsewhere."""
    hidden, state = hidden_size(reader), reader.positive("mamba_d_state", default=16)
    rank = time_step_rank(reader, "mamba_dt_rank")
    mamba = Mamba1(
        intermediate_size=reader.positive("mamba_expand", default=2) * hidden,
        state_size=state,
        conv_kernel_size=reader.positive("mamba_d_conv", default=4),
        time_step_rank=rank,
        has_bias=reader.flag("mamba_proj_bias"),
        has_conv_bias=reader.flag("mamba_conv_bias", default=True),
        norm_elements=rank + 2 * state,
    )
    period, offset = reader.positive("attn_layer_period", default=8), reader.integer("attn_layer_offset", default=4)
    attention = base_attention(reader)
    return alone(attention if index % period == offset else mamba for index in range(num_hidden_layers(reader)))


FAMILIES: Final = (
    Family(
        classes=("JambaForCausalLM",),
        rotary=no_tables,
        attention=_attention,
        feed_forward=FeedForward(
            experts=Experts(sparsity=periodic("expert_layer_period", 2, "expert_layer_offset", 1), renormalizes=False)
        ),
    ),
)
