"""Falcon, and Falcon-H1, in which attention and a state-space mixer stand side by side.

Sources:
    vLLM 0.33 `model_executor/models/falcon.py`, `falcon_h1.py`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import Mixers, base_attention, repeated
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.rotary import stated_tables
from service.engine.families.parts.sizes import hidden_size
from service.engine.layers import DecoderLayer, Mamba2, RotaryTable

SUPPLIED_LENGTH: Final = 2_048  # [tokens]


def _attention(reader: ConfigReader) -> Mixers:
    """Return one key-value head with `multi_query`, unless the new decoder is used.

    The engine does not pass the cache's dtype on to this model.
    """
    attention = replace(base_attention(reader), keeps_model_dtype=True)
    if not reader.flag("new_decoder_architecture") and reader.flag("multi_query", default=True):
        attention = replace(attention, num_key_value_heads=1)
    return repeated(reader, attention)


def _norms(reader: ConfigReader) -> int:
    """Return two norms in the new decoder, one where attention and feed-forward run in parallel."""
    if reader.flag("new_decoder_architecture"):
        return reader.optional("num_ln_in_parallel_attn") or 2
    return 1 if reader.flag("parallel_attn", default=True) else 2


def _side_by_side(reader: ConfigReader) -> Mixers:
    """Return both mixers in every layer."""
    heads = reader.positive("mamba_n_heads", default=128)
    stated = reader.integer("mamba_d_ssm", default=0)
    width = stated or reader.positive("mamba_expand", default=2) * hidden_size(reader)
    mamba = Mamba2(
        num_heads=heads,
        head_dim=width // heads,
        state_size=reader.positive("mamba_d_state"),
        num_groups=reader.positive("mamba_n_groups", default=1),
        conv_kernel_size=reader.positive("mamba_d_conv", default=4),
        state_dtype=reader.text("mamba_ssm_cache_dtype", default="auto"),
        has_bias=reader.flag("mamba_proj_bias"),
        has_conv_bias=reader.flag("mamba_conv_bias", default=True),
        has_norm=reader.flag("mamba_rms_norm"),
    )
    return repeated(reader, base_attention(reader), mamba)


def _lengths(reader: ConfigReader) -> Mapping[str, object]:
    """Return the positions that the class supplies; those of `RefinedWeb` supply none.

    Source: transformers 5.24 `models/falcon/configuration_falcon.py`.
    """
    is_supplied = reader.raw("model_type") == "falcon" and reader.raw("max_position_embeddings") is None
    return {"max_position_embeddings": SUPPLIED_LENGTH} if is_supplied else {}


def _tables(reader: ConfigReader, layers: tuple[DecoderLayer, ...]) -> tuple[RotaryTable, ...]:
    """Return a table unless positions are slopes."""
    return () if reader.flag("alibi") else stated_tables(reader, layers)


_FALCON: Final = Family(
    classes=("FalconForCausalLM",),
    attention=_attention,
    restates=_lengths,
    rotary=_tables,
    feed_forward=FeedForward(is_gated=False),
    norms_per_layer=_norms,
    has_norm_biases=True,
    ties_embeddings=True,
)
FAMILIES: Final = (
    _FALCON,
    replace(_FALCON, classes=("RWForCausalLM",), last_vllm="0.28"),
    Family(classes=("FalconH1ForCausalLM",), attention=_side_by_side),
)
