"""Ling and Ring, the third with delta attention, and relatives built on their code: Sarvam, Param 2.

Sources:
    vLLM 0.33 `model_executor/models/`: bailing_moe.py, bailing_moe_linear.py, bailing_moe_v3.py,
    bailing_moe_v3_mtp.py, bailing_moe_v3_vl.py, sarvam.py, param2moe.py.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import Mixers, alone, full_only
from service.engine.families.parts.biases import Biases
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.latent import latent, latent_attention
from service.engine.families.parts.mtp import Draft, like_the_last
from service.engine.families.parts.recurrent import lightning
from service.engine.families.parts.sizes import hidden_size, num_hidden_layers
from service.engine.families.parts.sparsity import first_dense
from service.engine.families.parts.towers import blocks, divided, perceptron, tower_heads
from service.engine.layers import Architecture, DraftHead, Encoder, Heads, KimiDeltaAttention

# transformers 5.24 `models/bailing_hybrid` saves what turns in the latents as `head_dim`, and this apart.
LINEAR_HEAD_DIM: Final = ("linear_head_dim", "head_dim")


def _lightning(reader: ConfigReader) -> Mixers:
    """Return lightning attention, and latents in the last layer of every group."""
    heads = reader.positive("num_attention_heads")
    head_dim = reader.positive(*LINEAR_HEAD_DIM, default=max(hidden_size(reader) // heads, 1))
    if reader.flag("use_bias") or reader.flag("use_qkv_bias"):
        raise unknown_kind("use_qkv_bias", True, "false: lightning attention is sized without biases")
    linear = replace(
        lightning(heads, head_dim),
        has_head_norms=reader.flag("use_qk_norm"),
        num_norm_groups=reader.positive("group_norm_size", default=1),
    )
    every = reader.positive("layer_group_size", default=1)
    full = latent_attention(reader)
    numbers = range(1, num_hidden_layers(reader) + 1)
    return alone(full if number % every == 0 else linear for number in numbers)


def _delta(reader: ConfigReader) -> Mixers:
    """Return delta attention, and latents in the last layer of every group and after the last whole one."""
    if not reader.flag("no_kda_lora"):
        raise unknown_kind("no_kda_lora", False, "true: the engine refuses low-rank decays")
    linear = KimiDeltaAttention(
        num_heads=reader.positive("num_attention_heads"),
        head_dim=reader.positive(*LINEAR_HEAD_DIM),
        conv_kernel_size=reader.positive("short_conv_kernel_size", default=4),
        has_full_rank_decay=True,
    )
    gates = reader.raw("gated_attention_proj_granularity_type")
    full = replace(
        latent_attention(reader),
        q_lora_rank=reader.optional("q_lora_rank") or None,
        has_head_gate=gates == "head_wise",
        has_output_gate=gates == "element_wise",
    )
    every, layers = reader.positive("layer_group_size"), num_hidden_layers(reader)
    grouped = layers // every * every
    return alone(full if (index + 1) % every == 0 or index >= grouped else linear for index in range(layers))


def _shared(reader: ConfigReader, _size: int, _stated: int) -> int:
    return reader.positive("moe_shared_expert_intermediate_size") * reader.positive("num_shared_experts", default=1)


def _scheme(reader: ConfigReader) -> str:
    """Return how checkpoints with fp8 blocks may store routed experts."""
    stated = ConfigReader(reader.mapping("quantization_config") or {})
    return "mxfp4" if stated.raw("routed_experts_quant_method") == "mxfp4" else ""


def _modules(reader: ConfigReader, architecture: Architecture, modules: int) -> DraftHead:
    """Return layers like the last, each with an output head of its own."""
    head = like_the_last(reader, architecture, modules)
    return replace(head, head_vocab_size=architecture.vocab_size, projection_module=head.layer_modules[0] + "eh_proj")


def _tower(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return a tower whose merged patches are only normed, and a projector; ranks split both."""
    hidden = vision.positive("hidden_size", default=1152)
    split, whole = blocks(hidden, vision.positive("intermediate_size", default=4304))
    depth = vision.positive("depth", default=27)
    merged = vision.positive("spatial_merge_size", default=2) ** 2 * hidden
    projector, bias = perceptron(merged, text.positive("hidden_size"), text.positive("hidden_size"))
    pixels = 3 * vision.positive("patch_size", default=16) ** 2 * vision.positive("temporal_patch_size", default=2)
    around = pixels + 1 + vision.positive("num_position_embeddings", default=2304) + 2
    return Encoder(
        split_parameters=depth * split + projector,
        whole_parameters=depth * (whole + 4 * hidden) + around * hidden + bias,
        num_heads=tower_heads(vision),
    )


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

_THIRD: Final = Family(
    classes=("BailingMoeV3ForCausalLM",),
    attention=_delta,
    feed_forward=FeedForward(
        experts=Experts(
            shared=_shared, has_wide_router=True, has_score_correction=True, scheme=_scheme, sparsity=first_dense
        )
    ),
    draft=Draft(build=_modules),
)
FAMILIES: Final = (
    Family(
        classes=("BailingMoeForCausalLM", "BailingMoeV2ForCausalLM"),
        attention=full_only,
        feed_forward=_FEED_FORWARD,
        biases=_biases,
        head_norms=_head_norms,
    ),
    Family(classes=("BailingMoeV2_5ForCausalLM",), attention=_lightning, feed_forward=_FEED_FORWARD),
    _THIRD,
    replace(
        _THIRD,
        classes=("BailingMoeV3VLForConditionalGeneration",),
        tower=divided(_tower, supplied={}),
        tower_size=(24, 1_152),
    ),
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
