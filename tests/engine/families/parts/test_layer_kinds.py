"""Which of the layers a draft is like."""

from service.engine.families.parts.layer_kinds import drafts_alike, last, slides
from service.engine.layers import DecoderLayer, DenseMlp, GroupedQueryAttention, Mixer, ShortConvolution

FULL = GroupedQueryAttention(num_attention_heads=8, num_key_value_heads=2, head_dim=64, v_head_dim=64)
SLIDING = GroupedQueryAttention(
    num_attention_heads=8, num_key_value_heads=2, head_dim=64, v_head_dim=64, sliding_window=128
)
LAYERS = tuple(
    DecoderLayer(index=index, mixers=(mixer,), mlp=DenseMlp(intermediate_size=64))
    for index, mixer in enumerate[Mixer]((FULL, SLIDING, FULL, ShortConvolution(hidden_size=64, conv_kernel_size=4)))
)


def test_a_wish_that_nobody_grants_is_left_out() -> None:
    assert last(LAYERS, drafts_alike).index == 2
    assert last(LAYERS, drafts_alike, slides).index == 1
    assert last(LAYERS, lambda _: False).index == 3
