"""Granite 3 and 4, and Bamba, whose state-space layers Granite's hybrids took over.

Sources:
    vLLM 0.33 `model_executor/models/`: granite.py, granitemoe.py, granitemoeshared.py, granitemoehybrid.py.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import (
    Mixers,
    alone,
    base_attention,
    not_stated,
    windowed,
    windowed_as_stated,
)
from service.engine.families.parts.dense import Dense
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.recurrent import by_kind
from service.engine.families.parts.sizes import hidden_size, num_hidden_layers
from service.engine.layers import Mamba2


def _shared_width(reader: ConfigReader, stated: int) -> int:
    """Return the width of the network beside the experts, which stands alone where there are no experts."""
    return reader.integer("shared_intermediate_size", default=0) or stated


def _shared(reader: ConfigReader, _size: int, _stated: int) -> int:
    return reader.integer("shared_intermediate_size", default=0)


def _with_sinks(reader: ConfigReader) -> Mixers:
    return alone(windowed(reader, replace(base_attention(reader), has_sinks=True)))


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
    Family(classes=("BambaForCausalLM",), attention=_bamba, last_vllm="0.23"),
)
