"""Blocks of DeepSeek V4 by version, as vLLM 0.20.2 and 0.26.0 plan them themselves.

Their own planners (`get_kv_cache_configs`, `get_max_concurrency_for_kv_cache_config`) were run on a simulated H100, over
pools of 20 GiB on each of four GPUs, contexts of 8,192 tokens, steps of 4,096 and a cache in fp8.
"""

import pytest
from starlette.testclient import TestClient

GIB = 2**30
# model, version: blocks, tokens, requests at once
PLANNED = {
    ("deepseek-v4-flash", "0.20.2"): (20_417, 109_532, 13.370661427635888),
    ("deepseek-v4-pro", "0.20.2"): (14_489, 76_330, 9.317684887459807),
    ("deepseek-v4-flash", "0.26.0"): (20_655, 56_704, 6.921916890080429),
    ("deepseek-v4-pro", "0.26.0"): (14_574, 39_286, 4.795656465942744),
}


@pytest.mark.parametrize(("model", "version"), PLANNED)
def test_pages_of_different_sizes_share_blocks_as_the_version_has_them(
    client: TestClient, model: str, version: str
) -> None:
    asked: dict[str, str | int] = {
        "model": model,
        "gpu": "h100",
        "engine_version": version,
        "tensor_parallel_size": 4,
        "kv_cache_dtype": "fp8",
        "kv_cache_memory_bytes": 20 * GIB,
        "max_model_len": 8_192,
        "max_num_batched_tokens": 4_096,
        "max_num_seqs": 1_024,
    }

    cache = client.get("/capacity", params=asked).json()["kv_cache"]

    blocks, tokens, concurrency = PLANNED[model, version]
    assert (cache["num_gpu_blocks"], cache["tokens"]) == (blocks, tokens)
    assert cache["max_concurrency"] == pytest.approx(concurrency, rel=1e-12)
