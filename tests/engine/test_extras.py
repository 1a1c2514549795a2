"""Stated extras: drafts, adapters, cached prefixes. Unset means off."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from service.engine.drafting import tokens_per_step

ASKED = {"model": "llama-3.1-8b", "gpu": "h100", "input_tokens": 1_000, "output_tokens": 200, "concurrent_requests": 4}


def answered(client: TestClient, **extra: Any) -> dict[str, Any]:
    response = client.post("/size", json={**ASKED, **extra})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


@pytest.mark.parametrize(
    ("drafted", "accepted", "tokens"),
    [(0, 0.7, 1.0), (3, 0.0, 1.0), (3, 1.0, 4.0), (1, 0.5, 1.5), (2, 0.5, 1.75)],  # 1 + a + a^2 + ... by hand
)
def test_tokens_of_a_step(drafted: int, accepted: float, tokens: float) -> None:
    assert tokens_per_step(drafted, accepted) == pytest.approx(tokens)


@given(st.integers(1, 16), st.floats(0, 1), st.floats(0, 1))
def test_more_accepted_drafts_are_more_tokens(drafted: int, one: float, other: float) -> None:
    low, high = sorted((one, other))

    assert 1 <= tokens_per_step(drafted, low) <= tokens_per_step(drafted, high) + 1e-9 <= drafted + 1 + 1e-6


def test_drafts_quicken_few_users_and_take_a_layer_of_memory(client: TestClient) -> None:
    plain = answered(client)
    drafted = answered(client, num_speculative_tokens=3, speculative_acceptance_fraction=0.7)

    assert drafted["latency"]["tpot_s"]["mean"] < 0.7 * plain["latency"]["tpot_s"]["mean"]
    assert drafted["kv_cache"]["bytes_per_token"] * 32 == plain["kv_cache"]["bytes_per_token"] * 33  # 32 layers and one
    assert drafted["memory_per_gpu"]["weight_bytes"] > plain["memory_per_gpu"]["weight_bytes"]
    assert any("drafter" in warning for warning in drafted["warnings"])


def test_rejected_drafts_slow_everybody_down(client: TestClient) -> None:
    plain = answered(client)
    useless = answered(client, num_speculative_tokens=3, speculative_acceptance_fraction=0)

    assert useless["latency"]["tpot_s"]["mean"] > plain["latency"]["tpot_s"]["mean"]


@pytest.mark.parametrize("extra", [{"num_speculative_tokens": 2}, {"speculative_acceptance_fraction": 0.5}])
def test_drafts_and_their_acceptance_go_together(client: TestClient, extra: dict[str, Any]) -> None:
    response = client.post("/size", json={**ASKED, **extra})

    assert response.status_code == 422
    assert "go together" in response.text


def test_adapters_take_the_engines_buffers(client: TestClient) -> None:
    # Llama 3.1 8B: per layer, fused query-key-value 3 x 4096 + 6144, output 4096 + 4096, gate and up
    # 2 x 4096 + 28672, down 14336 + 4096; by vLLM's create_lora_weights, worked out by hand.
    sides = (3 * 4096 + 6144) + (4096 + 4096) + (2 * 4096 + 28672) + (14336 + 4096)
    plain = answered(client)
    adapted = answered(client, max_loras=4, max_lora_rank=32)

    taken = adapted["memory_per_gpu"]["weight_bytes"] - plain["memory_per_gpu"]["weight_bytes"]
    assert taken == 4 * 32 * 2 * 32 * sides
    assert "--enable-lora" in adapted["engine_args"]


def test_adapters_of_experts_are_refused(client: TestClient) -> None:
    response = client.post("/size", json={**ASKED, "model": "gpt-oss-20b", "max_loras": 2})

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "max_loras"
