"""EXAONE 3.5 to 4.5, dense and with experts.

Sources:
    vLLM 0.33 `model_executor/models/`: exaone.py, exaone4.py, exaone_moe.py, exaone_moe_mtp.py, exaone4_5.py.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import (
    Mixers,
    alone,
    base_attention,
    full_only,
    windowed_as_stated,
)
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.mtp import Draft, under_mtp
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.patch_mergers import gated_merging_tower
from service.engine.families.parts.sizes import num_hidden_layers
from service.engine.families.parts.sparsity import first_dense
from service.engine.families.parts.towers import tower_heads, vision_part
from service.engine.families.parts.wrappers import always
from service.engine.layers import Architecture, DraftHead, Encoder

DEFAULT_WINDOW: Final = 4_096  # where a config states none [tokens]
PERIOD: Final = 4  # layers from one with the whole context to the next


def _modules(_reader: ConfigReader, architecture: Architecture, modules: int) -> DraftHead:
    """Return layers like the model's first, whose cache is of the model's dtype: nobody tells them of another.

    Source: vLLM 0.33 `model_executor/models/exaone_moe_mtp.py` (`ExaoneMoeDecoderLayer` without `cache_config`).
    """
    return replace(under_mtp(architecture, architecture.layers[0], modules), keeps_model_dtype=True)


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return a gated tower with a merger, and fewer key-value heads."""
    vision, tower = vision_part(outer), gated_merging_tower(outer, text)
    hidden, heads = vision.positive("hidden_size"), tower_heads(vision)
    fewer = heads - vision.positive("num_key_value_heads", default=heads)
    saved = vision.positive("depth") * 2 * fewer * (hidden // heads) * (hidden + 1)
    return replace(tower, split_parameters=tower.split_parameters - saved)


def _windowed(reader: ConfigReader) -> Mixers:
    """Return heads with the windows that are stated, else those of the config class: in three layers of four.

    Source: transformers 5 `models/exaone4/configuration_exaone4.py`.
    """
    full = base_attention(reader)
    window = reader.integer("sliding_window", default=0 if reader.states("sliding_window") else DEFAULT_WINDOW)
    if not window or reader.raw("layer_types") is not None:
        return windowed_as_stated(reader)
    local, period = replace(full, sliding_window=window), reader.positive("sliding_window_pattern", default=PERIOD)
    layers = range(1, num_hidden_layers(reader) + 1)
    return alone(local if index % period else full for index in layers)


FAMILIES: Final = (
    Family(classes=("ExaoneForCausalLM",), attention=full_only),
    Family(classes=("Exaone4ForCausalLM",), attention=_windowed, head_norms=on_heads),
    Family(
        classes=("ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM"),
        attention=windowed_as_stated,
        feed_forward=FeedForward(experts=Experts(has_score_correction=True, sparsity=first_dense)),
        head_norms=on_heads,
        draft=Draft(build=_modules),
    ),
    Family(classes=("Exaone4_5_ForConditionalGeneration",), wraps=always("Exaone4ForCausalLM"), tower=_tower),
)
