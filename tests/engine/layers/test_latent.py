"""One latent per token, and the selectors of sparse attention."""

from dataclasses import replace

import pytest

from service.engine.inputs import Layout
from service.engine.layers import LatentAttention, SparseIndexer
from tests.engine.layers.ranks import FP8, rank

DEEPSEEK_V3 = LatentAttention(
    num_attention_heads=128,
    q_lora_rank=1_536,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
)
INDEXER = SparseIndexer(num_heads=64, head_dim=128, top_k=2_048, q_lora_rank=1_536)
DEEPSEEK_V32 = replace(DEEPSEEK_V3, is_sparse=True, indexer=INDEXER)
MINICPM_3 = LatentAttention(
    num_attention_heads=40, q_lora_rank=768, kv_lora_rank=256, qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64,
    keeps_heads=True,
)  # fmt: skip


@pytest.mark.parametrize("tp", [1, 8, 16])
def test_a_latent_is_the_same_on_every_rank(tp: int) -> None:
    assert 61 * DEEPSEEK_V3.caches(rank(tp))[0].token_bytes == 70_272  # arXiv:2505.09343, table 1


def test_sparse_latents_are_packed_with_scales_where_their_kernel_reads_them_so() -> None:
    # vLLM 0.33 on DeepSeek-V3.2: 656 bytes a token, and a key of 132 for the indexer.
    assert [it.token_bytes for it in DEEPSEEK_V32.caches(rank(**FP8, packs_latents=True))] == [132, 656]
    assert [it.token_bytes for it in DEEPSEEK_V32.caches(rank(**FP8))] == [132, 576]


def test_sparse_pages_are_whole_rows_of_a_token() -> None:
    # The oracle's rows of DeepSeek-V3.2: pages of 8,448 and 36,864 bytes, blocks of 64 tokens.
    index, latent = (it.page_size_bytes for it in DEEPSEEK_V32.caches(rank(**FP8, block_size=64)))

    assert (index, latent) == (8_448, 36_864)


def test_minicpm_3_keeps_every_head_as_wide_as_its_keys() -> None:
    # The oracle's row at TP 1: 15,237,120 bytes for 16 tokens of 62 layers.
    assert 62 * 16 * MINICPM_3.caches(rank())[0].token_bytes == 15_237_120
    assert 62 * 16 * MINICPM_3.caches(rank(2))[0].token_bytes == 7_618_560


def test_kernels_are_needed_for_latents_for_selected_ones_and_their_keys_or_for_heads() -> None:
    assert [(it.kind, it.key_dim, it.nope_dim) for it in DEEPSEEK_V3.kernel_needs] == [("latent", 576, 128)]
    assert [it.kind for it in DEEPSEEK_V32.kernel_needs] == ["sparse", "indexer"]
    assert [(it.kind, it.key_dim, it.value_dim) for it in MINICPM_3.kernel_needs] == [("grouped", 96, 96)]


def test_weights_of_a_layer_are_the_published_ones() -> None:
    # DeepSeek-V3 (arXiv:2412.19437, section 4.2), by hand: 187,107,328 elements of attention in each of 61 layers.
    matrices = DEEPSEEK_V3.matrices(7_168, Layout(), "model.layers.0.")

    assert sum(it.elements for it in matrices if it.is_linear) == (
        7_168 * 1_536 + 1_536 * 128 * 192 + 7_168 * 576 + 512 * 128 * 256 + 128 * 128 * 7_168
    )
    assert [it.name for it in matrices if it.is_absorbed] == ["kv_b_proj"]


def test_only_heads_are_split() -> None:
    eighth = DEEPSEEK_V3.matrices(7_168, Layout(tensor_parallel_size=8), "model.layers.0.")
    rows = {it.name: it.rows for it in eighth}

    assert (rows["q_a_proj"], rows["kv_a_proj_with_mqa"], rows["q_b_proj"]) == (1_536, 576, 16 * 192)


def test_decoding_works_on_latents_and_prefill_on_heads() -> None:
    work = DEEPSEEK_V3.work(8, 2)

    assert (work.decode_flop_per_pair, work.prefill_flop_per_pair) == (2 * 16 * (576 + 512), 2 * 16 * (192 + 128))
    assert work.longest == float("inf")


def test_a_selected_past_is_scanned_and_read_in_part() -> None:
    work = DEEPSEEK_V32.work(8, 1)

    assert (work.longest, work.scan_bytes, work.scan_flop_per_pair) == (2_048, 128, 2 * 64 * 128)


def test_earlier_tokens_are_expanded_for_dense_latents_only() -> None:
    assert DEEPSEEK_V3.live(8).expanded_per_token == 16 * 256 + 576
    assert DEEPSEEK_V32.live(8).expanded_per_token == 0
    assert DEEPSEEK_V32.live(8).selected_ratio == 1
