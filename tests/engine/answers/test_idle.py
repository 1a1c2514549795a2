"""Answers say which parts of a question decide nothing, or less than they say."""

from typing import Any

import pytest
from starlette.testclient import TestClient

ONE_GPU: dict[str, Any] = {
    "model": "qwen3-30b-a3b",
    "gpu": "h100",
    "weight_format": "fp8",
    "concurrent_requests": 8,
    "input_tokens": 1_000,
    "output_tokens": 100,
    "tensor_parallel_size": 1,
}


def sized(client: TestClient, path: str = "/size", **more: Any) -> dict[str, Any]:
    response = client.post(path, json={**ONE_GPU, **more})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


@pytest.mark.parametrize("path", ["/size", "/capacity", "/replicas"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_experts_dealt_out_to_one_rank_are_those_of_any_rank_alone(client: TestClient, path: str, engine: str) -> None:
    """vLLM 0.33 `fused_moe/config.py`: `use_ep = dp_size_ * pcp_size_ * tp_size_ > 1 and ...enable_expert_parallel`."""
    cut, dealt = (sized(client, path, engine=engine, expert_parallel=stated) for stated in (False, True))

    told = "expert_parallel decides nothing"
    assert [each for each in dealt["warnings"] if each.startswith(told)]
    assert not [each for each in cut["warnings"] if each.startswith(told)]
    for name in ("layout", "latency", "per_pod", "memory_per_gpu", "command", "saturation", "cost"):
        assert dealt.get(name) == cut.get(name), name


def test_a_model_without_experts_deals_none_out_on_one_rank_either(client: TestClient) -> None:
    """vLLM: "Number of experts in the model must be greater than 0 when expert parallelism is enabled"."""
    response = client.post("/size", json={**ONE_GPU, "model": "qwen3-8b", "expert_parallel": True})

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "expert_parallel"


def test_dtypes_of_states_are_idle_without_any(client: TestClient) -> None:
    warned = sized(client, mamba_cache_dtype="float32")["warnings"]

    assert [each for each in warned if each.startswith("mamba_cache_dtype decides nothing")]


def test_a_step_with_tokens_for_few_drafts_is_told(client: TestClient) -> None:
    drafts = {"num_speculative_tokens": 3, "speculative_acceptance_fraction": 0.7, "speculative_method": "ngram"}
    crowded = sized(client, "/capacity", **drafts, max_num_batched_tokens=64, max_num_seqs=64)
    roomy = sized(client, "/capacity", **drafts, max_num_batched_tokens=8_192, max_num_seqs=64)

    told = "has them for 16 requests with 3 drafts each"
    assert [each for each in crowded["warnings"] if told in each]
    assert not [each for each in roomy["warnings"] if "drafts each" in each]
