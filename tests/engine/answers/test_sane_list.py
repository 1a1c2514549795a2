"""What an engineer would pick from: the first options for common models, where no limits and no GPUs are stated.

Deployments that are documented by those who run or publish them:
    gpt-oss-120b on one A100 or H100, gpt-oss-20b on one A100       vLLM recipes, OpenAI/GPT-OSS.md
    DeepSeek-V3 in fp8 on 8 x MI300X, H200 or B200                  SGLang, docs/basic_usage/deepseek_v3.md
    Llama 3.1 8B in four bits on one L4                             huggingface.co/docs/google-cloud, Cloud Run
    Llama 3 70B with AWQ over tensor-parallel ranks of one server   codingprotocols.com, vLLM on Kubernetes
"""

from typing import Any

import pytest
from starlette.testclient import TestClient

from service.catalog.snapshot import Snapshot
from service.engine.fleet.shortlist import computes_in, product_line

LOAD = {"concurrent_requests": 16, "input_tokens": 2000, "output_tokens": 500, "limit": 3}
COMMON = (
    "llama-3.1-8b", "llama-3.3-70b", "qwen3-32b", "qwen3-30b-a3b", "gpt-oss-120b", "gpt-oss-20b", "deepseek-v3",
    "gemma-3-27b-it", "qwen2.5-72b", "qwen3-235b-a22b",
)  # fmt: skip
# GPUs of one replica, by GPU type, as published.
DOCUMENTED = {
    "gpt-oss-120b": {("a100-pcie-80gb", 1), ("a100-sxm-80gb", 1), ("h100-sxm-80gb", 1)},
    "deepseek-v3": {("mi300x", 8), ("h200-sxm-141gb", 8), ("b200-sxm-180gb", 4), ("b200-sxm-180gb", 8)},
    "llama-3.1-8b": {("l4", 1)},
}


@pytest.fixture(scope="module")
def listed(client: TestClient) -> dict[str, list[dict[str, Any]]]:
    answers = {name: client.get("/recommend", params={"model": name, **LOAD}).json() for name in COMMON}
    return {name: answer["options"] for name, answer in answers.items()}


@pytest.mark.parametrize("model", COMMON)
def test_the_first_options_are_those_of_a_data_centre(
    listed: dict[str, list[dict[str, Any]]], catalog: Snapshot, model: str
) -> None:
    own = next(each.weight_format for each in catalog.model(model).checkpoints if each.is_default)

    assert len(listed[model]) == 3
    for option in listed[model]:
        gpu = catalog.gpu(option["gpu"])
        assert product_line(gpu) == "data-centre"
        assert option["weight_format"] == own or computes_in(gpu, option["weight_format"])
        assert option["tensor_parallel_size"] in (1, 2, 4, 8)
        assert option["pipeline_parallel_size"] == 1
        assert option["gpus_per_replica"] <= gpu.gpus_per_node
        assert option["ttft_p95_s"] <= 5.0
        assert option["tpot_p95_s"] <= 0.1
        assert (option["tier"], option["purchase"]) == ("secure", "on-demand")
        assert option["command"].startswith("vllm serve ")


@pytest.mark.parametrize("model", DOCUMENTED)
def test_a_published_deployment_is_among_the_first(listed: dict[str, list[dict[str, Any]]], model: str) -> None:
    assert {(option["gpu"], option["gpus_per_replica"]) for option in listed[model]} & DOCUMENTED[model]


def test_nothing_listed_first_is_dearer_than_what_follows(listed: dict[str, list[dict[str, Any]]]) -> None:
    for options in listed.values():
        prices = [option["usd_per_hour"] for option in options]
        assert prices == sorted(prices)
