"""Hybrids of attention with linear attention or state-space layers, and pure state-space models.

Sources:
    vLLM 0.33 model files qwen3_next.py, qwen3_5.py, nemotron_h.py, granitemoehybrid.py, jamba.py,
    lfm2.py, mamba.py, mamba2.py, and `models/config.py` (state dtypes).
"""

from dataclasses import replace

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.errors import MissingConfigFieldError
from service.engine.families.parts.attention import FULL_KINDS, Mixers, base_attention, hidden_size, num_hidden_layers
from service.engine.families.parts.latent import latent_attention
from service.engine.layers import (
    Attention,
    GatedDeltaNet,
    GroupedQueryAttention,
    Mamba1,
    Mamba2,
    NoAttention,
    SharedBlocks,
    ShortConvolution,
)

# Newer config files name the same layers by their role.
NEMOTRON_NAMES = {"linear_attention": "mamba", "full_attention": "attention"}
NEMOTRON_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def olmo_hybrid(reader: ConfigReader) -> Mixers:
    """Return OLMo Hybrid's rule: Qwen3-Next's without gates, its states kept at the ends of blocks only.

    Source: vLLM 0.33 `model_executor/models/olmo_hybrid.py`.
    """
    linear = replace(_delta_net(reader), has_narrow_decay=True, exports_states=False)
    return _in_groups_of_four(reader, linear, base_attention(reader))


def bailing_linear(reader: ConfigReader) -> Mixers:
    """Return the rule of Ring and Ling 2.5: lightning attention, and latents in the last layer of every group.

    Source: vLLM 0.33 `model_executor/models/bailing_moe_linear.py`.
    """
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
    return tuple((full,) if number % every == 0 else (linear,) for number in numbers)


def qwen_hybrid(reader: ConfigReader) -> Mixers:
    """Return Qwen3-Next's rule: a gated delta net in most layers, gated attention in every fourth."""
    attention = replace(
        base_attention(reader),
        has_output_gate=reader.flag("attn_output_gate", default=True),
    )
    return _in_groups_of_four(reader, _delta_net(reader), attention)


def _delta_net(reader: ConfigReader) -> GatedDeltaNet:
    return GatedDeltaNet(
        num_key_heads=reader.positive("linear_num_key_heads"),
        num_value_heads=reader.positive("linear_num_value_heads"),
        key_head_dim=reader.positive("linear_key_head_dim"),
        value_head_dim=reader.positive("linear_value_head_dim"),
        conv_kernel_size=reader.positive("linear_conv_kernel_dim", default=4),
        state_dtype=reader.text("mamba_ssm_dtype", default="auto"),
    )


def _in_groups_of_four(reader: ConfigReader, linear: GatedDeltaNet, attention: GroupedQueryAttention) -> Mixers:
    """Return attention in every fourth layer, unless the config says otherwise."""
    interval = reader.positive("full_attention_interval", default=4)
    kinds = reader.strings("layer_types") or tuple(
        "full_attention" if (index + 1) % interval == 0 else "linear_attention"
        for index in range(num_hidden_layers(reader))
    )
    return _by_kind(reader, kinds, "layer_types", {"linear_attention": linear}, attention)


def _by_kind(
    reader: ConfigReader,
    kinds: tuple[str, ...],
    field: str,
    recurrent: dict[str, Attention],
    attention: GroupedQueryAttention,
) -> Mixers:
    """Return each layer's mixer by the name the config gives its kind."""
    mixers: list[tuple[Attention, ...]] = []
    for kind in kinds:
        if kind in FULL_KINDS:
            mixers.append((attention,))
        elif kind in recurrent:
            mixers.append((recurrent[kind],))
        else:
            raise unknown_kind(field, kind, ", ".join(["full_attention", *recurrent]))
    if len(mixers) < num_hidden_layers(reader):
        raise MissingConfigFieldError(
            f"{field} names {len(mixers)} of {num_hidden_layers(reader)} layers",
            field=f"model_config.{field}",
            accepted="one entry per layer",
        )
    return tuple(mixers[: num_hidden_layers(reader)])


def nemotron_kinds(reader: ConfigReader) -> tuple[str, ...]:
    """Return what each of Nemotron-H's layers is: mamba, attention, mlp or moe."""
    stated = reader.strings("layers_block_type")
    if stated is not None:
        return tuple(NEMOTRON_NAMES.get(kind, kind) for kind in stated)
    pattern = reader.text("hybrid_override_pattern")
    unknown = set(pattern) - set(NEMOTRON_LETTERS)
    if unknown:
        raise unknown_kind("hybrid_override_pattern", min(unknown), "M, *, - and E")
    return tuple(NEMOTRON_LETTERS[letter] for letter in pattern)


def nemotron_h(reader: ConfigReader) -> Mixers:
    """Return Nemotron-H's rule: every layer is one thing, mixer or feed-forward."""
    attention = base_attention(reader)
    if (stated := reader.optional("attention_head_dim", "head_dim")) is not None:
        attention = replace(attention, head_dim=stated, v_head_dim=stated)
    if window := reader.integer("sliding_window", default=0):
        attention = replace(attention, sliding_window=window)
    mamba = Mamba2(
        num_heads=reader.positive("mamba_num_heads"),
        head_dim=reader.positive("mamba_head_dim"),
        state_size=reader.positive("ssm_state_size"),
        num_groups=reader.positive("n_groups"),
        conv_kernel_size=reader.positive("conv_kernel"),
        state_dtype=reader.text("mamba_ssm_cache_dtype", default="float32"),
        has_bias=reader.flag("use_bias", "mamba_proj_bias"),
        has_conv_bias=reader.flag("use_conv_bias", default=True),
    )
    mixer_of: dict[str, Attention] = {
        "mamba": mamba,
        "attention": attention,
        "mlp": NoAttention(),
        "moe": NoAttention(),
    }
    kinds = nemotron_kinds(reader)
    for kind in kinds:
        if kind not in mixer_of:
            raise unknown_kind("layers_block_type", kind, ", ".join(mixer_of))
    return tuple((mixer_of[kind],) for kind in kinds)


def granite_hybrid(reader: ConfigReader) -> Mixers:
    """Return Granite 4's rule: state-space layers with a few attention layers, by `layer_types`."""
    mamba = Mamba2(
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
    kinds = reader.strings("layer_types") or reader.strings("layers_block_type")
    if kinds is None:
        raise MissingConfigFieldError(
            "the config does not state layer_types",
            field="model_config.layer_types",
            accepted="mamba or attention per layer",
        )
    return _by_kind(reader, kinds, "layer_types", {"mamba": mamba, "linear_attention": mamba}, base_attention(reader))


def falcon_h1(reader: ConfigReader) -> Mixers:
    """Return Falcon-H1's rule: attention and a state-space mixer side by side in every layer.

    Source: vLLM 0.33 `model_executor/models/falcon_h1.py`.
    """
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
    return ((base_attention(reader), mamba),) * num_hidden_layers(reader)


ZAMBA_KINDS = {"mamba": "mamba", "linear_attention": "mamba", "hybrid": "hybrid"}


def zamba2(reader: ConfigReader) -> Mixers:
    """Return Zamba 2's rule: Mamba 2 in every layer, behind a shared transformer block in the hybrid ones.

    Source: vLLM 0.33 `model_executor/models/zamba2.py`.
    """
    heads = reader.positive("num_attention_heads")
    head_dim = _zamba_width(reader) // heads
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
    return tuple(mixers_of[kind] for kind in _zamba_kinds(reader))


def shared_blocks(reader: ConfigReader, name: str) -> SharedBlocks | None:
    """Return Zamba 2's shared transformer blocks."""
    if name != "Zamba2ForCausalLM":
        return None
    return SharedBlocks(
        num_blocks=reader.positive("num_mem_blocks", default=1),
        num_uses=_zamba_kinds(reader).count("hybrid"),
        attention_width=_zamba_width(reader),
        intermediate_size=reader.positive("intermediate_size", default=4 * hidden_size(reader)),
        adapter_rank=reader.positive("adapter_rank", default=128),
        adapts_attention=reader.flag("use_shared_attention_adapter"),
    )


def _zamba_width(reader: ConfigReader) -> int:
    return reader.positive("attention_hidden_size", default=2 * hidden_size(reader))


def _zamba_kinds(reader: ConfigReader) -> list[str]:
    stated = reader.strings("layers_block_type") or ()
    if len(stated) != num_hidden_layers(reader):
        raise MissingConfigFieldError(
            f"layers_block_type names {len(stated)} of {num_hidden_layers(reader)} layers",
            field="model_config.layers_block_type",
            accepted="mamba or hybrid per layer",
        )
    for kind in stated:
        if kind not in ZAMBA_KINDS:
            raise unknown_kind("layers_block_type", kind, ", ".join(ZAMBA_KINDS))
    return [ZAMBA_KINDS[kind] for kind in stated]


def bamba(reader: ConfigReader) -> Mixers:
    """Return Bamba's rule: Granite's state-space layers, with attention where `attn_layer_indices` says."""
    attention_layers = reader.integers("attn_layer_indices") or ()
    kinds = reader.strings("layers_block_type") or tuple(
        "attention" if index in attention_layers else "mamba" for index in range(num_hidden_layers(reader))
    )
    return granite_hybrid(ConfigReader({**reader.values(), "layer_types": list(kinds)}))


def jamba(reader: ConfigReader) -> Mixers:
    """Return Jamba's rule: attention every `attn_layer_period` layers, Mamba 1 elsewhere."""
    rank = reader.raw("mamba_dt_rank")
    hidden, state = hidden_size(reader), reader.positive("mamba_d_state", default=16)
    time_step_rank = rank if isinstance(rank, int) and rank > 0 else -(-hidden // 16)
    mamba = Mamba1(
        intermediate_size=reader.positive("mamba_expand", default=2) * hidden,
        state_size=state,
        conv_kernel_size=reader.positive("mamba_d_conv", default=4),
        time_step_rank=time_step_rank,
        has_bias=reader.flag("mamba_proj_bias"),
        has_conv_bias=reader.flag("mamba_conv_bias", default=True),
        norm_elements=time_step_rank + 2 * state,
    )
    period, offset = reader.positive("attn_layer_period", default=8), reader.integer("attn_layer_offset", default=4)
    attention = base_attention(reader)
    return tuple((attention,) if index % period == offset else (mamba,) for index in range(num_hidden_layers(reader)))


def mamba1(reader: ConfigReader) -> Mixers:
    """Return a pure Mamba 1 stack."""
    rank = reader.raw("time_step_rank")
    mixer = Mamba1(
        intermediate_size=reader.integer("intermediate_size", default=0)
        or reader.positive("expand", default=2) * hidden_size(reader),
        state_size=reader.positive("state_size"),
        conv_kernel_size=reader.positive("conv_kernel"),
        time_step_rank=rank if isinstance(rank, int) and rank > 0 else -(-hidden_size(reader) // 16),
        has_bias=reader.flag("use_bias"),
        has_conv_bias=reader.flag("use_conv_bias", default=True),
    )
    return ((mixer,),) * num_hidden_layers(reader)


def mamba2(reader: ConfigReader) -> Mixers:
    """Return a pure Mamba 2 stack."""
    mixer = Mamba2(
        num_heads=reader.positive("num_heads"),
        head_dim=reader.positive("head_dim"),
        state_size=reader.positive("state_size"),
        num_groups=reader.positive("n_groups", default=1),
        conv_kernel_size=reader.positive("conv_kernel"),
        state_dtype="auto",
        has_bias=reader.flag("use_bias"),
        has_conv_bias=reader.flag("use_conv_bias", default=True),
    )
    return ((mixer,),) * num_hidden_layers(reader)


def lfm2(reader: ConfigReader) -> Mixers:
    """Return LFM2's rule: short convolutions with a few attention layers."""
    convolution = ShortConvolution(
        hidden_size=reader.integer("conv_dim", default=0) or hidden_size(reader),
        conv_kernel_size=reader.positive("conv_L_cache", default=3),
        has_bias=reader.flag("conv_bias"),
    )
    layers = num_hidden_layers(reader)
    full = reader.integers("full_attn_idxs") or ()
    kinds = reader.strings("layer_types") or tuple(
        "full_attention" if index in full else "conv" for index in range(layers)
    )
    return _by_kind(reader, kinds, "layer_types", {"conv": convolution}, base_attention(reader))
