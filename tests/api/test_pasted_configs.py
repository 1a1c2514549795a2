"""Pasted configs that once stopped the process or broke the answer: each is refused by name, at once."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from service.questions.examples import LLAMA_CONFIG

LOAD: dict[str, Any] = {"gpu": "h100", "concurrent_requests": 8, "input_tokens": 1000, "output_tokens": 200}
QUANTIZATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "a repetition without bounds": ({"ignored_layers": ["re:a{99999999999999999999}"]}, "ignored_layers"),
    "5,000 nested groups": ({"ignored_layers": ["re:" + "(" * 5_000 + ")" * 5_000]}, "ignored_layers"),
    "blocks of nothing": ({"weight_block_size": [0]}, "weight_block_size"),
    "blocks of less than nothing": ({"weight_block_size": [-1, 5]}, "weight_block_size"),
}


def asked(client: TestClient, config: dict[str, Any]) -> Any:
    return client.post("/size", json={"model_config": config, **LOAD})


@pytest.mark.parametrize(("stated", "field"), QUANTIZATIONS.values(), ids=QUANTIZATIONS)
def test_a_quantization_that_cannot_be_is_refused_by_name(
    client: TestClient, stated: dict[str, Any], field: str
) -> None:
    response = asked(client, {**LLAMA_CONFIG, "quantization_config": {"quant_method": "fp8", **stated}})

    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["errors"][0]["field"] == f"model_config.quantization_config.{field}"


def test_an_expression_that_explodes_by_backtracking_is_answered(client: TestClient) -> None:
    """Over HTTP: a backtracking engine would not come back at all."""
    stated = {"quant_method": "fp8", "ignored_layers": ["re:([a-z0-9_.]+)+!"]}

    response = asked(client, {**LLAMA_CONFIG, "quantization_config": stated})

    assert response.status_code == 200
    assert response.json()["weight_format"] == "fp8"


def test_a_pattern_of_more_layers_than_any_model_has_is_refused(client: TestClient) -> None:
    nemotron = {
        **LLAMA_CONFIG,
        "architectures": ["NemotronHForCausalLM"],
        "mamba_num_heads": 128,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
        "n_groups": 8,
        "conv_kernel": 4,
        "hybrid_override_pattern": "M" * 100_000,
    }

    response = asked(client, nemotron)

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "model_config.hybrid_override_pattern"
