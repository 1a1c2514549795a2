"""Kimi delta attention, against blocks and parameters that vLLM 0.33 itself computes."""

from dataclasses import replace

import pytest

from service.engine.inputs import Layout
from service.engine.layers import KimiDeltaAttention, LatentAttention
from service.engine.memory.cache_shape import hybrid_block_size
from tests.engine.layers.ranks import rank

# huggingface.co/moonshotai/Kimi-Linear-48B-A3B-Instruct config.json
KIMI_LINEAR = KimiDeltaAttention(num_heads=32, head_dim=128, conv_kernel_size=4)
LATENT = LatentAttention(
    num_attention_heads=32,
    q_lora_rank=None,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
)


@pytest.mark.parametrize(("tp", "block"), [(1, 1_920), (2, 1_024)])
def test_latent_blocks_hold_the_state(tp: int, block: int) -> None:
    # The oracle's blocks of Kimi-Linear-48B-A3B: whole 128s of tokens of 1,152 bytes.
    token_bytes = LATENT.caches(rank(tp))[0].token_bytes
    state = KIMI_LINEAR.state_bytes(rank(tp))

    assert hybrid_block_size(128, token_bytes, state, checkpoint_grid=0) == block


def test_only_kimi_k3_s_kernel_exports_states() -> None:
    exporting = replace(KIMI_LINEAR, has_full_rank_gate=True).checkpoint

    assert KIMI_LINEAR.checkpoint is None
    assert exporting is not None
    assert (exporting.kernel, exporting.tokens) == ("flash_kda", 16)


def test_a_full_gate_stands_in_the_fused_projection_and_a_narrow_one_beside_it() -> None:
    narrow = {it.name: it.rows for it in KIMI_LINEAR.matrices(2_304, Layout(tensor_parallel_size=2), "")}
    full = {
        it.name: it.rows
        for it in replace(KIMI_LINEAR, has_full_rank_gate=True).matrices(2_304, Layout(tensor_parallel_size=2), "")
    }

    assert narrow["in_proj_qkvgfab"] == 3 * 2_048 + 128 + 16
    assert narrow["g_b_proj"] == 2_048
    assert full["in_proj_qkvgfab"] == 4 * 2_048 + 128 + 16  # a multiple of 16 already
    assert "g_b_proj" not in full


def test_the_profiling_run_holds_the_projection_the_gates_and_the_output() -> None:
    # vLLM 0.33 `kimi_gdn_linear_attn.py`: query, key and value (3 x 4,096), beta (32) and the narrow decay (128) in one
    # projection, then gate, decay and output (3 x 4,096); the narrow decay is whole on each of two ranks.
    assert KIMI_LINEAR.live(1).per_token == 6 * 4_096 + 32 + 128
    assert KIMI_LINEAR.live(2).per_token == 2 * (6 * 2_048 + 16 + 128)


def test_both_narrow_projections_stand_in_glm_s_fused_one_and_nothing_is_quantized() -> None:
    # vLLM 0.33 `models/glm5next/common/kda.py`: [q, k, v, b, f_a, g_a], the last two whole on every rank
    glm = KimiDeltaAttention(num_heads=64, head_dim=128, conv_kernel_size=4, fuses_narrow_gate=True)
    matrices = {it.name: it for it in glm.matrices(4_096, Layout(tensor_parallel_size=4), "")}

    assert matrices["in_proj_qkvbfg_a"].rows == 3 * 2_048 + 16 + 2 * 128
    assert matrices["g_b_proj"].rows == 2_048
    assert all(it.is_kept for it in matrices.values())
    assert glm.checkpoint is not None
    assert glm.state_matrix_dtypes == ("float32", "bfloat16")
