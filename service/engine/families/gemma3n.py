"""Gemma 3n: copies of the stream, an embedding for every layer, and late layers that read earlier caches.

Sources:
    vLLM 0.33 `model_executor/models/gemma3n.py`, `gemma3n_mm.py`.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import (
    FULL_KINDS,
    Mixers,
    alone,
    alternating,
    base_attention,
    by_layer_types,
)
from service.engine.families.parts.family import Family
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.residual import layer_embeddings
from service.engine.families.parts.sizes import num_hidden_layers
from service.engine.families.parts.towers import seen
from service.engine.layers import AlternatingUpdates, Encoder

# Image and audio towers, the same in both sizes. The printed totals of E4B (7,849,978,192) and E2B (5,439,438,272)
# leave the same number beside their language models, counting the unused key and value projections of layers
# that share a cache.
TOWER_PARAMETERS: Final = 983_281_504


def _attention(reader: ConfigReader) -> Mixers:
    """Return four sliding layers of five; late ones read the last caches before them: one back if full, else two."""
    full = base_attention(reader)
    layers = num_hidden_layers(reader)
    kinds = reader.strings("layer_types") or alternating(reader, 5)
    own = by_layer_types(reader, full, kinds, reader.positive("sliding_window", default=512))
    first_shared = layers - reader.integer("num_kv_shared_layers", default=15)
    if not 2 <= first_shared <= layers:
        raise unknown_kind("num_kv_shared_layers", layers - first_shared, f"0 to {max(layers - 2, 0)}")
    back = {True: 1, False: 2}
    return alone(
        attention
        if index < first_shared
        else replace(attention, shares_cache_with=first_shared - back[kinds[index] in FULL_KINDS])
        for index, attention in enumerate(own)
    )


def _streams(reader: ConfigReader) -> AlternatingUpdates:
    """Return the copies of the stream."""
    return AlternatingUpdates(
        num_streams=reader.positive("altup_num_inputs", default=4),
        residual_rank=reader.positive("laurel_rank", default=64),
    )


def _towers(_vision: ConfigReader, _text: ConfigReader) -> Encoder:
    return Encoder(split_parameters=0, whole_parameters=TOWER_PARAMETERS)


_GEMMA3N: Final = Family(
    classes=("Gemma3nForCausalLM",),
    attention=_attention,
    head_norms=on_heads,
    norms_per_layer=4,
    ties_embeddings=True,
    per_layer_embeddings=layer_embeddings,
    alternating_updates=_streams,
    has_stages=False,
)
FAMILIES: Final = (
    _GEMMA3N,
    replace(_GEMMA3N, classes=("Gemma3nForConditionalGeneration",), tower=seen(_towers), tower_size=(24, 2_048)),
)
