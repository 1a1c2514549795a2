"""What DeepSeek V4.1's layers keep: windows everywhere, and a compressed past in four of them."""

from dataclasses import replace

import pytest

from service.engine.inputs import Layout
from service.engine.layers import Records, SourcedAttention, SparseIndexer
from tests.engine.layers.ranks import rank

# huggingface.co/deepseek-ai/DeepSeek-V4.1-Flash config.json
WINDOW = SourcedAttention(
    num_attention_heads=64,
    head_dim=512,
    q_lora_rank=1_280,
    o_lora_rank=1_024,
    o_groups=8,
    sliding_window=128,
    compress_ratio=1,
)
INDEXER = SparseIndexer(num_heads=32, head_dim=128, top_k=512, q_lora_rank=1_280)
PAIRED = replace(WINDOW, compress_ratio=2, is_source=True, top_k=512, indexer=INDEXER)
SINGLE = replace(PAIRED, compress_ratio=1, num_blocks_chosen=2_048)
READER = replace(WINDOW, compress_ratio=2, shares_cache_with=2, top_k=512)
# vLLM 0.33 `models/deepseek_v41/attention.py`: "528 if self.kv_mxfp8", "288 if ... nvfp4_ds_mla", "512 if".
BLACKWELL = Records(window_bytes=528, past_bytes=288, page_alignment=512, block_alignment=3_168)


def test_who_reads_a_past_keeps_its_window_alone() -> None:
    assert [len(layer.caches(rank(8))) for layer in (WINDOW, READER, SINGLE, PAIRED)] == [1, 1, 3, 4]
    assert READER.caches(rank(8)) == WINDOW.caches(rank(8))


def test_a_model_s_past_takes_the_bytes_that_its_card_prints() -> None:
    """Its card: "FP4 main KV caching ... 890 bytes per token", with keys in fp4 too, of 64 + 4 bytes."""
    past = [layer.caches(rank(8, block_size=128, records=BLACKWELL))[2].token_bytes for layer in (PAIRED, SINGLE)]
    keys_in_fp4 = 64 + 4

    assert 3 * (past[0] + keys_in_fp4 // 2) + past[1] + keys_in_fp4 == 890


def test_pages_on_blackwell_are_rounded_to_512_bytes() -> None:
    specs = SINGLE.caches(rank(8, block_size=128, records=BLACKWELL))

    assert [spec.page_size_bytes for spec in specs] == [32 * 528, 128 * 132, 128 * 288]
    assert [spec.block_alignment for spec in specs] == [3_168, 1, 1]
    assert PAIRED.caches(rank(8, block_size=128, records=BLACKWELL))[1].page_size_bytes == 8_704  # of 64 x 132


@pytest.mark.parametrize(("drafted", "ring"), [(0, 8), (5, 8), (6, 8), (7, 16)])
def test_a_ring_holds_drafted_tokens_and_two_more(drafted: int, ring: int) -> None:
    # `compressor.py`: "max(8, 1 << (rows_per_step - 1).bit_length())" of drafts and two.
    open_latent = PAIRED.caches(rank(8, num_speculative_tokens=drafted))[3]

    assert (open_latent.block_size, open_latent.page_size_bytes) == (ring, ring * 2 * 512 * 4)


def test_sources_alone_have_a_compressor_and_who_selects_has_queries() -> None:
    """Referee: tensors of the published files: `compressor.wkv` 4, `wgate` 3, `indexer.wq_b` 8, `indexer.wk` 4."""
    selecting = replace(READER, indexer=INDEXER)
    names = {
        name: {matrix.module.split("attn.")[1]: matrix.rows for matrix in layer.matrices(5_120, Layout(), "layers.2.")}
        for name, layer in (("reader", READER), ("selecting", selecting), ("single", SINGLE), ("paired", PAIRED))
    }

    compressed = [each.get("compressor.fused_wkv_wgate") for each in names.values()]
    assert compressed == [None, None, 512, 1_024]
    assert [("indexer.wq_b" in each, "indexer.wk" in each) for each in names.values()] == [
        (False, False),
        (True, False),
        (True, True),
        (True, True),
    ]


def test_who_selects_reads_keys_and_all_attend_to_no_more_than_is_selected() -> None:
    assert [layer.work(8, 1).longest for layer in (WINDOW, READER, SINGLE)] == [128, 512, 512]
    assert [layer.work(8, 1).scan_bytes for layer in (READER, PAIRED, SINGLE)] == [0, 64, 128]


def test_one_layer_makes_the_buffers_of_what_is_selected() -> None:
    # `nvidia/model.py` (`topk_indices_buffer`, `candidate_block_buffer`): 512 and 2,048 numbers of four bytes a token.
    assert [layer.live(8).buffer_bytes_per_token for layer in (WINDOW, PAIRED, SINGLE)] == [0, 0, 4 * 2_560]
