"""Llama 4: chunked attention, one shared expert, and a tower with a pixel-shuffle adapter.

Sources:
    vLLM 0.33 `model_executor/models/llama4.py` (`interleave_moe_layer_step`), `mllama4.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import Mixers, alone, base_attention, check_length
from service.engine.families.parts.dense import Dense, named
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.profiling import Item
from service.engine.families.parts.sizes import num_hidden_layers
from service.engine.families.parts.towers import blocks, divided
from service.engine.layers import Encoder

# What the config class supplies when the config leaves the whole tower out.
_SUPPLIED_TOWER: Final[Mapping[str, object]] = MappingProxyType(
    {
        "hidden_size": 768,
        "num_hidden_layers": 34,
        "intermediate_size": 5632,
        "vision_output_dim": 7680,
        "projector_output_dim": 4096,
        "image_size": 448,
    }
)


def _attention(reader: ConfigReader) -> Mixers:
    """Return attention inside chunks in layers with rotary positions, full attention in the others."""
    attention = base_attention(reader)
    layers = num_hidden_layers(reader)
    interval = reader.positive("no_rope_layer_interval", default=4)
    rope = reader.integers("no_rope_layers") or tuple(int((index + 1) % interval != 0) for index in range(layers))
    chunk = reader.integer("attention_chunk_size", default=8192)
    check_length("no_rope_layers", len(rope), layers)
    local = replace(attention, attention_chunk_size=chunk) if chunk else attention
    return alone(local if rope[index] else attention for index in range(layers))


def _sparsity(reader: ConfigReader, num_layers: int) -> Sequence[bool]:
    """Return the layers that `moe_layers` lists, or every few."""
    stated = reader.integers("moe_layers")
    step = reader.positive("interleave_moe_layer_step", default=1)
    listed = None if stated is None else frozenset(stated)
    return [index in listed if listed is not None else (index + 1) % step == 0 for index in range(num_layers)]


def _shared(_reader: ConfigReader, size: int, _stated: int) -> int:
    """Return one shared expert, as wide as a routed one."""
    return size


def _tower(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the tower, its pixel-shuffle adapter and projector."""
    hidden = vision.positive("hidden_size")
    patch = vision.positive("patch_size", default=14)
    side = vision.positive("image_size", default=336) // patch
    depth = vision.positive("num_hidden_layers")
    split, whole = blocks(hidden, vision.positive("intermediate_size"))
    ratio = vision.number("pixel_shuffle_ratio", default=0.5) or 0.5
    shuffled = int(hidden / (ratio * ratio))
    inner = vision.positive("projector_input_dim", default=4096)
    out = vision.positive("projector_output_dim", "vision_output_dim", default=4096)
    adapter = shuffled * inner + inner * out
    projector = vision.positive("vision_output_dim", default=4096) * text.positive("hidden_size")
    linear = 3 * patch * patch * hidden
    positions = hidden + (side * side + 1) * hidden + 4 * hidden
    return Encoder(
        split_parameters=depth * split + adapter + projector + linear,
        whole_parameters=depth * (whole + 4 * hidden) + positions,
    )


_LLAMA4: Final = Family(
    classes=("Llama4ForCausalLM",),
    attention=_attention,
    feed_forward=FeedForward(
        dense=Dense(width=named("intermediate_size_mlp")),
        experts=Experts(shared=_shared, splits_tokens=True, sparsity=_sparsity),
    ),
    has_window_pool=True,
)
FAMILIES: Final = (
    _LLAMA4,
    replace(
        _LLAMA4,
        classes=("Llama4ForConditionalGeneration",),
        tower=divided(_tower, supplied=_SUPPLIED_TOWER),
        largest_item=Item(tokens=2_448, patches_per_token=4),
    ),
)
