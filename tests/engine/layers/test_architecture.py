"""A model as a whole: which kinds of parts it has."""

from dataclasses import replace

from service.engine.layers import (
    Architecture,
    DecoderLayer,
    DenseMlp,
    GroupedQueryAttention,
    Mamba1,
    MoeMlp,
)

ATTENTION = GroupedQueryAttention(num_attention_heads=8, num_key_value_heads=8, head_dim=64, v_head_dim=64)
MAMBA = Mamba1(intermediate_size=64, state_size=16, conv_kernel_size=4, time_step_rank=4)
DENSE = DenseMlp(intermediate_size=128)
EXPERTS = MoeMlp(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=16)


def model(*layers: DecoderLayer) -> Architecture:
    return Architecture(
        name="MadeUpForCausalLM",
        dtype="float32",
        hidden_size=64,
        vocab_size=64,
        max_position_embeddings=1_024,
        default_max_model_len=1_024,
        layers=layers,
    )


JAMBA = model(
    DecoderLayer(index=0, mixers=(MAMBA,), mlp=DENSE),
    DecoderLayer(index=1, mixers=(ATTENTION,), mlp=EXPERTS),
    DecoderLayer(index=2, mixers=(MAMBA,), mlp=EXPERTS),
    DecoderLayer(index=3, mixers=(ATTENTION, MAMBA), mlp=DENSE),
)


def test_each_kind_of_part_is_named_once_in_order() -> None:
    assert JAMBA.mixers == (MAMBA, ATTENTION)
    assert JAMBA.feed_forwards == (DENSE, EXPERTS)
    assert JAMBA.parts == (MAMBA, ATTENTION, DENSE, EXPERTS)


def test_a_changed_model_knows_its_own_parts() -> None:
    attention_alone = replace(JAMBA, layers=JAMBA.layers[1:2])

    assert attention_alone.mixers == (ATTENTION,)
    assert attention_alone.num_expert_layers == 1
    assert JAMBA.num_expert_layers == 2


def test_mixtures_have_experts_or_states() -> None:
    dense, recurrent = (model(DecoderLayer(index=0, mixers=(mixer,), mlp=DENSE)) for mixer in (ATTENTION, MAMBA))

    assert (JAMBA.is_mixture, recurrent.is_mixture, dense.is_mixture) == (True, True, False)
    assert (JAMBA.has_attention, recurrent.has_attention) == (True, False)
    assert (JAMBA.has_experts, recurrent.has_experts) == (True, False)


def test_weights_are_as_wide_as_their_dtype() -> None:
    assert JAMBA.element_bytes == 4
    assert replace(JAMBA, dtype="bfloat16").element_bytes == 2
