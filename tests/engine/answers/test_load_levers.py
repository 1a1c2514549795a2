"""What another load would save is what it takes when it is asked for."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.engine.answers.test_decision import answer, load

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "prompts capped where memory binds": (
        "input_tokens",
        {"model": "qwen3-32b", "gpu": "l40s", **load(64, 16_000, 500)},
    ),
    "prompts found where latency binds": (
        "prefix_cache_hit_fraction",
        {"model": "llama-3.1-8b", "gpu": "l4", "request_rate_per_s": 6, "input_tokens": 4_000, "output_tokens": 100,
         "ttft_s": 4, "tpot_s": 0.1},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "asked"), CASES.values(), ids=CASES)
def test_another_load_saves_what_it_says(client: TestClient, name: str, asked: dict[str, Any]) -> None:
    now = answer(client, "size", **asked)
    lever = next(each for each in now["levers"] if name in each["change"])
    then = answer(client, "size", **{**asked, **lever["change"]})

    assert then["gpus"] == lever["gpus"] == now["gpus"] - lever["saves_gpus"]
    assert then["cost"]["usd_per_hour"] == pytest.approx(lever["usd_per_hour"])
    assert lever["saves_usd_per_hour"] == pytest.approx(now["cost"]["usd_per_hour"] - then["cost"]["usd_per_hour"])


def test_short_prompts_and_single_gpus_have_no_such_lever(client: TestClient) -> None:
    short = answer(client, "size", model="qwen3-32b", gpu="l40s", **load(64, 1_000, 500))
    single = answer(client, "size", model="llama-3.1-8b", gpu="h100", **load(2, 16_000, 500))

    for sized in (short, single):
        assert not any("input_tokens" in lever["change"] for lever in sized["levers"])


def test_a_lever_says_what_its_times_rest_on(client: TestClient) -> None:
    """Four bits were measured on no GPU, eight on an H100: what one saves beside the other is as unsure as both."""
    asked: dict[str, Any] = {
        "model": "llama-3.1-8b", "gpu": "h100", "request_rate_per_s": 160, "input_tokens": 2_000, "output_tokens": 200,
        "ttft_s": 2, "tpot_s": 0.05,
    }  # fmt: skip
    told = answer(client, "size", **asked)
    basis = {lever["change"].get("weight_format"): lever["basis"] for lever in told["levers"]}

    assert told["latency"]["basis"] == basis["fp8"] == "measured-kernels"
    assert basis["int4"] == "roofline"
    memory = answer(client, "size", model="llama-3.3-70b", gpu="h100", **load(64, 6_000, 500))
    assert {lever["basis"] for lever in memory["levers"]} == {None}
