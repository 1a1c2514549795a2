"""Feed-forward networks."""

from dataclasses import replace

import pytest

from service.engine.inputs import Layout
from service.engine.layers import DenseMlp

LLAMA_8B = DenseMlp(intermediate_size=14_336)  # arXiv:2407.21783, table 3
SPREAD = Layout(tensor_parallel_size=2, data_parallel_size=2, expert_parallel=True)


def elements(layer: DenseMlp, layout: Layout) -> int:
    return sum(it.elements for it in layer.matrices(4_096, layout, "model.layers.0."))


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_columns_are_split(tp: int) -> None:
    assert elements(LLAMA_8B, Layout(tensor_parallel_size=tp)) == 3 * 4_096 * 14_336 // tp


def test_plain_networks_have_two_matrices() -> None:
    assert elements(replace(LLAMA_8B, is_gated=False), Layout()) == 2 * 4_096 * 14_336


def test_some_networks_are_whole_on_every_rank() -> None:
    assert elements(replace(LLAMA_8B, is_whole=True), SPREAD) == 3 * 4_096 * 14_336
    assert elements(replace(LLAMA_8B, splits_tokens=True), SPREAD) == 3 * 4_096 * 14_336
    assert elements(replace(LLAMA_8B, splits_tokens=True), Layout(tensor_parallel_size=2)) == 3 * 4_096 * 14_336 // 2


def test_biases_stand_where_they_are_stated() -> None:
    both = replace(LLAMA_8B, has_bias=True).matrices(4_096, Layout(), "")
    last = replace(LLAMA_8B, has_output_bias=True).matrices(4_096, Layout(), "")

    assert [it.biases for it in both] == [2 * 14_336, 4_096]
    assert [it.biases for it in last] == [0, 4_096]


def test_it_is_cut_in_whole_blocks_and_passed_by_every_token() -> None:
    (columns,) = LLAMA_8B.divisors

    assert (columns.size, columns.rule, columns.fills_blocks, columns.is_dealt_out) == (14_336, "exact", True, False)
    assert not LLAMA_8B.has_experts
    assert LLAMA_8B.active_columns == 14_336
    assert LLAMA_8B.workspace_elements(4_096, Layout()) == 0
