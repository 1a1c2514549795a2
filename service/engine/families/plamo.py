"""PLaMo 3.

Sources:
    vLLM 0.33 `model_executor/models/plamo3.py`.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, is_list
from service.engine.families.parts.attention import Mixers, alone, base_attention, not_stated
from service.engine.families.parts.family import Family
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.sizes import num_hidden_layers


def _attention(reader: ConfigReader) -> Mixers:
    """Return the window that `interleaved_sliding_window` gives each layer, or null."""
    attention = base_attention(reader)
    windows = reader.raw("interleaved_sliding_window")
    if not is_list(windows) or len(windows) < num_hidden_layers(reader):
        raise not_stated("interleaved_sliding_window", "one window or null per layer")
    own = windows[: num_hidden_layers(reader)]
    stated = [ConfigReader({"interleaved_sliding_window": window}) for window in own]
    lengths = [window.integer("interleaved_sliding_window", default=0) for window in stated]
    return alone(replace(attention, sliding_window=length) if length else attention for length in lengths)


FAMILIES: Final = (
    Family(classes=("Plamo3ForCausalLM",), attention=_attention, head_norms=on_heads, norms_per_layer=4),
)
