"""Bad input gets a clear answer: which field, and what would be accepted. Never a 5xx."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.questions.examples import LLAMA_CONFIG
from tests.conftest import API_KEY

GOOD: dict[str, Any] = {
    "model": "llama-3.3-70b",
    "gpu": "h100",
    "concurrent_requests": 64,
    "input_tokens": 5500,
    "output_tokens": 500,
}
JSON = {"content-type": "application/json"}


def problem(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document["status"] == status
    assert document["type"].startswith("/problems/")
    return document


@pytest.mark.parametrize(
    ("field", "value", "accepted"),
    [
        ("gpu_memory_utilization", 7, "at most 1"),
        ("gpu_memory_utilization", 90, "90 % is 0.9"),
        ("gpu_memory_utilization", 0, "more than 0"),
        ("input_tokens", -5, "at least 1"),
        ("input_tokens", "many", "a whole number"),
        ("input_tokens", 1.5, "a whole number"),
        ("output_tokens", 10**30, "at most"),
        ("weight_format", "fp7", "'bf16'"),
        ("engine", "llama.cpp", "'vllm'"),
        ("format", "xml", "'json'"),
        ("percentile", 100, "less than 100"),
        ("block_size", 17, "16"),
        ("input_tokens", "1_000", "a whole number"),
        ("ttft_s", "1_0.5", "a number"),
        ("request_rate_per_s", 5e-324, "at least 4e-07"),
        ("request_rate_per_s", 1e-13, "at least 4e-07"),
        ("expert_parallel", "perhaps", "true or false"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_value_out_of_range_names_the_field_and_the_range(
    client: TestClient, method: str, field: str, value: Any, accepted: str
) -> None:
    question = {**GOOD, field: value}

    response = client.get("/size", params=question) if method == "GET" else client.post("/size", json=question)

    errors = problem(response, 422)["errors"]
    assert errors[0]["field"] == field
    assert accepted in errors[0]["accepted"]


@pytest.mark.parametrize(
    ("field", "value", "suggestion"),
    [("model", "llama-9", "llama-"), ("gpu", "h10", "h100-sxm-80gb"), ("model", "qwen3-33b", "qwen3-32b")],
)
def test_an_unknown_name_gets_suggestions(client: TestClient, field: str, value: str, suggestion: str) -> None:
    document = problem(client.get("/size", params={**GOOD, field: value}), 404)

    assert "did you mean" in document["detail"]
    assert suggestion in document["errors"][0]["accepted"]
    assert document["errors"][0]["field"] == field


@pytest.mark.parametrize(
    ("field", "value", "accepted"),
    [
        ("concurrent_requests", True, "a whole number"),
        ("ttft_s", True, "a number"),
        ("max_loras", False, "a whole number"),
        ("block_size", True, "16"),
        ("max_lora_rank", True, "16"),
    ],
)
def test_a_boolean_is_no_number(client: TestClient, field: str, value: object, accepted: str) -> None:
    error = problem(client.post("/size", json={**GOOD, field: value}), 422)["errors"][0]

    assert error["field"] == field
    assert accepted in error["accepted"]


@pytest.mark.parametrize(
    ("asked", "field", "suggestion"),
    [
        ({"gpus": ["h100", "h10"]}, "gpus", "h100-sxm-80gb"),
        ({"exclude_gpus": ["h10"]}, "exclude_gpus", "h100-sxm-80gb"),
        ({"model": "llama-9"}, "model", "llama-"),
    ],
)
def test_the_field_of_an_unknown_name_is_the_one_that_was_asked(
    client: TestClient, asked: dict[str, Any], field: str, suggestion: str
) -> None:
    question = {key: value for key, value in GOOD.items() if key != "gpu"}

    error = problem(client.post("/recommend", json={**question, **asked}), 404)["errors"][0]

    assert error["field"] == field
    assert suggestion in error["accepted"]


@pytest.mark.parametrize("value", [[""], "", ["h100", " "], "h100,,l40s"])
def test_a_blank_name_is_not_every_gpu(client: TestClient, value: object) -> None:
    question = {key: value for key, value in GOOD.items() if key != "gpu"}

    error = problem(client.post("/recommend", json={**question, "gpus": value}), 422)["errors"][0]

    assert error["field"] == "gpus"
    assert error["detail"].startswith("value ")
    assert error["accepted"] == "text of at least 1 character"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_misspelt_field_is_not_a_default(client: TestClient, method: str) -> None:
    question = {**GOOD, "max_model_length": 8192}

    response = client.get("/size", params=question) if method == "GET" else client.post("/size", json=question)

    error = problem(response, 422)["errors"][0]
    assert error["field"] == "max_model_length"
    assert "max_model_len" in error["accepted"]


@pytest.mark.parametrize(
    ("path", "field", "value", "accepted"),
    [
        ("/size", "model", "", "at least 1 character"),
        ("/size", "spare_replicas", "\ud83d", "UTF-8"),
        ("/recommend", "gpus", 5, "a list"),
        ("/recommend", "kv_cache_dtypes", ["auto"] * 5, "at most 4"),
    ],
)
def test_every_broken_rule_says_what_is_accepted(
    client: TestClient, path: str, field: str, value: Any, accepted: str
) -> None:
    body = json.dumps({**GOOD, field: value} if path == "/size" else {field: value})

    errors = problem(client.post(path, content=body, headers=JSON), 422)["errors"]

    assert accepted in next(it["accepted"] for it in errors if it["field"] == field)


def test_a_field_of_bodies_is_not_suggested_in_a_query_string(client: TestClient) -> None:
    error = problem(client.get("/size", params={**GOOD, "model_config": "{}"}), 422)["errors"][0]

    assert error["field"] == "model_config"
    assert "POST" in error["accepted"]


def test_a_field_stated_twice_is_not_half_ignored(client: TestClient) -> None:
    response = client.get("/size", params=[*GOOD.items(), ("gpu", "h200")])

    error = problem(response, 422)["errors"][0]
    assert (error["field"], error["accepted"]) == ("gpu", "one value")


def test_a_name_that_nobody_reads_is_told_as_such_however_often_it_is_stated(client: TestClient) -> None:
    """Stated once it was unknown, and twice it was said to take one value."""
    asked = "model=llama-3.1-8b&gpu=h100&contexts=4096&contexts=8192&gpu_count=x"
    errors = problem(client.get(f"/capacity?{asked}"), 422)["errors"]

    assert [(error["field"], error["accepted"]) for error in errors] == [
        ("contexts", "did you mean max_model_len?"),
        ("gpu_count", "a whole number such as 1000"),
    ]


@pytest.mark.parametrize(("spread", "accepted"), [(8, "1 to 4"), (3, "a divisor of 32")])
def test_a_spread_cache_that_no_layout_has_is_named(client: TestClient, spread: int, accepted: str) -> None:
    """Llama 3.3 70B has 8 key-value heads, which vLLM wants replicated before it spreads the tokens of one."""
    error = problem(client.get("/size", params={**GOOD, "decode_context_parallel_size": spread}), 422)["errors"][0]

    assert (error["field"], error["accepted"]) == ("decode_context_parallel_size", accepted)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"gpu": "h100", "gpu": "h200"}', "gpu"),
        ('{"gpu": "h100", "model_config": {"hidden_size": 1, "hidden_size": 2}}', "hidden_size"),
    ],
)
def test_json_that_states_a_name_twice_is_not_half_ignored(client: TestClient, body: str, field: str) -> None:
    document = problem(client.post("/size", content=body, headers=JSON), 422)

    assert document["detail"] == "stated more than once"
    assert [(error["field"], error["accepted"]) for error in document["errors"]] == [(field, "one value")]


def test_a_page_of_a_list_is_stated_once(client: TestClient) -> None:
    response = client.get("/catalog/gpus", params=[("page_size", "1"), ("page_size", "2")])

    assert problem(response, 422)["errors"][0]["field"] == "page_size"


@pytest.mark.parametrize(
    "unknown",
    [
        {f"k{number}": 1 for number in range(80_000)},
        {"\U0001f600" * 90 + str(number): 1 for number in range(100)},
        {"x" * 100_000: 1},
    ],
    ids=["very many", "wide", "long"],
)
def test_unknown_fields_are_refused_briefly(client: TestClient, unknown: dict[str, int]) -> None:
    response = client.post("/size", json=unknown)

    document = problem(response, 422)
    assert len(response.content) <= 8192
    assert document["errors"]
    assert len(document["errors"]) <= 20


def test_every_name_there_is_is_listed_once(client: TestClient) -> None:
    errors = problem(client.get("/size", params={**GOOD, "xyzzy": 1, "plugh": 2}), 422)["errors"]

    assert [error["field"] for error in errors] == ["xyzzy", "plugh"]
    assert "decode_context_parallel_size" in errors[0]["accepted"]
    assert errors[1]["accepted"] == "one of the names above"


def test_lists_may_be_repeated(client: TestClient) -> None:
    question = {key: value for key, value in GOOD.items() if key != "gpu"}

    response = client.get("/recommend", params=[*question.items(), ("gpus", "h100"), ("gpus", "h200")])

    assert {option["gpu"] for option in response.json()["options"]} == {"h100-sxm-80gb", "h200-sxm-141gb"}


def test_a_query_string_beside_a_body_is_not_ignored(client: TestClient) -> None:
    error = problem(client.post("/size", params={"ttft_s": 1}, json=GOOD), 422)["errors"][0]

    assert error["field"] == "ttft_s"
    assert "body" in error["accepted"]


def test_an_empty_choice_of_gpus_names_the_list(client: TestClient) -> None:
    question = {key: value for key, value in GOOD.items() if key != "gpu"} | {"gpus": "h100", "exclude_gpus": "h100"}

    assert problem(client.get("/recommend", params=question), 422)["errors"][0]["field"] == "exclude_gpus"


def test_a_catalog_list_says_what_it_reads(client: TestClient) -> None:
    error = problem(client.get("/catalog/gpus", params={"limit": 1}), 422)["errors"][0]

    assert "page_size" in error["accepted"]


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        ("/size", ["model", "gpu", "concurrent_requests", "input_tokens", "output_tokens"]),
        ("/capacity", ["model", "gpu"]),
        ("/recommend", ["model", "concurrent_requests", "input_tokens", "output_tokens"]),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_everything_that_is_missing_is_named_at_once(
    client: TestClient, method: str, path: str, missing: list[str]
) -> None:
    response = client.get(path) if method == "GET" else client.post(path, json={})

    errors = problem(response, 422)["errors"]
    assert [error["field"] for error in errors] == missing
    assert all(error["accepted"] for error in errors)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"request_rate_per_s": 3}, "concurrent_requests"),
        ({"concurrent_requests": None}, "concurrent_requests"),
        ({"length_variation_fraction": 2}, "length_variation_fraction"),
        ({"request_duration_s": 5}, "request_duration_s"),
        ({"burstiness": 0.5}, "burstiness"),
        ({"model": None}, "model"),
        ({"model_config": {"architectures": ["LlamaForCausalLM"]}}, "model"),
        ({"max_model_len": 10**8}, "max_model_len"),
        ({"max_model_len": 4096}, "max_model_len"),
        ({"input_tokens": 200_000}, "input_tokens"),
        ({"weight_bytes": 10**9}, "weight_bytes"),
        ({"engine_version": "0.1"}, "engine_version"),
        ({"engine_version": "latest"}, "engine_version"),
    ],
)
def test_contradictions_name_a_field(client: TestClient, change: dict[str, Any], field: str) -> None:
    error = problem(client.post("/size", json={**GOOD, **change}), 422)["errors"][0]

    assert error["field"] == field
    assert error["accepted"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"[]", 422),
        (b"null", 422),
        (b'"text"', 422),
        (b'{"model": NaN}', 422),
        (json.dumps(GOOD).replace("64", "NaN").encode(), 422),
        (json.dumps(GOOD).replace("64", "Infinity").encode(), 422),
        (json.dumps(GOOD).replace("64", "1e999").encode(), 422),
        (json.dumps(GOOD).replace("64", "9" * 4000).encode(), 422),
        (json.dumps(GOOD).replace("64", "9" * 5000).encode(), 400),
        (b"\xff\xfe{}", 400),
        (b"[" * 100_000, 400),
        (json.dumps({**GOOD, "model": "a\u0000b"}).encode(), 422),
        (json.dumps({**GOOD, "gpu": "\ud800"}).encode(), 422),
        (b'{"model": "' + b"x" * 6_000_000 + b'"}', 413),
    ],
    ids=[
        "empty", "broken", "list", "null", "text", "NaN", "NaN count", "Infinity", "overflow", "huge integer",
        "endless integer", "not UTF-8", "deep", "NUL", "half a surrogate pair", "too large",
    ],
)  # fmt: skip
def test_unreadable_bodies_are_refused(client: TestClient, body: bytes, status: int) -> None:
    response = client.post("/size", content=body, headers=JSON)

    problem(response, status)
    assert len(response.content) < 20_000
    assert all(fault["accepted"] for fault in response.json()["errors"])
    assert response.json()["errors"]


def test_a_body_without_a_length_is_capped_too(client: TestClient) -> None:
    response = client.post("/size", content=(b"x" * 100_000 for _ in range(60)), headers=JSON)

    problem(response, 413)


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_stated_length_above_the_cap_is_refused_before_reading(client: TestClient, method: str) -> None:
    response = client.request(method, "/size", headers={**JSON, "content-length": "9" * 12})

    assert "5242880 bytes" in problem(response, 413)["detail"]


def test_a_catalog_write_is_capped_too(client: TestClient) -> None:
    headers = {**JSON, "x-api-key": API_KEY}
    response = client.put("/catalog/gpus/x", content=(b"x" * 100_000 for _ in range(60)), headers=headers)

    problem(response, 413)


def test_a_form_is_told_how_to_ask(client: TestClient) -> None:
    document = problem(client.post("/size", data={"model": "x"}), 415)

    assert "content-type: application/json" in document["detail"]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/size", {"GET", "HEAD", "POST"}),
        ("/catalog/gpus", {"GET", "HEAD"}),
        ("/catalog/gpus/h100-sxm-80gb", {"DELETE", "GET", "HEAD", "PUT"}),
        ("/catalog/models/llama-3.1-8b", {"DELETE", "GET", "HEAD", "PUT"}),
        ("/livez", {"GET", "HEAD"}),
    ],
)
def test_an_unknown_method_is_told_every_method(client: TestClient, path: str, allowed: set[str]) -> None:
    response = client.patch(path, json={})

    problem(response, 405)
    assert set(response.headers["allow"].split(", ")) == allowed


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/sizes", "/size"),
        ("/size/", "/size"),
        ("/SIZE", "/size"),
        ("/capasity", "/capacity"),
        ("/healthz", "/livez"),
        ("/catalog/gpu", "/catalog/gpus"),
        ("/size:bacth", "/size:batch"),
    ],
)
def test_an_unknown_path_is_told_the_one_that_was_meant(client: TestClient, path: str, meant: str) -> None:
    assert problem(client.get(path), 404)["errors"][0]["accepted"] == f"did you mean {meant}?"


@pytest.mark.parametrize("path", ["/plan", "/schedule", "/v1/plan/", "/api/schedule"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_fleet_and_a_day_are_told_how_they_are_asked(client: TestClient, path: str, method: str) -> None:
    accepted = problem(client.request(method, path, json={} if method == "POST" else None), 404)["errors"][0][
        "accepted"
    ]

    assert "POST /size:batch" in accepted


def test_a_path_like_no_other_is_told_where_all_of_them_are(client: TestClient) -> None:
    document = problem(client.get("/favicon.ico"), 404)

    assert "/docs" in document["detail"]
    assert document["errors"] == []


def test_a_compressed_body_is_told_which_coding_is_taken(client: TestClient) -> None:
    response = client.post("/size", content=b"x", headers={**JSON, "content-encoding": "gzip"})

    assert problem(response, 415)["errors"][0]["field"] == "content-encoding"
    assert response.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"architectures": []},
        {"architectures": ["NoSuchForCausalLM"]},
        {"architectures": ["LlamaForCausalLM"]},
        {"architectures": ["LlamaForCausalLM"], "hidden_size": -1},
        {"architectures": ["Qwen3NextForCausalLM"], "hidden_size": 64, "num_hidden_layers": 4},
        {"architectures": ["DeepseekV4ForCausalLM"], "hidden_size": 64},
    ],
)
def test_a_config_that_cannot_be_sized_names_the_field(client: TestClient, config: dict[str, Any]) -> None:
    question = {**{key: value for key, value in GOOD.items() if key != "model"}, "model_config": config}

    error = problem(client.post("/size", json=question), 422)["errors"][0]

    assert error["field"].startswith("model_config.")
    assert error["accepted"]


@pytest.mark.parametrize(
    ("change", "accepted"),
    [({"quantization_config": "fp8"}, "an object"), ({"vocab_size": 10**18}, "a whole number from 0 to 1099511627776")],
)
def test_a_config_field_is_neither_ignored_nor_misexplained(
    client: TestClient, change: dict[str, Any], accepted: str
) -> None:
    question = {key: value for key, value in GOOD.items() if key != "model"} | {
        "model_config": {**LLAMA_CONFIG, **change}
    }

    error = problem(client.post("/size", json=question), 422)["errors"][0]

    assert (error["field"], error["accepted"]) == (f"model_config.{next(iter(change))}", accepted)


def test_an_unknown_layer_type_is_refused_by_name(client: TestClient) -> None:
    config = {
        "architectures": ["Qwen3NextForCausalLM"],
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "vocab_size": 100,
        "linear_num_key_heads": 1,
        "linear_num_value_heads": 1,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "layer_types": ["quantum_attention"],
    }
    question = {**{key: value for key, value in GOOD.items() if key != "model"}, "model_config": config}

    document = problem(client.post("/size", json=question), 422)

    assert "quantum_attention" in document["detail"]


def test_nothing_that_was_sent_comes_back_at_length(client: TestClient) -> None:
    response = client.get("/size", params={**GOOD, "model": "x" * 150})

    assert "x" * 120 not in response.text


@pytest.mark.parametrize("path", ["/size", "/catalog/gpus/h10", "/nowhere"])
def test_a_problem_is_not_kept_by_anybody(client: TestClient, path: str) -> None:
    assert client.get(path).headers["cache-control"] == "no-store"


def test_a_missing_key_is_challenged(client: TestClient) -> None:
    for headers in ({}, {"X-API-Key": "wrong"}):
        response = client.delete("/catalog/gpus/h100-sxm-80gb", headers=headers)

        problem(response, 401)
        assert response.headers["www-authenticate"] == "APIKey"
