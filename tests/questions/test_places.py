"""A field inside a pasted config is named by its whole path, where one level alone states it."""

from typing import Any

import pytest
from starlette.testclient import TestClient

PLAIN: dict[str, Any] = {
    "model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 4, "intermediate_size": 2048, "vocab_size": 1000, "head_dim": 128,
}  # fmt: skip
ROUND = {"architectures": ["Gemma3ForConditionalGeneration"]}
GROUPS = {"g": {"weights": {"num_bits": "x"}, "targets": ["Linear"]}}
TEXT = {**PLAIN, "num_attention_heads": "x"}


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (
            {
                **PLAIN,
                "architectures": ["Qwen3ForCausalLM"],
                "quantization_config": {"quant_method": "compressed-tensors", "config_groups": GROUPS},
            },
            "quantization_config.config_groups.g.weights.num_bits",
        ),
        ({**ROUND, "text_config": TEXT}, "text_config.num_attention_heads"),
        ({**ROUND, "text_config": TEXT, "vision_config": {"num_attention_heads": 2}}, "num_attention_heads"),
        ({**TEXT, "architectures": ["Qwen3ForCausalLM"]}, "num_attention_heads"),
    ],
    ids=["of a group", "of the text", "of two levels", "at the top"],
)
def test_the_path_of_a_field_is_told(client: TestClient, config: dict[str, Any], field: str) -> None:
    asked = {"model_config": config, "gpu": "h100", "concurrent_requests": 1, "input_tokens": 9, "output_tokens": 9}
    refused = client.post("/size", json=asked)

    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == [f"model_config.{field}"]
