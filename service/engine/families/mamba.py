"""Models of nothing but state-space layers.

Sources:
    vLLM 0.33 `model_executor/models/mamba.py`, `mamba2.py`.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import Mixers, repeated
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import no_feed_forward
from service.engine.families.parts.recurrent import time_step_rank
from service.engine.families.parts.rotary import no_tables
from service.engine.families.parts.sizes import hidden_size
from service.engine.layers import Mamba1, Mamba2


def _first(reader: ConfigReader) -> Mixers:
    """Return a pure Mamba 1 stack."""
    mixer = Mamba1(
        intermediate_size=reader.integer("intermediate_size", default=0)
        or reader.positive("expand", default=2) * hidden_size(reader),
        state_size=reader.positive("state_size"),
        conv_kernel_size=reader.positive("conv_kernel"),
        time_step_rank=time_step_rank(reader, "time_step_rank"),
        has_bias=reader.flag("use_bias"),
        has_conv_bias=reader.flag("use_conv_bias", default=True),
    )
    return repeated(reader, mixer)


def _second(reader: ConfigReader) -> Mixers:
    """Return a pure Mamba 2 stack."""
    mixer = Mamba2(
        num_heads=reader.positive("num_heads"),
        head_dim=reader.positive("head_dim"),
        state_size=reader.positive("state_size"),
        num_groups=reader.positive("n_groups", default=1),
        conv_kernel_size=reader.positive("conv_kernel"),
        state_dtype="auto",
        has_bias=reader.flag("use_bias"),
        has_conv_bias=reader.flag("use_conv_bias", default=True),
    )
    return repeated(reader, mixer)


_MAMBA: Final = Family(
    classes=("MambaForCausalLM",),
    rotary=no_tables,
    attention=_first,
    feed_forward=no_feed_forward,
    norms_per_layer=1,
    is_hybrid=False,
)
FAMILIES: Final = (
    _MAMBA,
    replace(_MAMBA, classes=("FalconMambaForCausalLM",), ties_embeddings=True),
    replace(_MAMBA, classes=("Mamba2ForCausalLM",), attention=_second, has_stages=False),
)
