"""Families that state the usual facts elsewhere, restated where every other rule looks for them.

Sources:
    vLLM 0.33 model files: dbrx.py, telechat2.py.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from service.engine.config.reader import ConfigReader


def _dbrx(reader: ConfigReader) -> Mapping[str, object]:
    """Return heads and experts, which DBRX keeps in two objects."""
    attention = ConfigReader(reader.mapping("attn_config") or {})
    experts = ConfigReader(reader.mapping("ffn_config") or {})
    return {
        "num_key_value_heads": attention.positive("kv_n_heads", default=1),
        "num_local_experts": experts.positive("moe_num_experts", default=4),
        "num_experts_per_tok": experts.positive("moe_top_k", default=1),
        "moe_intermediate_size": experts.positive("ffn_hidden_size", default=3584),
    }


_RULES: Final[Mapping[str, Callable[[ConfigReader], Mapping[str, object]]]] = MappingProxyType(
    {
        "DbrxForCausalLM": _dbrx,
    }
)


def restated(reader: ConfigReader, name: str) -> ConfigReader:
    """Return a reader under the names that the other rules use."""
    rule = _RULES.get(name)
    return reader if rule is None else reader.restated(rule(reader))
