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
