"""Ling and Ring, and relatives built on their code: Sarvam, Param 2.

Sources:
    vLLM 0.33 `model_executor/models/`: bailing_moe.py, bailing_moe_linear.py, sarvam.py, param2moe.py.
"""

from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import Mixers, alone, full_only
from service.engine.families.parts.biases import Biases
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.latent import latent, latent_attention
from service.engine.families.parts.sizes import hidden_size, num_hidden_layers
from service.engine.families.parts.sparsity import first_dense
from service.engine.layers import GatedDeltaNet, Heads


def _lightning(reader: ConfigReader) -> Mixers:
    """Return lightning attention, and latents in the last layer of every group."""
    heads = reader.positive("num_attention_heads")
    head_dim = reader.positive("head_dim", default=max(hidden_size(reader) // heads, 1))
    if reader.flag("use_bias") or reader.flag("use_qkv_bias"):
        raise unknown_kind("use_qkv_bias", True, "false: lightning attention is sized without biases")
    linear = GatedDeltaNet(
        num_key_heads=heads,
        num_value_heads=heads,
        key_head_dim=head_dim,
        value_head_dim=head_dim,
        conv_kernel_size=1,
        state_dtype="auto",
        has_fixed_decay=True,
        has_head_norms=reader.flag("use_qk_norm"),
        exports_states=False,
        num_norm_groups=reader.positive("group_norm_size", default=1),
    )
    every = reader.positive("layer_group_size", default=1)
    full = latent_attention(reader)
    numbers = range(1, num_hidden_layers(reader) + 1)
    return alone(full if number % every == 0 else linear for number in numbers)


def _biases(reader: ConfigReader, _stated: Biases) -> Biases:
    return reader.flag("use_bias") or reader.flag("use_qkv_bias"), reader.flag("use_bias")


def _head_norms(reader: ConfigReader, heads: Heads) -> int:
    """Return norms on heads where stated, with biases unless they are root-mean-square norms."""
    if not reader.flag("use_qk_norm"):
        return 0
    return (2 if reader.flag("use_rmsnorm") else 4) * heads.width


def _bare_head_norms(reader: ConfigReader, heads: Heads) -> int:
    """Return the same without biases."""
    return 2 * heads.width if reader.flag("use_qk_norm") else 0


_FEED_FORWARD: Final = FeedForward(experts=Experts(router_dtype_name="router_dtype", sparsity=first_dense))

FAMILIES: Final = (
    Family(
        classes=("BailingMoeForCausalLM", "BailingMoeV2ForCausalLM"),
        attention=full_only,
        feed_forward=_FEED_FORWARD,
        biases=_biases,
        head_norms=_head_norms,
    ),
    Family(classes=("BailingMoeV2_5ForCausalLM",), attention=_lightning, feed_forward=_FEED_FORWARD),
    Family(
        classes=("SarvamMoEForCausalLM",),
        attention=full_only,
        feed_forward=FeedForward(
            experts=Experts(router_dtype_name="router_dtype", has_score_correction=True, sparsity=first_dense)
        ),
        biases=_biases,
        head_norms=_head_norms,
    ),
    Family(
        classes=("SarvamMLAForCausalLM",),
        attention=latent,
        feed_forward=FeedForward(experts=Experts(has_score_correction=True, sparsity=first_dense)),
    ),
    Family(
        classes=("Param2MoEForCausalLM",),
        attention=full_only,
        feed_forward=FeedForward(
            experts=Experts(has_wide_router=True, has_score_correction=True, sparsity=first_dense)
        ),
        biases=_biases,
        head_norms=_bare_head_norms,
    ),
)
