"""GET and POST give the same bytes; formats; machine-read numbers."""

import csv
import io
import json
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from service.questions.examples import LLAMA_CONFIG

SIZE: dict[str, Any] = {
    "model": "llama-3.3-70b",
    "gpu": "h100",
    "concurrent_requests": 64,
    "input_tokens": 5500,
    "output_tokens": 500,
}
CAPACITY: dict[str, Any] = {
    "model": "qwen2.5-7b",
    "gpu": "h100",
    "gpu_count": 2,
    "input_tokens": 1000,
    "output_tokens": 200,
}
RECOMMEND: dict[str, Any] = {
    "model": "qwen3-32b",
    "concurrent_requests": 32,
    "input_tokens": 2000,
    "output_tokens": 500,
    "limit": 5,
}
INFEASIBLE: dict[str, Any] = {
    "model": "llama-3.1-405b-instruct",
    "gpu": "t4",
    "tensor_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "concurrent_requests": 1,
    "input_tokens": 9,
    "output_tokens": 9,
}


@pytest.mark.parametrize(("path", "question"), [("/size", SIZE), ("/capacity", CAPACITY), ("/recommend", RECOMMEND)])
def test_get_and_post_answer_with_the_same_bytes(client: TestClient, path: str, question: dict[str, Any]) -> None:
    by_get = client.get(path, params=question)
    by_post = client.post(path, json=question)

    assert by_get.status_code == 200, by_get.text
    assert by_get.content == by_post.content
    assert client.get(path, params=question).content == by_get.content


def test_names_are_found_in_any_case_and_by_hub_id(client: TestClient) -> None:
    by_alias = client.get("/size", params={**SIZE, "model": "LLAMA-3.3-70B", "gpu": "H100"})
    by_hub_id = client.get("/size", params={**SIZE, "model": "meta-llama/Llama-3.3-70B-Instruct"})

    assert by_alias.content == by_hub_id.content


def test_the_answer_has_the_blocks_of_the_contract(client: TestClient) -> None:
    answer = client.get("/size", params=SIZE).json()

    assert set(answer) >= {
        "feasible", "gpus", "replicas", "gpus_per_replica", "model", "gpu", "engine", "weight_format", "kv_cache_dtype",
        "layout", "binding_constraint", "memory_per_gpu", "kv_cache", "per_replica", "latency", "saturation",
        "one_gpu_step_less", "one_gpu_step_more", "levers", "cost", "engine_args", "assumptions", "warnings",
        "catalog_revision", "rules_version",
    }  # fmt: skip
    assert set(answer["latency"]) >= {"ttft_s", "tpot_s", "end_to_end_s", "basis", "expected_error_fraction"}
    assert 0 < answer["latency"]["ttft_s"]["p50"] <= answer["latency"]["ttft_s"]["p95"]
    assert answer["catalog_revision"] == 1
    assert answer["cost"]["as_of"] <= "2026-12-31"
    assert "--tensor-parallel-size" in answer["engine_args"]


def test_a_config_may_be_pasted(client: TestClient) -> None:
    question = {key: value for key, value in SIZE.items() if key != "model"}

    pasted = client.post("/size", json={**question, "model_config": LLAMA_CONFIG}).json()
    named = client.post("/size", json={**question, "model": "llama-3.1-8b"}).json()

    assert pasted["model"] == "pasted-config"
    assert pasted["memory_per_gpu"] == named["memory_per_gpu"]
    assert pasted["gpus"] == named["gpus"]


def test_stated_weight_bytes_replace_the_derived_ones(client: TestClient) -> None:
    question = {key: value for key, value in SIZE.items() if key != "model"}

    answer = client.post(
        "/size", json={**question, "model_config": LLAMA_CONFIG, "weight_bytes": 20_000_000_000}
    ).json()

    assert answer["weights"]["weight_bytes"] == 20_000_000_000


def test_stated_parameters_are_counted_in_the_checkpoint_s_format(client: TestClient) -> None:
    question = {key: value for key, value in SIZE.items() if key != "model"}

    answer = client.post("/size", json={**question, "model_config": LLAMA_CONFIG, "num_parameters": 10**10}).json()

    assert answer["weights"]["weight_bytes"] == 2 * 10**10


def test_one_field_comes_as_plain_text(client: TestClient) -> None:
    response = client.get("/size", params={**SIZE, "field": "gpus"})

    assert response.headers["content-type"].startswith("text/plain")
    assert int(response.text) == client.get("/size", params=SIZE).json()["gpus"]
    assert client.get("/size", params={**SIZE, "field": "kv_cache.block_size"}).text == "16\n"


@pytest.mark.parametrize("field", ["no_such", "kv_cache", "levers", "cost.nothing", "pools", "pools.decode_replicas"])
def test_a_field_that_is_not_one_number_is_refused(client: TestClient, field: str) -> None:
    response = client.get("/size", params={**SIZE, "field": field})

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "field"
    assert response.json()["errors"][0]["accepted"]


def test_csv_yaml_text_and_gauges(client: TestClient) -> None:
    as_json = client.get("/size", params=SIZE).json()

    rows = list(csv.DictReader(io.StringIO(client.get("/size", params={**SIZE, "format": "csv"}).text)))
    document = yaml.safe_load(client.get("/size", params={**SIZE, "format": "yaml"}).text)
    lines = client.get("/size", params={**SIZE, "format": "text"}).text
    gauges = client.get("/size", params={**SIZE, "format": "prometheus"})

    assert rows[0]["gpus"] == str(as_json["gpus"])
    assert document == as_json
    assert f"{as_json['gpus']} x h100-sxm-80gb" in lines
    assert f"command: {as_json['command']}\n" in lines
    assert gauges.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert gauges.text.endswith("\n")
    read = {family.name: family.samples[0] for family in text_string_to_metric_families(gauges.text)}
    assert read["sizer_gpus"].value == as_json["gpus"]
    labels = read["sizer_gpus"].labels
    assert (labels["model"], labels["gpu"]) == ("llama-3.3-70b-instruct", "h100-sxm-80gb")
    assert labels["workload"]  # so that two questions never collide
    assert read["sizer_memory_per_gpu_total_bytes"].value == as_json["memory_per_gpu"]["total_bytes"]


def test_csv_of_options_is_flat(client: TestClient) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get("/recommend", params={**RECOMMEND, "format": "csv"}).text)))

    assert [row["rank"] for row in rows] == [str(rank) for rank in range(1, len(rows) + 1)]
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row.values())


@pytest.mark.parametrize("how", [{"field": "gpus"}, {"format": "prometheus"}])
def test_a_machine_never_reads_zero_for_an_infeasible_question(client: TestClient, how: dict[str, str]) -> None:
    person = client.get("/size", params=INFEASIBLE)
    machine = client.get("/size", params={**INFEASIBLE, **how})

    assert person.status_code == 200
    assert person.json()["feasible"] is False
    assert machine.status_code == 422
    assert machine.headers["content-type"] == "application/problem+json"


def test_a_pinned_revision_is_kept_to(client: TestClient) -> None:
    assert client.get("/size", params={**SIZE, "catalog_revision": 1}).status_code == 200
    assert client.get("/size", params={**SIZE, "catalog_revision": 99}).status_code == 409


def test_recommend_puts_the_cheapest_first_and_says_why_others_are_out(client: TestClient) -> None:
    answer = client.get("/recommend", params={**RECOMMEND, "limit": 100}).json()

    prices = [option["usd_per_hour"] for option in answer["options"] if option["usd_per_hour"] is not None]
    assert prices == sorted(prices)
    assert answer["options"][0]["on_pareto_front"] is True
    assert all(option["reason"] for option in answer["rejected"])


def test_recommend_keeps_to_lists_and_budgets(client: TestClient) -> None:
    asked = {**RECOMMEND, "gpus": "h100,h200,l40s", "exclude_gpus": "h200", "max_usd_per_hour": 30, "limit": 100}

    answer = client.get("/recommend", params=asked).json()

    assert {option["gpu"] for option in answer["options"]} <= {"h100-sxm-80gb", "l40s"}
    assert all(option["usd_per_hour"] <= 30 for option in answer["options"])


def test_the_objective_gpus_puts_the_fewest_first(client: TestClient) -> None:
    options = client.get("/recommend", params={**RECOMMEND, "objective": "gpus"}).json()["options"]

    assert options[0]["gpus"] == min(option["gpus"] for option in options)


def test_the_objective_latency_puts_the_fastest_first(client: TestClient) -> None:
    asked = {**RECOMMEND, "gpus": "h100,l40s", "weight_formats": "bf16", "objective": "latency"}

    options = client.get("/recommend", params=asked).json()["options"]

    whole_s = [option["ttft_p95_s"] + (RECOMMEND["output_tokens"] - 1) * option["tpot_p95_s"] for option in options]
    assert len(options) == 2
    assert whole_s[0] < whole_s[1]
    assert options[0]["gpu"] == "h100-sxm-80gb"


@pytest.mark.parametrize(
    ("engine", "flag"), [("sglang", "--mem-fraction-static"), ("tensorrt-llm", "--max_num_tokens")]
)
def test_other_engines_have_rules_and_flags_of_their_own(client: TestClient, engine: str, flag: str) -> None:
    answer = client.get("/size", params={**SIZE, "engine": engine}).json()

    assert answer["rules_version"].startswith(engine)
    assert flag in answer["engine_args"]


def test_older_versions_have_their_own_defaults(client: TestClient) -> None:
    answer = client.get("/size", params={**SIZE, "engine_version": "0.11.0"}).json()

    listed = {it["name"]: it["value"] for it in answer["assumptions"]}
    assert listed["gpu_memory_utilization"] == 0.9


def test_health(client: TestClient) -> None:
    assert client.get("/livez").json() == {"status": "live"}
    ready = client.get("/readyz").json()
    assert ready["catalog_revision"] == 1
    assert ready["models"] >= 45


def test_docs_need_no_cdn(client: TestClient) -> None:
    page = client.get("/docs").text

    assert "://" not in page
    assert client.get("/docs/assets/swagger-ui-bundle.js").status_code == 200
    assert client.get("/docs/assets/swagger-ui.css").status_code == 200
    assert json.loads(client.get("/openapi.json").text)["info"]["title"] == "Sizer"


def assumed(client: TestClient, path: str, **change: Any) -> dict[str, tuple[Any, str]]:
    """Return value and origin of every assumption of an answer, by name."""
    question = {key: value for key, value in SIZE.items() if path != "/recommend" or key != "gpu"} | change
    stated = {key: value for key, value in question.items() if value is not None}
    response = client.get(path, params=stated)
    assert response.status_code == 200, response.text
    return {it["name"]: (it["value"], it["origin"]) for it in response.json()["assumptions"]}


def test_what_was_stated_is_not_listed_as_a_default(client: TestClient) -> None:
    listed = assumed(client, "/size", block_size=32, engine_version="0.33.0", kv_cache_memory_bytes=20_000_000_000)

    assert listed["block_size"] == (32, "request")
    assert listed["rules_version"] == ("vllm-0.33", "request")
    assert listed["kv_cache_memory_bytes"] == (20_000_000_000, "request")
    assert assumed(client, "/size")["rules_version"] == ("vllm-0.33", "default")


def test_a_capacity_lists_its_load_too(client: TestClient) -> None:
    asked = {"model": "llama-3.1-8b", "concurrent_requests": None, "request_rate_per_s": 2, "output_tokens": None}

    listed = assumed(client, "/capacity", **asked)

    assert listed["request_rate_per_s"] == (2, "request")
    assert listed["burstiness"] == (1, "default")
    assert listed["prefix_cache_hit_fraction"] == (0, "default")
    assert listed["output_tokens"] == (0, "default")


def test_a_recommendation_lists_settings_and_headroom(client: TestClient) -> None:
    drafts = {"num_speculative_tokens": 2, "speculative_acceptance_fraction": 0.5}
    asked = {"model": "llama-3.1-8b", "gpus": "h100", "max_num_seqs": 64, "max_loras": 2, **drafts}

    listed = assumed(client, "/recommend", **asked)

    assert listed["max_num_seqs"] == (64, "request")
    assert "gpu_memory_utilization" in listed["engine_settings"][0]
    assert listed["max_lora_rank"] == (16, "default")
    assert listed["speculative_method"] == ("eagle3", "default")
    assert listed["headroom_fraction"] == (0, "default")
    assert listed["spare_replicas"] == (0, "default")


def flags_and_warnings(client: TestClient, **change: Any) -> tuple[str, str]:
    """Return the engine's flags, and the warnings, each as one text."""
    response = client.post("/size", json={**SIZE, "model": "llama-3.1-8b", "input_tokens": 1000, **change})
    assert response.status_code == 200, response.text
    return " ".join(response.json()["engine_args"]), " ".join(response.json()["warnings"])


@pytest.mark.parametrize(
    ("change", "flags"),
    [
        ({"weight_format": "fp16"}, "--dtype half"),
        ({"kv_cache_dtype": "bf16"}, "--kv-cache-dtype bfloat16"),
        ({"engine": "sglang", "kv_cache_dtype": "bf16"}, "--kv-cache-dtype bf16"),
        ({"engine": "sglang", "block_size": 64}, "--page-size 64"),
        ({"engine": "sglang", "max_loras": 2}, "--enable-lora --max-loras-per-batch 2 --max-lora-rank 16"),
        ({"engine": "tensorrt-llm", "engine_version": "1.3", "kv_cache_dtype": "fp8"}, "--kv_cache_dtype fp8"),
    ],
)
def test_what_was_sized_is_in_the_flags(client: TestClient, change: dict[str, Any], flags: str) -> None:
    found, warnings = flags_and_warnings(client, **change)

    assert flags in found
    assert "no flag" not in warnings


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        ({"weight_format": "mxfp4"}, "no flag for weight_format"),
        ({"engine": "sglang", "kv_cache_memory_bytes": 20_000_000_000}, "no flag for kv_cache_memory_bytes"),
        ({"engine": "tensorrt-llm", "data_parallel_size": 2}, "no flag for data_parallel_size"),
        ({"engine": "tensorrt-llm", "max_loras": 2}, "no flag for max_loras"),
        (
            {
                "engine": "sglang",
                "speculative_method": "ngram",
                "num_speculative_tokens": 2,
                "speculative_acceptance_fraction": 0.5,
            },
            "do not name the drafter",
        ),
    ],
)
def test_what_no_flag_names_is_a_warning(client: TestClient, change: dict[str, Any], warning: str) -> None:
    assert warning in flags_and_warnings(client, **change)[1]


def test_a_pasted_checkpoint_is_loaded_as_it_is(client: TestClient) -> None:
    config = {**LLAMA_CONFIG, "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}}
    question = {key: value for key, value in SIZE.items() if key != "model"} | {"input_tokens": 1000}

    as_it_is = client.post("/size", json={**question, "model_config": config}).json()
    quantized = client.post("/size", json={**question, "model_config": LLAMA_CONFIG, "weight_format": "fp8"}).json()

    assert as_it_is["weight_format"] == "fp8"
    assert "--quantization" not in as_it_is["engine_args"]
    assert "--quantization" in quantized["engine_args"]


def test_pools_say_which_of_them_an_answer_is_of(client: TestClient) -> None:
    asked = {key: value for key, value in SIZE.items() if key != "concurrent_requests"} | {"model": "llama-3.1-8b"}
    asked |= {"request_rate_per_s": 2, "disaggregated": "true"}

    answer = client.get("/size", params=asked).json()
    lines = client.get("/size", params={**asked, "format": "text"}).text

    assert any("decode pool" in it for it in answer["warnings"])
    assert "prefill replica of TP1" in lines


def test_an_autoscaler_reads_no_zero_where_nothing_carries_the_load(client: TestClient) -> None:
    """KEDA reads a number out of the JSON of a 200 (`valueLocation`), and would scale to zero by it."""
    asked: dict[str, Any] = {
        "model": "llama-3.1-405b", "gpu": "l4", "tensor_parallel_size": 1, "request_rate_per_s": 1,
        "input_tokens": 1000, "output_tokens": 200,
    }  # fmt: skip
    told = client.get("/replicas", params=asked)
    why = client.get("/replicas", params={**asked, "format": "text"})

    assert (told.status_code, told.headers["content-type"]) == (422, "application/problem+json")
    assert told.json()["type"] == "/problems/infeasible"
    assert "format=text" in told.json()["detail"]
    assert (why.status_code, "would fit:" in why.text) == (200, True)
