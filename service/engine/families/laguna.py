"""Poolside's Laguna: query heads and an output gate per layer.

Sources:
    vLLM 0.33 `model_executor/models/laguna.py`.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import Mixers, alone, base_attention, windowed
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.norms import on_heads
from service.engine.layers import GroupedQueryAttention


def _attention(reader: ConfigReader) -> Mixers:
    """Return windows by `layer_types`, with the heads that `num_attention_heads_per_layer` lists."""
    heads = reader.integers("num_attention_heads_per_layer") or ()
    gating = reader.raw("gating")

    def own(index: int, attention: GroupedQueryAttention) -> GroupedQueryAttention:
        has_own = index < len(heads) and heads[index] > 0
        return replace(
            attention,
            num_attention_heads=heads[index] if has_own else attention.num_attention_heads,
            has_head_gate=gating in (True, "per-head"),
            has_output_gate=bool(gating) and gating not in (True, "per-head"),
        )

    return alone(own(index, attention) for index, attention in enumerate(windowed(reader, base_attention(reader))))


FAMILIES: Final = (
    Family(
        classes=("LagunaForCausalLM",),
        attention=_attention,
        feed_forward=FeedForward(experts=Experts(has_score_correction=True)),
        head_norms=on_heads,
        has_window_pool=True,
    ),
)
