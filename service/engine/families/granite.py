"""Granite 3 and 4, alone and behind a tower, and Bamba, whose state-space layers Granite's hybrids took over.

Sources:
    vLLM 0.33 `model_executor/models/`: granite.py, granitemoe.py, granitemoeshared.py, granitemoehybrid.py,
    granite4_vision.py with blip2.py (`Blip2QFormerModel`).
"""

import re
from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, unknown_kind
from service.engine.families.parts.attention import (
    Mixers,
    alone,
    base_attention,
    by_layer_types,
    not_stated,
    windowed_as_stated,
)
from service.engine.families.parts.dense import Dense
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.recurrent import by_kind
from service.engine.families.parts.rotary import rotating
from service.engine.families.parts.siglip import siglip_tower
from service.engine.families.parts.sizes import hidden_size, num_hidden_layers
from service.engine.families.parts.towers import divided, perceptron, vision_part, with_whole
from service.engine.families.parts.wrappers import always
from service.engine.layers import Encoder, Mamba2

READER_COLUMNS: Final = 3072  # of a reader's network
READER_OFFSETS: Final = 4  # at which windows are read once more


def _shared_width(reader: ConfigReader, stated: int) -> int:
    """Return the width of the network beside the experts, which stands alone where there are no experts."""
    return reader.integer("shared_intermediate_size", default=0) or stated


def _shared(reader: ConfigReader, _size: int, _stated: int) -> int:
    return reader.integer("shared_intermediate_size", default=0)


def _with_sinks(reader: ConfigReader) -> Mixers:
    """Return windows of 128 tokens with sinks, and full attention in every fourth layer from the first, unless stated.

    Source: transformers 5.20 `models/granite_swa/configuration_granite_swa.py`, as vLLM 0.33 loads it.
    """
    kinds = reader.strings("layer_types") or tuple(
        "sliding_attention" if index % 4 else "full_attention" for index in range(num_hidden_layers(reader))
    )
    if reader.states("sliding_window") and not reader.own("sliding_window"):
        kinds = ("full_attention",) * num_hidden_layers(reader)
    window = reader.positive("sliding_window", default=128)
    return alone(by_layer_types(reader, replace(base_attention(reader), has_sinks=True), kinds, window))


def _hybrid(reader: ConfigReader) -> Mixers:
    """Return state-space layers with a few attention layers, by `layer_types`."""
    mamba = _state_space(reader)
    kinds = reader.strings("layer_types") or reader.strings("layers_block_type")
    if kinds is None:
        raise not_stated("layer_types", "mamba or attention per layer", every_layer=False)
    return by_kind(reader, kinds, {"mamba": mamba, "linear_attention": mamba}, base_attention(reader))


def _state_space(reader: ConfigReader) -> Mamba2:
    return Mamba2(
        num_heads=reader.positive("mamba_n_heads"),
        head_dim=reader.integer("mamba_d_head", default=0)
        or reader.positive("mamba_expand", default=2) * hidden_size(reader) // reader.positive("mamba_n_heads"),
        state_size=reader.positive("mamba_d_state"),
        num_groups=reader.positive("mamba_n_groups", default=1),
        conv_kernel_size=reader.positive("mamba_d_conv"),
        state_dtype=reader.text("mamba_ssm_cache_dtype", default="auto"),
        has_bias=reader.flag("mamba_proj_bias"),
        has_conv_bias=reader.flag("mamba_conv_bias", default=True),
    )


def _bamba(reader: ConfigReader) -> Mixers:
    """Return the same layers, with attention where `attn_layer_indices` says."""
    attention_layers = frozenset(reader.integers("attn_layer_indices") or ())
    kinds = reader.strings("layers_block_type") or tuple(
        "attention" if index in attention_layers else "mamba" for index in range(num_hidden_layers(reader))
    )
    return _hybrid(ConfigReader({**reader.values(), "layer_types": list(kinds)}))


def _tower(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP without its last norm, and the learnt end of a line."""
    return with_whole(siglip_tower(vision, has_last_norm=False), text.positive("hidden_size"))


def _with_readers(outer: ConfigReader, text: ConfigReader) -> Encoder | None:
    """Return the tower with a reader of windows for each deep stack and for each of four offsets, whole on every rank.

    reader = 2 attentions + network + norms + (queries + positions) x w + projection
    """
    tower = divided(_tower)(outer, text)
    stacks, rate = outer.raw("deepstack_layer_map"), re.fullmatch(r"(\d{1,3})/(\d{1,3})", outer.text("downsample_rate"))
    if rate is None:
        raise unknown_kind("downsample_rate", outer.raw("downsample_rate"), "a fraction such as 4/8")
    width, out = vision_part(outer).positive("hidden_size"), text.positive("hidden_size")
    attention, norm = 4 * (width * width + width), 2 * width
    network = sum(perceptron(width, READER_COLUMNS, width))
    learnt = sum(int(side) ** 2 for side in rate.groups()) * width
    reader = 2 * (attention + norm) + network + norm + 2 * norm + learnt + (width + 1) * out
    count = READER_OFFSETS + (len(stacks) if is_list(stacks) else 0)
    return tower if tower is None else with_whole(tower, count * reader)


_SHARED: Final = FeedForward(dense=Dense(width=_shared_width), experts=Experts(shared=_shared))

FAMILIES: Final = (
    Family(classes=("GraniteForCausalLM",), model_types=("granite",), attention=windowed_as_stated),
    Family(classes=("GraniteMoeForCausalLM",), model_types=("granitemoe",), attention=windowed_as_stated),
    Family(classes=("GraniteMoeSharedForCausalLM",), attention=windowed_as_stated, feed_forward=_SHARED),
    Family(classes=("GraniteSWAForCausalLM",), attention=_with_sinks),
    Family(classes=("GraniteMoeSWAForCausalLM",), attention=_with_sinks, feed_forward=_SHARED),
    Family(
        classes=("GraniteMoeHybridForCausalLM",),
        model_types=("granitemoehybrid",),
        attention=_hybrid,
        feed_forward=_SHARED,
    ),
    Family(
        classes=("Granite4VisionForConditionalGeneration",), wraps=always("GraniteForCausalLM"), tower=_with_readers
    ),
    Family(classes=("BambaForCausalLM",), attention=_bamba, rotary=rotating(0.5), last_vllm="0.23"),
)
