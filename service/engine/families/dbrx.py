"""DBRX, which keeps its heads and experts in two objects.

Sources:
    vLLM 0.33 `model_executor/models/dbrx.py`; `config/model.py` refuses expert parallelism ("Number of experts in the
    model must be greater than 0"), as it looks for their number in the outer object alone.
"""

from collections.abc import Mapping
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import full_only
from service.engine.families.parts.family import Family


def _restated(reader: ConfigReader) -> Mapping[str, object]:
    attention = ConfigReader(reader.mapping("attn_config") or {})
    experts = ConfigReader(reader.mapping("ffn_config") or {})
    return {
        "num_key_value_heads": attention.positive("kv_n_heads", default=1),
        "num_local_experts": experts.positive("moe_num_experts", default=4),
        "num_experts_per_tok": experts.positive("moe_top_k", default=1),
        "moe_intermediate_size": experts.positive("ffn_hidden_size", default=3584),
    }


FAMILIES: Final = (
    Family(classes=("DbrxForCausalLM",), attention=full_only, restates=_restated, deals_out_experts=False),
)
