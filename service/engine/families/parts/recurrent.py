"""Linear attention, state-space layers and what mixes them with softmax attention, as several families state them.

Sources:
    vLLM 0.33 model files qwen3_next.py, granitemoehybrid.py, mamba.py, and `models/config.py` (state dtypes).
"""

from collections.abc import Mapping, Sequence

from service.engine.arithmetic import ceil_div
from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import FULL_KINDS, Mixers, alone, check_length
from service.engine.families.parts.sizes import hidden_size, num_hidden_layers
from service.engine.layers import Attention, GatedDeltaNet


def by_kind(
    reader: ConfigReader, kinds: Sequence[str], recurrent: Mapping[str, Attention], attention: Attention
) -> Mixers:
    """Return each layer's mixer by the name that `layer_types` gives its kind."""
    mixers: list[Attention] = []
    for kind in kinds:
        if kind in FULL_KINDS:
            mixers.append(attention)
        elif kind in recurrent:
            mixers.append(recurrent[kind])
        else:
            raise unknown_kind("layer_types", kind, ", ".join(["full_attention", *recurrent]))
    layers = num_hidden_layers(reader)
    check_length("layer_types", len(mixers), layers)
    return alone(mixers[:layers])


def delta_net(reader: ConfigReader) -> GatedDeltaNet:
    """Return the gated delta net that the config states."""
    return GatedDeltaNet(
        num_key_heads=reader.positive("linear_num_key_heads"),
        num_value_heads=reader.positive("linear_num_value_heads"),
        key_head_dim=reader.positive("linear_key_head_dim"),
        value_head_dim=reader.positive("linear_value_head_dim"),
        conv_kernel_size=reader.positive("linear_conv_kernel_dim", default=4),
        state_dtype=reader.text("mamba_ssm_dtype", default="auto"),
    )


def lightning(num_heads: int, head_dim: int) -> GatedDeltaNet:
    """Return lightning attention: a state of head_dim x head_dim for each head, which fades at a fixed rate.

    Source:
        vLLM 0.33 `model_executor/models/bailing_moe_linear.py`, 0.23 `model_executor/layers/mamba/linear_attn.py`.
    """
    return GatedDeltaNet(
        num_key_heads=num_heads,
        num_value_heads=num_heads,
        key_head_dim=head_dim,
        value_head_dim=head_dim,
        conv_kernel_size=1,
        state_dtype="auto",
        has_fixed_decay=True,
        exports_states=False,
    )


def in_groups_of_four(reader: ConfigReader, linear: GatedDeltaNet, attention: Attention) -> Mixers:
    """Return attention in every fourth layer, unless the config says otherwise."""
    interval = reader.positive("full_attention_interval", default=4)
    kinds = reader.strings("layer_types") or tuple(
        "full_attention" if (index + 1) % interval == 0 else "linear_attention"
        for index in range(num_hidden_layers(reader))
    )
    return by_kind(reader, kinds, {"linear_attention": linear}, attention)


def time_step_rank(reader: ConfigReader, field: str) -> int:
    """Return the rank of the time step: stated in this field, or a sixteenth of the stream's width."""
    rank = reader.raw(field)
    return rank if isinstance(rank, int) and rank > 0 else ceil_div(hidden_size(reader), 16)
