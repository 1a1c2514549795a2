"""A command is told with the build that it needs, where the engine's usual one does not run on the GPU."""

from typing import Any

import pytest
from starlette.testclient import TestClient

ASKED: dict[str, Any] = {"model": "llama-3.1-8b", "concurrent_requests": 8, "input_tokens": 900, "output_tokens": 90}


@pytest.mark.parametrize(
    ("gpu", "engine", "needed"),
    [
        ("gaudi-3", "vllm", "vllm-gaudi"),
        ("gaudi-2", "sglang", "HabanaAI/sglang-fork"),
        ("mi300x", "vllm", "vLLM's build for ROCm"),
        ("r9700", "vllm", "vLLM's build for ROCm"),
        ("arc-pro-b60", "vllm", "vLLM's build for XPU"),
    ],
)
def test_what_a_command_needs_beside_the_usual_build_is_told(
    client: TestClient, gpu: str, engine: str, needed: str
) -> None:
    """docs.vllm.ai, projects/gaudi: "vLLM Hardware Plugin for Intel Gaudi"; vLLM alone finds no device there."""
    sized = client.post("/size", json={**ASKED, "gpu": gpu, "engine": engine}).json()
    [option] = client.post("/recommend", json={**ASKED, "gpus": [gpu], "engine": engine, "limit": 1}).json()["options"]

    for told in (sized, option):
        assert [needed in warning for warning in told["warnings"] if "usually installed" in warning] == [True]


def test_the_usual_build_is_not_spoken_of(client: TestClient) -> None:
    sized = client.post("/size", json={**ASKED, "gpu": "h100"}).json()

    assert not any("usually installed" in warning for warning in sized["warnings"])


@pytest.mark.parametrize(
    ("model", "gpu", "version", "is_kept_from_it"),
    [
        ("MiniMaxAI/MiniMax-M2.7", "rtx-pro-6000", "0.24.0", True),  # vLLM issue 47130, four of them
        ("Qwen/Qwen3.6-27B-FP8", "rtx-pro-6000", "0.24.0", True),  # issue 47169
        ("Qwen/Qwen3.6-27B-FP8", "rtx-pro-6000", "0.23.0", False),  # issue 47130: "regression vs 0.23.0"
        ("Qwen/Qwen3.6-27B-FP8", "rtx-pro-6000", "0.26.0", False),
        ("Qwen/Qwen3.6-27B-FP8", "h100", "0.24.0", False),
        ("Qwen/Qwen3.6-27B", "rtx-pro-6000", "0.24.0", False),
    ],
)
def test_a_version_is_kept_from_kernels_that_its_build_has_not(
    client: TestClient, model: str, gpu: str, version: str, *, is_kept_from_it: bool
) -> None:
    asked = {**ASKED, "model": model, "gpu": gpu, "engine_version": version}
    sized = client.post("/size", json=asked).json()

    assert sized["command"].startswith("VLLM_USE_DEEP_GEMM=0 vllm serve ") == is_kept_from_it
    assert any("VLLM_USE_DEEP_GEMM=0" in warning for warning in sized["warnings"]) == is_kept_from_it
