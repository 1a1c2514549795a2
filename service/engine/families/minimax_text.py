"""MiniMax Text 01 and M1: lightning attention, softmax attention in every eighth layer, experts in all.

Sources:
    vLLM 0.23 `model_executor/models/minimax_text_01.py`, `model_executor/layers/mamba/linear_attn.py`.
"""

from collections.abc import Sequence
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import Mixers, alone, base_attention, check_length, not_stated
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.recurrent import lightning
from service.engine.families.parts.sizes import num_hidden_layers

KINDS: Final = {0: "linear_attention", 1: "full_attention"}


def _attention(reader: ConfigReader) -> Mixers:
    """Return each layer's mixer, by `layer_types` or the numbers of `attn_type_list`."""
    full = base_attention(reader)
    linear = lightning(full.num_attention_heads, full.head_dim)
    return alone(full if kind == KINDS[1] else linear for kind in _kinds(reader))


def _kinds(reader: ConfigReader) -> Sequence[str]:
    numbers = reader.integers("attn_type_list") or reader.integers("decoder_attention_types")
    stated = reader.strings("layer_types")
    if stated is None and numbers is None:
        raise not_stated("attn_type_list", "0 (lightning attention) or 1 (softmax) per layer")
    kinds = stated or tuple(KINDS.get(number, str(number)) for number in numbers or ())
    layers = num_hidden_layers(reader)
    check_length("layer_types" if stated else "attn_type_list", len(kinds), layers)
    for kind in kinds[:layers]:
        if kind not in KINDS.values():
            raise unknown_kind("attn_type_list", kind, "0 (lightning attention) or 1 (softmax)")
    return kinds[:layers]


FAMILIES: Final = (
    Family(
        classes=("MiniMaxText01ForCausalLM", "MiniMaxM1ForCausalLM", "MiniMaxForCausalLM"),
        attention=_attention,
        feed_forward=FeedForward(experts=Experts(has_wide_router=True)),
        has_stages=False,
        last_vllm="0.23",
    ),
)
