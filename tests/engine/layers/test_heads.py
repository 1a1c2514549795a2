"""Softmax heads as families' rules see them, and what they are given."""

from service.engine.layers import GroupedQueryAttention, HeadDetails, Heads, LatentAttention, NoAttention

OLMO_2 = GroupedQueryAttention(num_attention_heads=32, num_key_value_heads=32, head_dim=128, v_head_dim=128)


def given(heads: Heads) -> HeadDetails:
    return HeadDetails(has_input_biases=True, has_output_bias=heads.has_output_bias, norm_elements=heads.norm_elements)


def test_heads_are_asked_about_and_given_their_details() -> None:
    detailed = OLMO_2.detailed(given)

    assert isinstance(detailed, GroupedQueryAttention)
    assert (detailed.has_query_bias, detailed.has_key_value_bias, detailed.has_output_bias) == (True, True, False)
    assert detailed.norm_elements == 256


def test_layers_without_such_heads_stay_as_they_are() -> None:
    latent = LatentAttention(
        num_attention_heads=128, q_lora_rank=1_536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64,
        v_head_dim=128,
    )  # fmt: skip

    assert latent.detailed(given) is latent
    assert NoAttention().detailed(given) == NoAttention()
