"""Baichuan 1 and 2: Llama's matrices; those wider than 7B's tell positions apart by slopes (ALiBi).

Sources:
    vLLM 0.23 `model_executor/models/baichuan.py`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import full_only
from service.engine.families.parts.family import Family
from service.engine.families.parts.rotary import no_tables, stated_tables
from service.engine.families.parts.sizes import hidden_size
from service.engine.layers import DecoderLayer, RotaryTable

ROTATED_WIDTH: Final = 4096  # by which the engine tells the sizes of one class apart


def _tables(reader: ConfigReader, layers: tuple[DecoderLayer, ...]) -> tuple[RotaryTable, ...]:
    """Return a table for 7B alone."""
    return stated_tables(reader, layers) if hidden_size(reader) == ROTATED_WIDTH else no_tables(reader, layers)


FAMILIES: Final = (
    Family(classes=("BaiChuanForCausalLM",), attention=full_only, last_vllm="0.23"),
    Family(classes=("BaichuanForCausalLM",), attention=full_only, rotary=_tables, last_vllm="0.23"),
)
