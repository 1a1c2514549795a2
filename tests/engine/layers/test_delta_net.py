"""Delta nets, against the states that vLLM 0.33 itself computes."""

from dataclasses import replace

import pytest

from service.engine.inputs import Layout
from service.engine.layers import Checkpoint, GatedDeltaNet
from tests.engine.layers.ranks import rank

# huggingface.co/Qwen/Qwen3-Next-80B-A3B-Thinking config.json
QWEN3_NEXT = GatedDeltaNet(
    num_key_heads=16, num_value_heads=32, key_head_dim=128, value_head_dim=128, conv_kernel_size=4, state_dtype="auto"
)


def test_the_state_is_the_engine_s() -> None:
    # The oracle's row at TP 1: shapes (3, 8,192) and (32, 128, 128) in bf16, 1,097,728 bytes.
    assert QWEN3_NEXT.state_bytes(rank()) == (3 * 8_192 + 32 * 128 * 128) * 2 == 1_097_728
    assert QWEN3_NEXT.state_bytes(rank(4)) == 1_097_728 // 4


def test_drafted_tokens_keep_their_inputs_and_a_stated_dtype_widens_the_matrix() -> None:
    assert QWEN3_NEXT.state_bytes(rank(num_speculative_tokens=2)) - QWEN3_NEXT.state_bytes(rank()) == 2 * 8_192 * 2
    wide = replace(QWEN3_NEXT, state_dtype="float32").state_bytes(rank())
    assert wide - QWEN3_NEXT.state_bytes(rank()) == 32 * 128 * 128 * 2


def test_a_state_is_exported_after_a_chunk() -> None:
    assert QWEN3_NEXT.checkpoint == Checkpoint(kernel="delta", tokens=64, key_width=128)
    assert replace(QWEN3_NEXT, exports_states=False).checkpoint is None


def test_lightning_attention_has_neither_convolution_nor_decay() -> None:
    names = {it.name for it in replace(QWEN3_NEXT, has_fixed_decay=True).matrices(2_048, Layout(), "model.layers.0.")}

    assert names == {"in_proj_qkv", "head_norms", "out_proj", "norm"}


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_projections_are_split_by_heads(tp: int) -> None:
    matrices = QWEN3_NEXT.matrices(2_048, Layout(tensor_parallel_size=tp), "model.layers.0.")

    assert sum(it.elements for it in matrices if it.is_linear) == 2_048 * (2 * 2_048 + 3 * 4_096 + 64) // tp


def test_norm_groups_must_divide_where_there_are_any() -> None:
    assert [it.size for it in QWEN3_NEXT.divisors] == [16, 32]
    assert [it.size for it in replace(QWEN3_NEXT, num_norm_groups=4).divisors] == [16, 32, 4]
