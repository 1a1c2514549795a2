"""Pasted configs that once stopped the process or broke the answer: each is refused by name, at once."""

import json
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


GROUPED = {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 7}}
# What is stated, the field that is at fault, what an accepted value holds.
SILENT: dict[str, tuple[dict[str, Any], str, str]] = {
    "heads that cannot be shared alike": ({"num_key_value_heads": 7}, "num_key_value_heads", "divides 32"),
    "more shared heads than heads": ({"num_key_value_heads": 64}, "num_key_value_heads", "divides 32"),
    "uncountable heads": ({"num_attention_heads": (1 << 40) - 1, "hidden_size": 1 << 40, "head_dim": 1}, "num_key_value_heads", "divides"),
    "no dtype": ({"torch_dtype": "bananas"}, "torch_dtype", "bfloat16"),
    "a dtype by number": ({"dtype": 16}, "dtype", "bfloat16"),
    "a share of more than a head": ({"partial_rotary_factor": 1e30}, "partial_rotary_factor", "at most 1"),
    "a share in words": (
        {"rope_parameters": {"partial_rotary_factor": "half"}},
        "rope_parameters.partial_rotary_factor",
        "at most 1",
    ),
    "positions of less than nothing": (
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": -8192}},
        "rope_scaling.original_max_position_embeddings", "a whole number from 0",
    ),
    **{
        f"{method} in groups of {size}": ({"quantization_config": {"quant_method": method, "bits": 4, "group_size": size}}, "quantization_config.group_size", "32, 64 or 128")
        for method in ("awq", "gptq", "auto-round") for size in (0, 7, -2, "many", True)
    },
    "packed groups of 7": ({"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": GROUPED}}}, "quantization_config.config_groups.weights.group_size", "32, 64 or 128"),
    "NVFP4 in groups of 7": ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 7}}, "quantization_config.group_size", "16"),
}  # fmt: skip


def asked(client: TestClient, config: dict[str, Any]) -> Any:
    return client.post("/size", json={"model_config": config, **LOAD})


@pytest.mark.parametrize(("stated", "field"), QUANTIZATIONS.values(), ids=QUANTIZATIONS)
def test_a_quantization_that_cannot_be_is_refused_by_name(
    client: TestClient, stated: dict[str, Any], field: str
) -> None:
    response = asked(
        client,
        {**LLAMA_CONFIG, "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", **stated}},
    )

    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["errors"][0]["field"] == f"model_config.quantization_config.{field}"


@pytest.mark.parametrize("share", ["1e999", "-1e999", "0"])
def test_a_share_of_a_head_that_no_engine_rotates_is_refused(client: TestClient, share: str) -> None:
    """JSON has no infinity, but a number may be larger than any float."""
    body = json.dumps({"model_config": {**LLAMA_CONFIG, "partial_rotary_factor": "?"}, **LOAD}).replace('"?"', share)
    response = client.post("/size", content=body, headers={"content-type": "application/json"})

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "model_config.partial_rotary_factor"


@pytest.mark.parametrize(("stated", "field", "accepted"), SILENT.values(), ids=SILENT)
def test_what_no_engine_loads_is_refused_by_name(
    client: TestClient, stated: dict[str, Any], field: str, accepted: str
) -> None:
    response = asked(client, {**LLAMA_CONFIG, **stated})

    assert response.status_code == 422, response.json()
    [fault] = response.json()["errors"]
    assert fault["field"] == f"model_config.{field}"
    assert accepted in fault["accepted"]


@pytest.mark.parametrize(
    "stated",
    [
        {"torch_dtype": "torch.float16"},
        {"torch_dtype": "float32"},
        {"torch_dtype": None},
        {"num_key_value_heads": 32},
        {"quantization_config": {"quant_method": "gptq", "desc_act": False, "sym": True, "bits": 4, "group_size": -1}},
        {"quantization_config": {"quant_method": "awq", "zero_point": True, "w_bit": 4, "q_group_size": 64}},
    ],
)
def test_what_engines_do_load_is_sized(client: TestClient, stated: dict[str, Any]) -> None:
    assert asked(client, {**LLAMA_CONFIG, **stated}).status_code == 200


def test_a_quantization_that_no_engine_reads_is_warned_of(client: TestClient) -> None:
    """As vLLM 0.33 loads Qwen/Qwen3-32B-FP8-Static-PerTensor, by the referee's rows: in bfloat16."""
    stated = {"quant_algo": "FP8", "producer": {"name": "modelopt"}}
    read, unread = (
        asked(client, {**LLAMA_CONFIG, "quantization_config": each}).json()
        for each in ({"quant_method": "fp8", "activation_scheme": "dynamic"}, stated)
    )

    assert (read["weight_format"], unread["weight_format"]) == ("fp8", "bf16")
    assert [any("no quant_method" in each for each in answer["warnings"]) for answer in (read, unread)] == [False, True]

    refused = asked(client, {**LLAMA_CONFIG, "quantization_config": {"bits": 4, "group_size": 128}})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "model_config.quantization_config.quant_method"


def test_an_expression_that_explodes_by_backtracking_is_answered(client: TestClient) -> None:
    """Over HTTP: a backtracking engine would not come back at all."""
    stated = {"quant_method": "fp8", "activation_scheme": "dynamic", "ignored_layers": ["re:([a-z0-9_.]+)+!"]}

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


def test_stated_parameters_are_counted_in_the_format_that_is_asked(client: TestClient) -> None:
    question = {"model_config": LLAMA_CONFIG, **LOAD, "tensor_parallel_size": 1, "num_parameters": 16_000_000_000}
    counted = {
        each: client.post("/size", json={**question, "weight_format": each}).json()["memory_per_gpu"]["weight_bytes"]
        for each in ("bf16", "fp8", "int4")
    }

    assert counted == {"bf16": 32_000_000_000, "fp8": 16_000_000_000, "int4": 8_000_000_000}


def test_stated_bytes_of_another_format_are_told(client: TestClient) -> None:
    question = {"model_config": LLAMA_CONFIG, **LOAD, "weight_bytes": 20_000_000_000}
    own, other = (client.post("/size", json={**question, "weight_format": each}).json() for each in ("bf16", "fp8"))
    told = "weight_bytes is counted as stated, in fp8 too, where the config is of bf16"

    assert any(warning.startswith(told) for warning in other["warnings"])
    assert not any("weight_bytes" in warning for warning in own["warnings"])


@pytest.mark.parametrize(
    ("stated", "counted"),
    [
        ({"weight_bytes": 16}, "come to 160"),  # GB under the name of bytes
        ({"weight_bytes": 141_000_000_000}, "come to 160"),  # of another model
        ({"num_parameters": 8}, "come to 8030261248"),  # Llama 3.1 8B, as its repository counts its safetensors
    ],
)
def test_a_figure_far_from_what_the_config_says_is_told(
    client: TestClient, stated: dict[str, int], counted: str
) -> None:
    [(field, value)] = stated.items()
    answer = client.post("/size", json={"model_config": LLAMA_CONFIG, **LOAD, **stated}).json()

    told = [warning for warning in answer["warnings"] if warning.startswith(f"{field} is {value}, ")]
    assert len(told) == 1
    assert counted in told[0]
