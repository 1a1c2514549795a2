"""Attention with keys and values of its own."""

from dataclasses import replace

import pytest

from service.engine.inputs import Layout
from service.engine.layers import BlockSelector, GroupedQueryAttention
from tests.engine.layers.ranks import FP8, rank

LLAMA_70B = GroupedQueryAttention(num_attention_heads=64, num_key_value_heads=8, head_dim=128, v_head_dim=128)
GPT_OSS = GroupedQueryAttention(num_attention_heads=64, num_key_value_heads=8, head_dim=64, v_head_dim=64)
# MiniMax M3: one selector of four heads of 128 for blocks of 128 tokens.
SELECTOR = BlockSelector(num_heads=4, head_dim=128, block_size=128)


def test_bytes_per_token_are_the_published_ones() -> None:
    # 80 layers, 8 heads of 128: 327,680 bytes in bf16, half of it in fp8 (arXiv:2505.09343, table 1, of Qwen2.5-72B).
    assert 80 * LLAMA_70B.caches(rank())[0].token_bytes == 327_680
    assert 80 * LLAMA_70B.caches(rank(**FP8))[0].token_bytes == 163_840


@pytest.mark.parametrize(("tp", "token_bytes"), [(1, 4_096), (4, 1_024), (8, 512), (16, 512)])
def test_ranks_beyond_the_heads_hold_one_each(tp: int, token_bytes: int) -> None:
    assert LLAMA_70B.caches(rank(tp))[0].token_bytes == token_bytes


def test_a_window_or_a_chunk_bounds_what_is_kept() -> None:
    sliding = replace(GPT_OSS, sliding_window=128).caches(rank(retained_tokens=2))[0]
    chunked = replace(GPT_OSS, attention_chunk_size=8_192).caches(rank(retained_tokens=2))[0]

    assert (sliding.kind, sliding.window, sliding.retained_tokens) == ("sliding_window", 128, 2)
    assert (chunked.kind, chunked.window, chunked.retained_tokens) == ("chunked_local_attention", 8_192, 0)


def test_a_layer_that_reads_anothers_cache_keeps_none_and_has_no_keys() -> None:
    reading = replace(LLAMA_70B, shares_cache_with=3)

    assert reading.caches(rank()) == ()
    assert reading.matrices(8_192, Layout(), "model.layers.9.")[0].rows == 64 * 128


def test_a_selector_keeps_a_key_of_its_own_in_the_model_s_dtype() -> None:
    key, own = replace(LLAMA_70B, selector=SELECTOR).caches(rank(**FP8))

    assert (key.token_bytes, own.token_bytes) == (128 * 2, 8 * 256)
    assert [it.block_size for it in replace(LLAMA_70B, selector=SELECTOR).kernel_needs] == [128]


def test_heads_and_sinks_say_which_kernels_will_do() -> None:
    (plain,), (sinking,) = LLAMA_70B.kernel_needs, replace(LLAMA_70B, has_sinks=True).kernel_needs

    assert (plain.kind, plain.key_dim, plain.value_dim, plain.has_sinks) == ("grouped", 128, 128, False)
    assert sinking.has_sinks


def test_weights_of_a_layer_are_the_published_ones() -> None:
    # Llama 3.1 70B: (8,192 + 2 x 1,024) x 8,192 of query, key and value, 8,192 x 8,192 of output.
    matrices = LLAMA_70B.matrices(8_192, Layout(), "model.layers.0.")

    assert sum(it.elements for it in matrices if it.is_linear) == 150_994_944
    halves = LLAMA_70B.matrices(8_192, Layout(tensor_parallel_size=16), "model.layers.0.")
    assert sum(it.elements for it in halves if it.is_linear) == 8_192 * (6 * 128 + 4 * 128)


def test_step_3_projects_narrow_queries_on_every_rank() -> None:
    # huggingface.co/stepfun-ai/step3: 64 heads of 256 out of 2,048 wide queries, one key and value.
    step = GroupedQueryAttention(
        num_attention_heads=64, num_key_value_heads=1, head_dim=256, v_head_dim=256, query_rank=2_048
    )
    rows = {it.name: it.rows for it in step.matrices(7_168, Layout(tensor_parallel_size=8), "model.layers.0.")}

    assert (rows["qkv_proj"], rows["wq"]) == (2_048 + 2 * 256, 8 * 256)


def test_decoding_reads_keys_and_values_once_and_multiplies_them_with_every_query() -> None:
    work = LLAMA_70B.work(8, 2)

    assert (work.token_bytes, work.decode_flop_per_pair) == (512, 2 * 8 * 256)
    assert replace(LLAMA_70B, sliding_window=128).work(8, 2).longest == 128


def test_drafts_have_the_heads_without_what_is_around_them() -> None:
    assert replace(LLAMA_70B, sliding_window=128, has_sinks=True).draft_attention == LLAMA_70B
