"""OLMo and its relatives with experts or linear attention.

Sources:
    vLLM 0.33 `model_executor/models/olmoe.py`, `olmo_hybrid.py`; the others run through the engine's generic
    backend, `model_executor/models/transformers`.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import Mixers, base_attention, full_only, windowed_as_stated
from service.engine.families.parts.family import Family
from service.engine.families.parts.norms import over_all_heads
from service.engine.families.parts.recurrent import delta_net, in_groups_of_four


def _hybrid(reader: ConfigReader) -> Mixers:
    """Return gated delta nets without gates, their states kept at the ends of blocks only."""
    linear = replace(delta_net(reader), has_narrow_decay=True, exports_states=False)
    return in_groups_of_four(reader, linear, base_attention(reader))


FAMILIES: Final = (
    Family(classes=("OlmoForCausalLM",), attention=full_only, norms_per_layer=0),  # its norms have no weights
    Family(
        classes=("Olmo2ForCausalLM", "OlmoeForCausalLM", "FlexOlmoForCausalLM"),
        model_types=("olmo2",),
        attention=full_only,
        head_norms=over_all_heads,
    ),
    Family(classes=("Olmo3ForCausalLM",), attention=windowed_as_stated, head_norms=over_all_heads),
    Family(classes=("OlmoHybridForCausalLM",), attention=_hybrid, head_norms=over_all_heads),
)
