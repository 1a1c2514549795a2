"""Pools that engines printed at start-up on GPUs and in models that nothing here was fitted to."""

from urllib.parse import parse_qsl

import pytest
from fastapi.testclient import TestClient

# Muse Glimmer 30B in 16 bits, served at 131,072 tokens by a vLLM of August 2026:
# https://github.com/vllm-project/recipes (models/meta-models/Muse-Glimmer-30B.yaml)
# GPU, tensor parallelism, max_num_seqs: tokens, concurrency
OF_MUSE_GLIMMER = {
    ("gb300", 4, 64): (26.8e6, 204),
    ("mi300x", 1, 1_024): (6.66e6, 50.82),
    ("mi300x", 4, 1_024): (17.79e6, 135.73),
    ("mi355x", 1, 1_024): (11.64e6, 88.86),
    ("mi355x", 4, 1_024): (27.68e6, 211.22),
}
# Qwen3.8-27B on two RTX 5090, a 262,144-token context, a cache in 16 bits, prefixes cached; blocks of a vLLM between
# 0.26 and 0.27, which the printed tokens tell exactly: tokens = blocks / 341 x 262,144 (the same repository,
# models/Qwen/Qwen3.8-27B.yaml).
OF_QWEN = {"Qwen/Qwen3.8-27B-FP8": 491, "Inferact/Qwen3.8-27B-NVFP4": 580}

# Home servers of GeForce cards, whose models have states; prefixes are cached but where it says so:
# https://github.com/noonghunna/club-3090 (BENCHMARKS.md, and issues 91, 127, 612, 642)
# settings beside those of all: tokens
WITH_DRAFTS = "&num_speculative_tokens=3&speculative_acceptance_fraction=0.7&max_num_seqs=2"
AT_HOME = {
    f"qwen3.6-27b&weight_format=int4&gpu=rtx-3090&gpu_count=2&engine_version=0.24.0{WITH_DRAFTS}": 623_873,
    f"qwen3.6-27b&weight_format=int4&gpu=rtx-3090&gpu_count=2&engine_version=0.20.1{WITH_DRAFTS}": 619_479,
    f"qwen3.6-27b&weight_format=int4&gpu=rtx-3090&gpu_count=4&engine_version=0.20.2{WITH_DRAFTS}": 1_774_963,
    f"qwen3.6-27b&weight_format=nvfp4&gpu=rtx-5090&gpu_count=2&engine_version=0.25.1&gpu_memory_utilization=0.85"
    f"&enable_prefix_caching=false{WITH_DRAFTS}": 841_541,
    "qwen3.6-35b-a3b&weight_format=int4&gpu=rtx-5090&gpu_count=2&engine_version=0.25.1&max_num_seqs=1": 3_382_054,
    "qwen3.6-35b-a3b&weight_format=nvfp4&gpu=rtx-5090&gpu_count=2&engine_version=0.25.1&max_num_seqs=1": 3_292_687,
}


@pytest.mark.parametrize(("server", "tokens"), AT_HOME.items())
def test_pools_of_home_servers(client: TestClient, server: str, tokens: int) -> None:
    asked = dict(parse_qsl(f"model={server}"))
    usual = {"enable_prefix_caching": "true", "gpu_memory_utilization": "0.92", "kv_cache_dtype": "fp8"}
    stated = {"max_model_len": "262144", "max_num_batched_tokens": "8192", "tensor_parallel_size": asked["gpu_count"]}
    pool = client.get("/capacity", params={**usual, **stated, **asked}).json()["kv_cache"]

    assert pool["tokens"] == pytest.approx(tokens, rel=0.02)


def test_a_pool_with_scales_for_each_token_and_head(client: TestClient) -> None:
    """The same home servers: "Available KV cache / card 11.10 GiB", "605,495" tokens, "2.31x"."""
    pool = client.get(
        f"/capacity?model=qwen3.6-27b&weight_format=int4&gpu=rtx-3090&gpu_count=2&tensor_parallel_size=2"
        f"&engine_version=0.25.1&kv_cache_dtype=int8_per_token_head&kv_cache_memory_bytes={int(11.10 * 2**30)}"
        f"&max_model_len=262144&max_num_seqs=2&enable_prefix_caching=true&num_speculative_tokens=4"
        "&speculative_acceptance_fraction=0.75"
    ).json()["kv_cache"]

    assert pool["tokens"] == 605_495
    assert pool["max_concurrency"] == pytest.approx(2.31, abs=0.005)


@pytest.mark.parametrize(("server", "printed"), OF_MUSE_GLIMMER.items())
def test_pools_of_windows_on_gpus_that_nobody_fitted(
    client: TestClient, server: tuple[str, int, int], printed: tuple[float, float]
) -> None:
    gpu, ranks, max_num_seqs = server
    pool = client.get(
        f"/capacity?model=muse-glimmer-30b&gpu={gpu}&gpu_count={ranks}&tensor_parallel_size={ranks}"
        f"&engine_version=0.28&max_model_len=131072&max_num_seqs={max_num_seqs}&max_num_batched_tokens=8192"
    ).json()["kv_cache"]

    tokens, concurrency = printed
    assert pool["tokens"] == pytest.approx(tokens, rel=0.015)
    assert pool["max_concurrency"] == pytest.approx(concurrency, rel=0.015)


@pytest.mark.parametrize(("model", "blocks"), OF_QWEN.items())
def test_pools_of_states_on_consumer_gpus(client: TestClient, model: str, blocks: int) -> None:
    pool = client.get(
        f"/capacity?model={model}&gpu=rtx-5090&gpu_count=2&tensor_parallel_size=2&engine_version=0.28"
        "&max_model_len=262144&enable_prefix_caching=true&max_num_seqs=256&max_num_batched_tokens=2048"
    ).json()["kv_cache"]

    assert pool["num_gpu_blocks"] == pytest.approx(blocks, rel=0.025)
    assert pool["max_concurrency"] == pytest.approx(blocks / 341, rel=0.025)
