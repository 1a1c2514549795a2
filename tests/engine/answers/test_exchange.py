"""Answers say how ranks exchange the tokens of experts, and that wider layouts than are sized were published."""

from typing import Any

import pytest
from starlette.testclient import TestClient

MANY: dict[str, Any] = {
    "model": "deepseek-r1", "input_tokens": 2000, "output_tokens": 1000, "tpot_s": 0.1, "ttft_s": 5,
}  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "version", "backend"),
    [
        ("vllm", None, "allgather_reducescatter"),
        ("vllm", "0.10", "naive"),
        ("sglang", None, "none"),
        ("tensorrt-llm", None, None),
    ],
)
def test_the_backend_that_times_hold_for_is_told(
    client: TestClient, engine: str, version: str | None, backend: str | None
) -> None:
    """vLLM `config/parallel.py`, before 0.11 `envs.py`; SGLang `server_args.py` (`moe_a2a_backend`)."""
    stated = {"engine_version": version} if version else {}
    fields = {**MANY, **stated, "gpu": "h200", "engine": engine, "request_rate_per_s": 2, "data_parallel_size": 8}
    told = client.post("/size", json=fields).json()["assumptions"]

    assert [each["value"] for each in told if each["name"] == "all2all_backend"] == ([backend] if backend else [])


def test_nothing_is_exchanged_without_experts(client: TestClient) -> None:
    fields = {**MANY, "model": "qwen3-32b", "gpu": "h100", "request_rate_per_s": 5, "data_parallel_size": 2}
    sized = client.post("/size", json=fields).json()

    assert not [each for each in sized["assumptions"] if each["name"] == "all2all_backend"]


def test_a_large_fleet_is_told_that_wider_pools_were_published(client: TestClient) -> None:
    """lmsys.org/blog/2025-05-05-large-scale-ep: 22.3 thousand output tokens a second for each server of eight H100."""
    large, small, a100 = (
        client.post("/size", json={**MANY, "gpu": gpu, "request_rate_per_s": rate, "levers": "none"}).json()
        for gpu, rate in (("h200", 100), ("h200", 2), ("a100-80gb", 20))
    )

    assert large["gpus"] >= 32 > small["gpus"]
    assert a100["gpus"] >= 32
    told = [[each for each in sized["warnings"] if "DeepEP" in each] for sized in (large, small, a100)]
    assert [len(each) for each in told] == [1, 0, 0]
    assert "may take fewer GPUs" in told[0][0]


def test_experts_over_servers_name_the_network(client: TestClient) -> None:
    fields = {**MANY, "gpu": "h200", "request_rate_per_s": 2, "data_parallel_size": 16, "tensor_parallel_size": 1}
    sized = client.post("/size", json=fields).json()

    assert any("experts are spread over servers" in each for each in sized["warnings"])


@pytest.mark.parametrize("field", ["deepep_mode", "enable_eplb", "ep_num_redundant_experts"])
def test_what_is_not_sized_of_a_backend_is_refused_by_name(client: TestClient, field: str) -> None:
    asked = {**MANY, "gpu": "h200", "request_rate_per_s": 2, field: "true"}
    refused = client.post("/size", json=asked)

    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert error["field"] == field
    assert "all2all_backend=deepep" in error["accepted"]


def test_another_name_of_the_field_is_told(client: TestClient) -> None:
    refused = client.post("/size", json={**MANY, "gpu": "h200", "request_rate_per_s": 2, "moe_a2a_backend": "deepep"})

    [error] = refused.json()["errors"]
    assert "all2all_backend" in error["accepted"]


def test_a_stated_backend_is_told_and_its_flags_stand_in_the_command(client: TestClient) -> None:
    asked = {**MANY, "gpu": "h200", "engine": "sglang", "request_rate_per_s": 100, "all2all_backend": "deepep"}
    sized = client.post("/size", json=asked).json()

    [told] = [each for each in sized["assumptions"] if each["name"] == "all2all_backend"]
    assert (told["value"], told["origin"]) == ("deepep", "request")
    assert sized["layout"]["all2all_backend"] == "deepep"
    assert sized["layout"]["expert_parallel"]
    assert "--moe-a2a-backend deepep" in sized["command"]
    assert not [each for each in sized["warnings"] if "DeepEP" in each]


@pytest.mark.parametrize(("engine", "change"), [
    ("vllm", {"engine": "sglang", "all2all_backend": "deepep"}), ("sglang", {"all2all_backend": "deepep"}),
])  # fmt: skip
def test_a_large_fleet_is_told_what_experts_spread_wide_take(
    client: TestClient, engine: str, change: dict[str, str]
) -> None:
    """LMSYS, May 2025: 5.2 times as many tokens as with the engine's own exchange over 16 ranks."""
    asked = {**MANY, "gpu": "h200", "engine": engine, "request_rate_per_s": 100, "disaggregated": True}
    sized = client.post("/size", json=asked).json()
    lever, *_ = [each for each in sized["levers"] if "all2all_backend" in each["change"]]
    wide = client.post("/size", json={**asked, **change}).json()

    assert lever["change"] == change
    assert lever["gpus"] == wide["gpus"] < sized["gpus"]
    assert lever["saves_gpus"] == sized["gpus"] - wide["gpus"]
