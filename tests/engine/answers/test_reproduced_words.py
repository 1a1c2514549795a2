"""Words, names and formats that buyers and operators used and were refused or misled by once, each with what is true."""

from itertools import product
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.engine.answers.test_decision import answer, load

GPU_WORDS = {
    "H100 80GB HBM3": "h100-sxm-80gb", "NVIDIA H100 80GB": "h100-sxm-80gb", "h100 sxm": "h100-sxm-80gb",
    "H100 SXM5": "h100-sxm-80gb", "h100 pcie": "h100-pcie-80gb", "H100_SXM": "h100-sxm-80gb",
    "H200 141GB": "h200-sxm-141gb", "RTX 4090": "rtx-4090", "GeForce RTX 4090": "rtx-4090", "RTX A6000": "rtx-a6000",
    "8xH100": "h100-sxm-80gb", "H100:8": "h100-sxm-80gb", "p5.48xlarge": "h100-sxm-80gb",
}  # fmt: skip
MODEL_WORDS = (
    "llama 3.3 70b", "Qwen3 32B", "qwen3_32b", "https://huggingface.co/Qwen/Qwen3-32B", "Qwen/Qwen3-32B-FP8",
    "nvidia/Llama-3.3-70B-Instruct-FP8",
)  # fmt: skip
FIELD_WORDS = {
    "concurrency": "concurrent_requests", "users": "concurrent_requests", "qps": "request_rate_per_s",
    "rps": "request_rate_per_s", "tp": "tensor_parallel_size", "max_context_tokens": "max_model_len",
}  # fmt: skip


def asked(**more: Any) -> dict[str, Any]:
    return {"model": "llama-3.1-8b", "gpu": "h100", "latency": "none", **load(4, 500, 100)} | more


@pytest.mark.parametrize("words", GPU_WORDS)
def test_a_gpu_is_understood_as_people_write_it(client: TestClient, words: str) -> None:
    assert answer(client, "size", **asked(gpu=words))["gpu"] == GPU_WORDS[words]


@pytest.mark.parametrize("words", MODEL_WORDS)
def test_a_model_is_understood_as_people_write_it(client: TestClient, words: str) -> None:
    assert answer(client, "size", **asked(model=words))["feasible"]


@pytest.mark.parametrize("word", FIELD_WORDS)
def test_an_unknown_field_is_refused_with_the_one_that_was_meant(client: TestClient, word: str) -> None:
    refused = client.get("/size", params={**asked(), word: 8})

    assert refused.status_code == 422
    assert FIELD_WORDS[word] in refused.text


@pytest.mark.parametrize(
    ("field", "value"), [("weight_format", "FP8"), ("engine", "vLLM"), ("engine", "trtllm"), ("max_model_len", "128k")]
)
def test_a_value_is_understood_as_people_write_it(client: TestClient, field: str, value: str) -> None:
    assert client.get("/size", params=asked(**{field: value})).status_code == 200


def test_a_gpu_that_a_provider_lacks_is_rejected_for_that(client: TestClient) -> None:
    arrivals = {"request_rate_per_s": 1, "input_tokens": 500, "output_tokens": 100}
    told = answer(client, "recommend", model="llama-3.1-8b", providers="hotaisle", gpus="h100", **arrivals)

    assert not told["options"]
    assert all("offer" in rejection["reason"] for rejection in told["rejected"])


@pytest.mark.parametrize("model", ["mixtral-8x7b-v0.1", "llama-3.3-70b"])
def test_fewer_bits_never_take_longer_for_one_user_who_waits_for_weights(client: TestClient, model: str) -> None:
    fixed = {"model": model, "gpu": "h200", "tensor_parallel_size": 2, "kv_cache_dtype": "bf16", **load(4, 2000, 300)}
    tpot = {
        weight_format: answer(client, "size", **fixed, weight_format=weight_format)["latency"]["tpot_s"]["p50"]
        for weight_format in ("bf16", "fp8")
    }

    assert tpot["fp8"] <= tpot["bf16"]


def test_a_grid_of_contexts_and_users_is_one_call(client: TestClient) -> None:
    lists = {"input_tokens": "1000,2000,3000", "concurrent_requests": "1,16"}
    grid = answer(client, "compare", models="llama-2-7b", gpus="h100", output_tokens=100, **lists)["rows"]

    assert [(row["input_tokens"], row["concurrent_requests"]) for row in grid] == [
        *product((1000, 2000, 3000), (1, 16))
    ]
    # 2 x 32 layers x 32 heads x 128 x 2 bytes = 524,288 a token, in blocks of 16 tokens
    for row in grid:
        tokens = -(-(row["input_tokens"] + 100) // 16) * 16
        assert row["kv_bytes_of_load"] == row["concurrent_requests"] * tokens * 524_288


def test_savings_of_shared_heads_stand_in_the_table(client: TestClient) -> None:
    rows = answer(client, "compare", models="qwen2.5-7b,llama-3-8b,llama-2-7b", gpus="h100", context_tokens=2048)[
        "rows"
    ]

    # config.json: 28 and 4 heads, 32 and 8, 32 and 32
    assert [row["kv_saved_fraction"] for row in rows] == pytest.approx([1 - 4 / 28, 1 - 8 / 32, 0.0])
    assert [row["kv_bytes_per_token"] for row in rows] == [57_344, 131_072, 524_288]
