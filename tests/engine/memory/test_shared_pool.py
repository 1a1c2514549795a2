"""The shared pool's blocks, tokens and requests, against vLLM 0.33's own planner."""

from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.catalog.snapshot import Snapshot
from service.engine.engines.plans import NEWEST
from service.engine.inputs import EngineSettings, KvCacheDtype, Layout, SpeculativeMethod
from service.engine.memory.cache_shape import cache_shape
from service.engine.memory.shared_pool import in_flight_tokens, longest_fitting, plan_kv_cache, requests_held

POOL = 40 << 30

# model, TP, decode-context ranks, cache, longest context: bytes per block, blocks and tokens by the same planner
SPREAD: dict[tuple[str, int, int, KvCacheDtype, int], tuple[int, int, int]] = {
    ("deepseek-v3", 8, 1, "bf16", 10_001): (1_124_352, 38_199, 610_268),
    ("deepseek-v3", 8, 2, "bf16", 10_001): (1_124_352, 38_199, 1_220_537),
    ("deepseek-v3", 8, 4, "bf16", 10_001): (1_124_352, 38_199, 2_433_300),
    ("deepseek-v3", 8, 8, "bf16", 10_001): (1_124_352, 38_199, 4_835_799),
    ("deepseek-v3", 8, 8, "fp8", 8_192): (2_248_704, 19_099, 9_778_688),
    ("deepseek-v3.2", 8, 4, "fp8", 8_192): (3_076_352, 13_961, 3_574_016),
    ("kimi-k2-instruct", 16, 16, "bf16", 8_192): (1_124_352, 38_199, 9_778_944),
    ("qwen3-235b-a22b", 8, 2, "bf16", 8_192): (770_048, 55_775, 1_784_800),
    ("qwen3-30b-a3b", 8, 2, "bf16", 8_192): (393_216, 109_226, 3_495_232),
    ("qwen3-next-80b-a3b-instruct", 8, 4, "bf16", 8_192): (2_359_296, 18_204, 7_456_358),
}


def settings(
    dtype: KvCacheDtype, *, max_model_len: int = 8_192, drafted: int = 0, method: SpeculativeMethod | None = None
) -> EngineSettings:
    return EngineSettings(
        gpu_memory_utilization=0.92,
        kv_cache_dtype=dtype,
        max_model_len=max_model_len,
        max_num_batched_tokens=8_192,
        max_num_seqs=1_024,
        num_speculative_tokens=drafted,
        speculative_method=method,
    )


# Llama 3.1 8B, blocks of 16: ceil of the tokens of a request and of what vLLM 0.33 adds in `_request_remaining_blocks`,
# the drafted tokens and as many lookahead slots, never beyond the longest context.
@pytest.mark.parametrize(
    ("method", "tokens", "blocks"),
    [(None, 1_024, 64), ("ngram", 1_024, 65), ("eagle3", 1_024, 65), ("eagle3", 1_034, 65), ("eagle3", 1_035, 66),
     ("eagle3", 8_192, 512)],
)  # fmt: skip
def test_drafted_tokens_take_slots(
    catalog: Snapshot, method: SpeculativeMethod | None, tokens: int, blocks: int
) -> None:
    cache = plan_kv_cache(
        catalog.model("llama-3.1-8b").architecture,
        layout=Layout(),
        settings=settings("bf16", drafted=3 if method else 0, method=method),
        available_bytes=POOL,
        input_tokens=tokens - 200,
        output_tokens=200,
    )

    assert cache.bytes_per_request_per_gpu == blocks * cache.bytes_per_block


@pytest.mark.parametrize(("case", "expected"), SPREAD.items(), ids=lambda it: "-".join(map(str, it)))
def test_ranks_hold_the_tokens_of_one_cache_in_turn(
    catalog: Snapshot, case: tuple[str, int, int, KvCacheDtype, int], expected: tuple[int, int, int]
) -> None:
    model, tp, dcp, dtype, longest = case
    architecture = catalog.model(model).architecture
    layout = Layout(tensor_parallel_size=tp, decode_context_parallel_size=dcp)

    cache = plan_kv_cache(
        architecture, layout=layout, settings=settings(dtype, max_model_len=longest), available_bytes=POOL
    )

    assert (cache.bytes_per_block, cache.num_gpu_blocks, cache.tokens) == expected


def test_spread_sparse_latents_are_planned_and_their_kernel_s_limit_is_said(client: TestClient) -> None:
    # vLLM 0.33 plans the cache; its kernel then says "DCP for FlashMLA sparse requires an fp8_ds_mla kv-cache; the
    # bf16 sparse path is not supported".
    asked: dict[str, Any] = {"model": "deepseek-v3.2", "gpu": "h200", "tensor_parallel_size": 8}
    asked |= {"decode_context_parallel_size": 4}
    plain, packed = (
        client.get("/capacity", params={**asked, "max_model_len": 8_192, "kv_cache_dtype": dtype}).json()
        for dtype in ("auto", "fp8")
    )

    assert any("packed" in warning for warning in plain["warnings"])
    assert not any("packed" in warning for warning in packed["warnings"])


def test_requests_share_what_is_in_flight(catalog: Snapshot) -> None:
    shape = cache_shape(catalog.model("llama-3.1-8b").architecture, Layout(), "bf16", None)

    # 1,000 tokens are 63 blocks of 16; one block of the pool is never handed out.
    held = [
        requests_held(shape, settings=settings("bf16"), num_gpu_blocks=blocks, context_tokens=1_000, in_flight_tokens=0)
        for blocks in (63, 64, 127)
    ]

    assert held == [0, 1, 2]


def test_without_a_cache_slots_alone_count(catalog: Snapshot) -> None:
    nothing = replace(cache_shape(catalog.model("llama-3.1-8b").architecture, Layout(), "bf16", None), groups_alike=())

    assert (
        requests_held(nothing, settings=settings("bf16"), num_gpu_blocks=1, context_tokens=1_000, in_flight_tokens=0)
        == 1_024
    )


@pytest.mark.parametrize("blocks", [1, 100, 511])
def test_the_longest_fitting_request_fits_and_one_token_more_does_not(catalog: Snapshot, blocks: int) -> None:
    shape = cache_shape(catalog.model("gpt-oss-20b").architecture, Layout(), "bf16", None)
    longest = longest_fitting(shape, 131_072, in_flight_tokens(settings("bf16"), Layout(), NEWEST), blocks)

    assert shape.blocks_per_request(longest, 16_384) <= blocks < shape.blocks_per_request(longest + 1, 16_384)


@pytest.mark.parametrize(("stages", "ahead", "batches"), [(1, True, 2), (1, False, 1), (4, True, 5), (4, False, 4)])
def test_batches_in_flight_are_stages_and_one_that_is_planned_ahead(stages: int, ahead: bool, batches: int) -> None:  # noqa: FBT001
    """vLLM 0.33 `config/vllm.py` (`max_concurrent_batches`)."""
    layout, plan, of_one = Layout(pipeline_parallel_size=stages), replace(NEWEST, plans_ahead=ahead), settings("bf16")

    assert in_flight_tokens(of_one, layout, plan) == batches * of_one.max_num_batched_tokens
