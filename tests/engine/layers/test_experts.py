"""Experts, router and what runs beside them."""

from dataclasses import replace

import pytest

from service.engine.inputs import Layout
from service.engine.layers import MoeMlp

# arXiv:2401.04088: 8 experts of 14,336 columns, 2 chosen; 46.7 billion parameters, of which a token uses 12.9.
MIXTRAL = MoeMlp(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=14_336)
# huggingface.co/openai/gpt-oss-120b config.json
GPT_OSS = MoeMlp(
    num_experts=128, num_experts_per_tok=4, moe_intermediate_size=2_880, has_bias=True, has_router_bias=True,
    own_multiple=64,
)  # fmt: skip


def routed(layer: MoeMlp, layout: Layout) -> int:
    return sum(it.elements for it in layer.matrices(4_096, layout, "model.layers.0.") if it.is_routed)


def test_all_but_two_of_mixtral_s_experts_rest() -> None:
    whole = 32 * routed(MIXTRAL, Layout())

    assert round(whole / 1e9, 1) == 45.1  # of 46.7
    assert round(whole * (8 - 2) / 8 / 1e9, 1) == 33.8  # 46.7 - 12.9


@pytest.mark.parametrize(
    ("layout", "share"),
    [
        (Layout(tensor_parallel_size=4), 4),
        (Layout(tensor_parallel_size=2, data_parallel_size=2), 4),
        (Layout(tensor_parallel_size=4, expert_parallel=True), 4),
        (Layout(tensor_parallel_size=1, data_parallel_size=8, expert_parallel=True), 8),
    ],
)
def test_experts_are_cut_or_dealt_out_over_all_ranks(layout: Layout, share: int) -> None:
    assert routed(MIXTRAL, layout) == routed(MIXTRAL, Layout()) // share


def test_experts_say_which_side_is_cut_and_what_their_kernel_rounds_it_to() -> None:
    into, out_of = GPT_OSS.matrices(2_880, Layout(tensor_parallel_size=8), "model.layers.0.")[:2]

    assert (into.inner_side, into.rows, into.columns) == ("rows", 2 * 360, 2_880)
    assert (out_of.inner_side, out_of.rows, out_of.columns) == ("columns", 2_880, 360)
    assert into.own_multiple == out_of.own_multiple == 64


def test_shared_experts_are_split_like_a_dense_network_unless_ranks_take_different_tokens() -> None:
    shared = replace(MIXTRAL, shared_expert_intermediate_size=2_048, splits_tokens=True)
    spread = Layout(tensor_parallel_size=2, data_parallel_size=2, expert_parallel=True)
    columns = [
        next(it.columns for it in shared.matrices(4_096, layout, "") if it.module == "mlp.shared_experts.down_proj")
        for layout in (Layout(tensor_parallel_size=2), spread)
    ]

    assert columns == [1_024, 2_048]


def test_routers_see_every_choice() -> None:
    images = replace(MIXTRAL, image_expert_size=512, num_idle_experts=3, has_score_correction=True)
    rows = {it.module: it.rows for it in images.matrices(4_096, Layout(), "")}

    assert rows["mlp.gate"] == rows["mlp.correction"] == 2 * 8 + 3


def test_experts_beside_a_dense_network_are_not_named_as_part_of_it() -> None:
    modules = [
        it.module for it in replace(MIXTRAL, dense_intermediate_size=1_024).matrices(4_096, Layout(), "layers.0.")
    ]

    assert modules[0] == "layers.0.experts.gate_up_proj"
    assert "layers.0.mlp.gate_proj" in modules


def test_buffers_hold_a_copy_of_each_token_for_each_chosen_expert() -> None:
    assert MIXTRAL.workspace_elements(4_096, Layout()) == 2 * (14_336 + 2 * 14_336)
    assert MIXTRAL.workspace_elements(4_096, Layout(tensor_parallel_size=8)) == 2 * (4_096 + 4_096)


def test_columns_of_experts_are_rounded_up_and_of_shared_ones_are_not() -> None:
    expert, shared = replace(MIXTRAL, shared_expert_intermediate_size=2_048).divisors

    assert (expert.rule, expert.is_dealt_out, shared.rule) == ("rounded", True, "exact")
    assert MIXTRAL.active_columns == 2 * 14_336
