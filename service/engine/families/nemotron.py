"""Nemotron, plain and as architecture search left it.

Sources:
    vLLM 0.33 `model_executor/models/nemotron.py`, `nemotron_nas.py`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, is_mapping, unknown_kind
from service.engine.families.parts.attention import Mixers, alone, base_attention, full_only, not_stated
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.rotary import rotating
from service.engine.families.parts.sizes import hidden_size, num_hidden_layers
from service.engine.layers import Attention, DenseMlp, GroupedQueryAttention, Mlp, NoAttention, NoMlp

ROUNDED_TO: Final = 256  # a searched width


def _attention(reader: ConfigReader) -> Mixers:
    """Return what `block_configs` gives each layer or removes from it."""
    attention = base_attention(reader)
    return alone(_kept(part, attention) for part in _parts(reader, "attention"))


def _kept(part: ConfigReader, attention: GroupedQueryAttention) -> Attention:
    if part.flag("no_op") or part.raw("n_heads_in_group") is None:
        if part.raw("replace_with_linear"):
            raise unknown_kind("block_configs", "replace_with_linear", "attention or no_op")
        return NoAttention()
    group = part.positive("n_heads_in_group")
    return replace(attention, num_key_value_heads=max(attention.num_attention_heads // group, 1))


def _feed_forward(reader: ConfigReader, _num_layers: int) -> tuple[Mlp, ...]:
    """Return what search left of each layer (`ffn_mult` of two thirds of the width, rounded up)."""
    return tuple(_left(part, reader) for part in _parts(reader, "ffn"))


def _left(part: ConfigReader, reader: ConfigReader) -> Mlp:
    if part.flag("no_op") or (part.raw("ffn_mult") is None and part.raw("intermediate_size") is None):
        return NoMlp()
    size = part.integer("intermediate_size", default=0)
    multiple = part.number("ffn_mult", default=0.0)
    if multiple:
        size = -(-int(2 * multiple * hidden_size(reader) / 3) // ROUNDED_TO) * ROUNDED_TO
    return DenseMlp(intermediate_size=size)


def _parts(reader: ConfigReader, name: str) -> list[ConfigReader]:
    """Return one part of every layer's block."""
    blocks = reader.raw("block_configs")
    if not is_list(blocks) or len(blocks) != num_hidden_layers(reader):
        raise not_stated("block_configs", "one object per layer")
    stated: list[Mapping[str, object]] = [block if is_mapping(block) else {} for block in blocks]
    return [ConfigReader(ConfigReader(block).mapping(name) or {}) for block in stated]


FAMILIES: Final = (
    Family(
        classes=("NemotronForCausalLM",),
        attention=full_only,
        feed_forward=FeedForward(is_gated=False),
        has_norm_biases=True,
        rotary=rotating(0.5),
    ),
    Family(classes=("DeciLMForCausalLM",), attention=_attention, feed_forward=_feed_forward),
)
