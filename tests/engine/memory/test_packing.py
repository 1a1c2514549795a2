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


# nvidia/DeepSeek-V3.2-NVFP4 on eight H100, whose checkpoint asks for an fp8 cache; the same planners, of 0.33 too.
# version, cache as stated: tokens, and what the command must say to have them
OF_SPARSE_LATENTS = {
    ("0.33.0", "auto"): (497_216, "--kv-cache-dtype fp8_e4m3"),
    ("0.33.0", "fp8"): (497_216, "--kv-cache-dtype fp8_e4m3"),  # with `fp8` it has 446,720
    ("0.20.2", "auto"): (446_720, "--kv-cache-dtype fp8"),  # it finds no kernel where nothing is stated
    ("0.20.2", "fp8"): (446_720, "--kv-cache-dtype fp8"),
}


@pytest.mark.parametrize(("version", "stated"), OF_SPARSE_LATENTS)
def test_the_command_names_the_fp8_that_was_planned(client: TestClient, version: str, stated: str) -> None:
    asked: dict[str, str | int] = {
        "model": "nvidia/DeepSeek-V3.2-NVFP4",
        "gpu": "h100",
        "engine_version": version,
        "tensor_parallel_size": 8,
        "kv_cache_dtype": stated,
        "kv_cache_memory_bytes": 20 * GIB,
        "max_model_len": 8_192,
        "max_num_batched_tokens": 8_192,
    }

    answer = client.get("/capacity", params=asked).json()

    tokens, words = OF_SPARSE_LATENTS[version, stated]
    assert answer["kv_cache"]["tokens"] == tokens
    assert f"{words} " in f"{answer['command']} "
