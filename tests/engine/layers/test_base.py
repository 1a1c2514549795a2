"""What every variant answers, and how work adds up."""

from service.engine.layers import DenseMlp, GroupedQueryAttention, LiveElements, MoeMlp, NoAttention, Work
from service.engine.layers.base import Part


def test_layers_alike_do_the_same_work_on_as_much_context() -> None:
    work = Work(token_bytes=1_152, state_bytes=3, longest=2_048, ratio=4, decode_flop_per_pair=5, prefill_flop_per_pair=7,
                scan_bytes=11, scan_flop_per_pair=13)  # fmt: skip

    assert work.times(61) == Work(
        token_bytes=70_272, state_bytes=183, longest=2_048, ratio=4, decode_flop_per_pair=305, prefill_flop_per_pair=427,
        scan_bytes=671, scan_flop_per_pair=793,
    )  # fmt: skip


def test_parts_are_values() -> None:
    def attention() -> Part:
        return GroupedQueryAttention(num_attention_heads=8, num_key_value_heads=8, head_dim=64, v_head_dim=64)

    assert attention() == attention()
    assert len({attention(), attention(), NoAttention(), DenseMlp(intermediate_size=8)}) == 3


def test_experts_are_seen_by_their_routing() -> None:
    experts = MoeMlp(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=16)
    assert experts.routing is not None

    assert experts.has_experts
    assert (experts.routing.num_experts, experts.routing.num_experts_per_tok) == (8, 2)


def test_most_layers_hold_nothing_besides_their_width() -> None:
    assert LiveElements(per_token=5) == LiveElements(per_token=5, expanded_per_token=0, selected_ratio=None)
