"""Beam: windows with a gate on the attention's output, experts behind a few dense layers, four norms a layer.

Sources:
    vLLM 0.33 `models/beam/nvidia/`: model.py, attention.py, moe.py.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import windowed_with_gate
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.sizes import num_hidden_layers


def _gate_biases(reader: ConfigReader) -> int:
    """Return one bias for every head's gate."""
    return num_hidden_layers(reader) * reader.positive("num_attention_heads")


FAMILIES: Final = (
    Family(
        classes=("BeamForCausalLM",),
        attention=windowed_with_gate,
        feed_forward=FeedForward(experts=Experts(has_wide_router=True, has_score_correction=True)),
        head_norms=on_heads,
        norms_per_layer=4,
        extra_parameters=_gate_biases,
    ),
)
