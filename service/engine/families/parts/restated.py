"""Families that state the usual facts elsewhere, restated where every other rule looks for them.

Sources:
    vLLM 0.33 model files: dbrx.py, ernie45_vl_moe.py.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, unknown_kind


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


def _ernie_vl(reader: ConfigReader) -> Mapping[str, object]:
    """Return as one number what Ernie 4.5 VL states for text and images, where both agree."""
    values: dict[str, object] = {}
    for field in ("moe_num_experts", "moe_layer_start_index", "moe_layer_end_index"):
        stated = reader.raw(field)
        if not is_list(stated) or not stated:
            continue
        values[field] = min((it for it in stated if isinstance(it, int)), default=0)
        if field == "moe_num_experts" and any(it != stated[0] for it in stated):
            raise unknown_kind(field, stated, "as many experts for images as for text")
    sizes = reader.raw("moe_intermediate_size")
    if is_list(sizes) and len(sizes) > 1:
        values |= {"moe_intermediate_size": sizes[0], "image_expert_size": sizes[1]}
    return values


_RULES: Final[Mapping[str, Callable[[ConfigReader], Mapping[str, object]]]] = MappingProxyType(
    {
        "DbrxForCausalLM": _dbrx,
        "Ernie4_5_VLMoeForConditionalGeneration": _ernie_vl,
    }
)


def restated(reader: ConfigReader, name: str) -> ConfigReader:
    """Return a reader under the names that the other rules use."""
    rule = _RULES.get(name)
    return reader if rule is None else reader.restated(rule(reader))
