"""DeepSeek V4's window and compressed past, against the pages that vLLM 0.33 itself computes."""

from dataclasses import replace

from service.engine.inputs import CompressedPools, Layout
from service.engine.layers import CompressedAttention, SparseIndexer
from tests.engine.layers.ranks import FP8, rank

# huggingface.co/deepseek-ai/DeepSeek-V4-Flash config.json
WINDOW = CompressedAttention(
    num_attention_heads=64, head_dim=512, q_lora_rank=1_024, o_lora_rank=1_024, o_groups=8, sliding_window=128,
    compress_ratio=1,
)  # fmt: skip
PAST = replace(WINDOW, compress_ratio=128)
SELECTED = replace(
    WINDOW, compress_ratio=4, indexer=SparseIndexer(num_heads=64, head_dim=128, top_k=512, q_lora_rank=1_024)
)


def pages(layer: CompressedAttention) -> list[tuple[str, int, int]]:
    return [(it.kind, it.page_size_bytes, it.block_size) for it in layer.caches(rank(**FP8))]


def test_pages_are_the_engine_s() -> None:
    # The oracle's rows of DeepSeek-V4-Flash, whatever TP and dtype.
    assert pages(WINDOW) == [("sliding_window_mla", 37_440, 64)]
    assert pages(PAST)[:2] == [("sliding_window_mla", 37_440, 64), ("mla_attention", 1_728, 256)]
    assert pages(SELECTED) == [
        ("sliding_window_mla", 37_440, 64),
        ("mla_attention", 8_640, 256),
        ("sliding_window_mla", 8_640, 4),
        ("mla_attention", 37_440, 256),
        ("sliding_window_mla", 32_832, 4),
    ]
    assert SELECTED.caches(rank(8)) == SELECTED.caches(rank(**FP8))


def test_down_projections_and_compressors_are_whole_on_every_rank() -> None:
    rows = [
        {it.module: it.rows for it in SELECTED.matrices(4_096, Layout(tensor_parallel_size=tp), "")} for tp in (1, 4)
    ]

    for name in ("attn.fused_wqa_wkv", "attn.indexer.wq_b", "attn.compressor.fused_wkv_wgate"):
        assert rows[0][name] == rows[1][name]
    assert rows[0]["attn.wq_b"] == 4 * rows[1]["attn.wq_b"] == 64 * 512
    assert rows[1]["attn.attn_sink"] == 64  # the kernel works on 64 heads at once


def test_windows_cannot_be_spread_and_pools_of_their_own_have_pages_of_256_tokens() -> None:
    assert PAST.spread.is_local
    assert PAST.page_size == 256


def test_pools_of_their_own_hold_states_by_slots_or_by_requests() -> None:
    """SGLang 0.5.15 `pool_configurator.py`, 0.5.23 `kv_layout.py` (`page_bytes`: whole rows of 576 bytes)."""

    def kept(layer: CompressedAttention, pools: CompressedPools, drafts: int = 0) -> list[tuple[str, int, int]]:
        specs = layer.caches(rank(**FP8, pools=pools, num_speculative_tokens=drafts))
        return [(spec.kind, spec.page_size_bytes, spec.block_size) for spec in specs]

    assert kept(WINDOW, "by_request") == [("sliding_window_mla", 256 * 584, 256)]
    assert kept(WINDOW, "padded") == [("sliding_window_mla", 260 * 576, 256)]
    # Eight rows, which drafts double, of 2 x 2 x (512 + 128) fp32 values: for each window, later for each page of it.
    assert kept(SELECTED, "by_request", drafts=1) == [
        ("sliding_window_mla", 256 * 584, 256),
        ("mla_attention", 64 * 584, 256),
        ("mla_attention", 64 * 132, 256),
        ("sliding_window_mla", 16 * 4 * 640 * 4, 128),
    ]
    assert kept(SELECTED, "padded")[1:] == [
        ("mla_attention", 65 * 576, 256),
        ("mla_attention", 64 * 132, 256),
        ("sliding_window_mla", 8 * 4 * 640 * 4, 256),
    ]
    assert kept(PAST, "by_tokens")[1:] == [("mla_attention", 2 * 584, 256), ("sliding_window_mla", 128 * 4_096, 128)]
    assert kept(PAST, "by_request")[1:] == [("mla_attention", 2 * 584, 256), ("circular_buffer", 128 * 4_096, 128)]
    assert kept(PAST, "padded", drafts=1)[1:] == [
        ("mla_attention", 3 * 576, 256),
        ("circular_buffer", 256 * 4_096, 256),
    ]


def test_a_compressed_past_is_read_by_its_ratio_up_to_what_is_selected() -> None:
    assert (WINDOW.work(8, 1).longest, WINDOW.work(8, 1).ratio) == (128, 1)
    assert (PAST.work(8, 1).longest, PAST.work(8, 1).ratio) == (float("inf"), 128)
    assert (SELECTED.work(8, 1).longest, SELECTED.work(8, 1).ratio) == (512, 4)
    assert SELECTED.live(8).selected_ratio == 4
