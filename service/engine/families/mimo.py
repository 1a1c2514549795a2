"""MiMo, and MiMo-V2, whose sliding layers have heads of their own.

Sources:
    vLLM 0.33 `model_executor/models/`: mimo.py, mimo_mtp.py, mimo_v2.py, mimo_v2_mtp.py.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import Mixers, alone, base_attention, not_stated, windowed_where_asked
from service.engine.families.parts.biases import output_apart
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.mtp import Draft, head_of, like_the_last, sliding_dense
from service.engine.families.parts.rotary import stated_tables
from service.engine.families.parts.sizes import num_hidden_layers
from service.engine.layers import Architecture, DecoderLayer, DraftHead, GroupedQueryAttention, RotaryTable


def _attention(reader: ConfigReader) -> Mixers:
    """Return full or sliding layers by `hybrid_layer_pattern`."""
    attention = base_attention(reader)
    attention = replace(attention, v_head_dim=reader.positive("v_head_dim", default=attention.head_dim))
    sliding = _sliding(reader, attention)
    pattern = reader.integers("hybrid_layer_pattern")
    if pattern is None or len(pattern) < num_hidden_layers(reader):
        raise not_stated("hybrid_layer_pattern", "one 0 (full) or 1 (sliding) per layer")
    return alone(sliding if pattern[index] else attention for index in range(num_hidden_layers(reader)))


def _sliding(reader: ConfigReader, attention: GroupedQueryAttention) -> GroupedQueryAttention:
    head_dim = reader.positive("swa_head_dim", default=attention.head_dim)
    return replace(
        attention,
        num_attention_heads=reader.positive("swa_num_attention_heads", default=attention.num_attention_heads),
        num_key_value_heads=reader.positive("swa_num_key_value_heads", default=attention.num_key_value_heads),
        head_dim=head_dim,
        v_head_dim=reader.positive("swa_v_head_dim", default=head_dim),
        sliding_window=reader.positive("sliding_window_size", "sliding_window"),
        has_sinks=reader.flag("add_swa_attention_sink_bias"),
    )


def _modules(reader: ConfigReader, architecture: Architecture, modules: int) -> DraftHead:
    """Return dense, sliding layers, whose output projection keeps the model's dtype."""
    head = head_of(architecture, sliding_dense(reader, architecture), modules, first="model.mtp.layers")
    return replace(head, unquantized=("o_proj",))


def _tables(reader: ConfigReader, layers: tuple[DecoderLayer, ...]) -> tuple[RotaryTable, ...]:
    """Return one table, and one for layers with a window where they turn at another pace."""
    tables = stated_tables(reader, layers)
    is_told = reader.raw("swa_rope_theta") is None or len(tables) > 1  # one for each kind of layer
    return tables if is_told else (*tables, *tables)


FAMILIES: Final = (
    Family(
        classes=("MiMoForCausalLM",),
        attention=windowed_where_asked,
        biases=output_apart(default=True),
        draft=Draft(build=like_the_last),
    ),
    Family(
        classes=("MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM"),
        attention=_attention,
        feed_forward=FeedForward(experts=Experts(has_wide_router=True)),
        draft=Draft(build=_modules, default_count=1, builds_only_the_first=True),
        rotary=_tables,
        has_window_pool=True,
    ),
)
