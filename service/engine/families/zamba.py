"""Zamba 2: Mamba 2 in every layer, behind a shared transformer block in the hybrid ones.

Sources:
    vLLM 0.33 `model_executor/models/zamba2.py`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.errors import MissingConfigFieldError
from service.engine.families.parts.attention import Mixers, head_width
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import no_feed_forward
from service.engine.families.parts.sizes import hidden_size, num_hidden_layers
from service.engine.layers import Attention, GroupedQueryAttention, Mamba2, SharedBlocks

KINDS: Final = {"mamba": "mamba", "linear_attention": "mamba", "hybrid": "hybrid"}


def _attention(reader: ConfigReader) -> Mixers:
    """Return the mixers that `layers_block_type` names."""
    heads = reader.positive("num_attention_heads")
    head_dim = head_width("attention_hidden_size", _width(reader), heads, field="attention_hidden_size")
    attention = GroupedQueryAttention(
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        is_shared_block=True,
    )
    mamba_heads = reader.positive("n_mamba_heads", default=8)
    mamba = Mamba2(
        num_heads=mamba_heads,
        head_dim=reader.positive("mamba_expand", default=2) * hidden_size(reader) // mamba_heads,
        state_size=reader.positive("mamba_d_state", default=64),
        num_groups=reader.positive("mamba_ngroups", default=1),
        conv_kernel_size=reader.positive("mamba_d_conv", default=4),
        state_dtype=reader.text("mamba_ssm_cache_dtype", default="auto"),
        has_bias=reader.flag("add_bias_linear"),
        has_conv_bias=reader.flag("use_conv_bias", default=True),
    )
    mixers_of: dict[str, tuple[Attention, ...]] = {"mamba": (mamba,), "hybrid": (attention, mamba)}
    return tuple(mixers_of[kind] for kind in _kinds(reader))


def _shared_blocks(reader: ConfigReader) -> SharedBlocks:
    """Return the shared transformer blocks."""
    return SharedBlocks(
        num_blocks=reader.positive("num_mem_blocks", default=1),
        num_uses=_kinds(reader).count("hybrid"),
        attention_width=_width(reader),
        intermediate_size=reader.positive("intermediate_size", default=4 * hidden_size(reader)),
        adapter_rank=reader.positive("adapter_rank", default=128),
        adapts_attention=reader.flag("use_shared_attention_adapter"),
    )


def _width(reader: ConfigReader) -> int:
    return reader.positive("attention_hidden_size", default=2 * hidden_size(reader))


def _kinds(reader: ConfigReader) -> list[str]:
    stated = reader.strings("layers_block_type") or ()
    if len(stated) != num_hidden_layers(reader):
        raise MissingConfigFieldError(
            f"layers_block_type names {len(stated)} of {num_hidden_layers(reader)} layers",
            field="model_config.layers_block_type",
            accepted="mamba or hybrid per layer",
        )
    for kind in stated:
        if kind not in KINDS:
            raise unknown_kind("layers_block_type", kind, ", ".join(KINDS))
    return [KINDS[kind] for kind in stated]


FAMILIES: Final = (
    Family(
        classes=("Zamba2ForCausalLM",),
        attention=_attention,
        feed_forward=no_feed_forward,
        norms_per_layer=1,
        ties_embeddings=True,
        shared_blocks=_shared_blocks,
        has_stages=False,
    ),
)
