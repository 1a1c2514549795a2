"""What picks blocks or tokens for softmax heads."""

from dataclasses import replace

import pytest

from service.engine.inputs import Layout
from service.engine.layers import BlockSelector, GroupedQueryAttention, KeySelector
from tests.engine.layers.ranks import FP8, rank

# huggingface.co/Qwen/Qwen3.8-Flash-Next config.json
HEADS = GroupedQueryAttention(
    num_attention_heads=24, num_key_value_heads=2, head_dim=256, v_head_dim=256, has_output_gate=True
)
TOKENS = KeySelector(num_heads=4, head_dim=128, pool=4, top_k=2_048)
FLASH_NEXT = replace(HEADS, selector=TOKENS)
# MiniMax M3: heads of 128 for blocks of 128 tokens.
BLOCKS = BlockSelector(num_heads=4, head_dim=128, block_size=128)


@pytest.mark.parametrize(("drafted", "ring"), [(0, 4), (1, 8), (4, 8), (5, 12)])
def test_a_ring_holds_an_open_key_and_what_is_drafted(drafted: int, ring: int) -> None:
    # vLLM 0.33 `qsa_cache.py` (`QSAKeyStateCache`): "round_up(span, self.compress_ratio)".
    raw, _ = TOKENS.caches(rank(num_speculative_tokens=drafted))

    assert (raw.block_size, raw.page_size_bytes) == (ring, ring * (128 * 2 + 3 * 8))


def test_keys_of_four_tokens_stay_in_two_bytes_on_every_rank() -> None:
    _, keys, own = FLASH_NEXT.caches(rank(8, block_size=400, **FP8))

    assert (keys.kind, keys.page_size_bytes) == ("mla_attention", 100 * 128 * 2)
    assert own.page_size_bytes == 400 * 512


def test_its_rows_stand_in_the_projection_whole_on_every_rank() -> None:
    # "Qwen4ExpQSAQKVIndexerLinear": 24 gated heads over 8 ranks, one head of keys and values, and (4 + 1) x 128.
    projection = FLASH_NEXT.matrices(2_560, Layout(tensor_parallel_size=8), "")[0]

    assert projection.rows == 3 * 2 * 256 + 2 * 256 + 5 * 128


def test_a_query_reads_2048_tokens_and_those_without_a_key() -> None:
    work, reads = FLASH_NEXT.work(1, 2), TOKENS.reads

    # `QSAIndexer.output_width`: "token_topk + compress_ratio - 1", and `packed_output_width` one more.
    assert (work.longest, reads.buffer_bytes) == (2_048 + 3, 4 * 2_052)
    assert (work.scan_bytes, work.scan_flop_per_pair) == (128 * 2 / 4, 2 * 4 * 128 / 4)
    assert FLASH_NEXT.live(1).buffer_bytes_per_token == 4 * 2_052
    assert FLASH_NEXT.draft_attention is None


def test_blocks_leave_the_work_of_all_heads() -> None:
    heads = replace(HEADS, selector=BLOCKS)

    assert heads.work(1, 2) == HEADS.work(1, 2)
    assert heads.draft_attention is not None
    assert (heads.spread.is_on_one_rank, FLASH_NEXT.spread.is_on_one_rank) == (False, True)
    assert (heads.page_size, FLASH_NEXT.page_size) == (1, None)
