"""Questions that buyers, operators and autoscalers asked and were answered wrongly once, each with what is true."""

import csv
import io
import re
from itertools import pairwise
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.engine.answers.test_decision import answer, load


def assumed(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(note for note in document["assumptions"] if note["name"] == name)


def test_the_context_served_is_near_the_lengths_asked_for(client: TestClient) -> None:
    for model, gpu, most in (("llama-4-scout", "h100", 8_192), ("gpt-oss-120b", "h100", 8_192)):
        sized = answer(client, "size", model=model, gpu=gpu, **load(8, 2000, 500))
        assert 2_500 <= assumed(sized, "max_model_len")["value"] <= most


def test_gpus_without_bfloat16_say_so_in_the_command(client: TestClient) -> None:
    for gpu in ("v100", "t4", "rtx-2080-ti"):
        sized = answer(client, "size", model="llama-3.1-8b", gpu=gpu, **load(2, 500, 100))
        assert "--dtype half" in sized["command"]
        assert sized["weight_format"] == "fp16"
        listed = answer(client, "recommend", model="llama-3.1-8b", gpus=gpu, objective="gpus", **load(2, 500, 100))
        [option] = listed["options"]
        counts = {each["weight_format"]: each["gpus"] for each in (option, *option["alternatives"])}
        assert counts["fp16"] == sized["gpus"]


def test_the_command_names_the_checkpoint_that_was_sized(client: TestClient) -> None:
    sized = answer(client, "size", model="llama-3.3-70b", gpu="h100", weight_format="fp8", **load(64, 5500, 500))

    assert sized["command"].startswith("vllm serve nvidia/Llama-3.3-70B-Instruct-FP8 ")


@pytest.mark.parametrize(
    ("asked", "loaded"),
    [
        ({"gpu": "t4"}, "microsoft/phi-4"),  # no bfloat16: the engine makes float16 of it
        ({"gpu": "h100", "quantization": "fp8"}, "microsoft/phi-4"),  # made while it loads
    ],
)
def test_every_text_names_the_checkpoint_that_its_command_loads(
    client: TestClient, asked: dict[str, str], loaded: str
) -> None:
    params: dict[str, Any] = {"model": "phi-4", **asked, **load(2, 500, 100), "format": "text"}
    for path in ("/size", "/replicas"):
        lines = client.get(path, params=params).text.splitlines()
        assert f"checkpoint: {loaded}" in lines
        assert any(line.startswith(f"command: vllm serve {loaded} ") for line in lines)


def test_a_list_and_a_grid_as_text_name_checkpoints(client: TestClient) -> None:
    text: dict[str, Any] = {"model": "phi-4", "gpus": "t4", **load(2, 500, 100), "format": "text"}
    listed = client.get("/recommend", params=text).text.splitlines()
    lists: dict[str, Any] = {
        "models": "phi-4,qwen3-14b",
        "gpus": "t4",
        "context_tokens": 32768,
        "gpu_counts": 4,
        "format": "text",
    }
    too_long, held, *_ = client.get("/compare", params=lists).text.splitlines()

    assert " microsoft/phi-4 " in listed[listed.index("command of 1:") + 1]
    assert too_long.startswith("phi-4 on t4, 32768 tokens: ")
    assert held.endswith(", Qwen/Qwen3-14B")


def test_tables_hold_warnings_and_truths_as_json_writes_them(client: TestClient) -> None:
    """A cell that is `True` is a text to most readers, and a price list of nine weeks ago is told in every format."""
    asked: dict[str, Any] = {"model": "phi-4", **load(2, 500, 100)}
    sized, listed = answer(client, "size", **asked, gpu="t4"), answer(client, "recommend", **asked, gpus="t4")
    told = {"size": sized["warnings"], "recommend": listed["options"][0]["warnings"]}
    for path, warnings in told.items():
        gpu = {"size": "gpu", "recommend": "gpus"}[path]
        [row] = csv.DictReader(io.StringIO(client.get(f"/{path}", params={**asked, gpu: "t4", "format": "csv"}).text))
        assert row["warnings"] == "; ".join(warnings) != ""
        assert {row.get("feasible", "true"), row.get("expert_parallel", "false")} == {"true", "false"}


def test_gpus_paid_and_idle_are_told(client: TestClient) -> None:
    sized = answer(client, "size", model="llama-3.3-70b", gpu="h100", providers="lambda", **load(8, 2000, 500))
    cost = sized["cost"]

    assert cost["gpus_paid"] == 8 > cost["gpus"] == sized["gpus"]
    assert any("paid for" in warning for warning in sized["warnings"])


def test_stages_on_instances_that_have_more_gpus_are_told_with_what_all_of_them_would_do(client: TestClient) -> None:
    asked = {"model": "deepseek-r1-distill-llama-70b", "gpu": "h100", "providers": "runpod", **load(32, 6000, 1000)}
    sized = answer(client, "size", **asked)

    assert sized["layout"]["pipeline_parallel_size"] > 1
    assert sized["cost"]["gpus_paid"] > sized["gpus"]
    told = next(warning for warning in sized["warnings"] if "paid for anyway" in warning)
    plain = answer(client, "size", **asked, tensor_parallel_size=sized["cost"]["gpus_paid"])
    assert f"tensor_parallel_size={plain['gpus']}" in told
    assert plain["latency"]["end_to_end_s"]["p95"] < sized["latency"]["end_to_end_s"]["p95"]


@pytest.mark.parametrize("objective", ["cost"])
def test_a_higher_rate_is_never_cheaper(client: TestClient, objective: str) -> None:
    asked = {
        "model": "qwen3-30b-a3b", "gpus": "h100", "weight_formats": "bf16", "input_tokens": 1000, "output_tokens": 300,
        "tpot_s": 0.03, "ttft_s": 1, "objective": objective,
    }  # fmt: skip
    prices = [
        answer(client, "recommend", **asked, request_rate_per_s=rate)["options"][0]["usd_per_hour"]
        for rate in (15, 20, 30, 40)
    ]

    assert prices == sorted(prices)


def test_many_gpus_carry_at_least_what_each_does_alone(client: TestClient) -> None:
    asked = {"model": "llama-3.1-8b", "gpu": "h100", "input_tokens": 1500, "output_tokens": 300}
    one = answer(client, "capacity", **asked, gpu_count=1)
    hundred = answer(client, "capacity", **asked, gpu_count=100)

    assert hundred["max_concurrent_requests"] >= 100 * one["max_concurrent_requests"]


def test_what_does_not_fit_says_how_many_gpus_would(client: TestClient) -> None:
    one = answer(client, "capacity", model="llama-3.3-70b", gpu="h100")

    assert not one["feasible"]
    assert one["would_fit"][0] == "gpu_count=2"
    assert one["cost"] is None
    assert one["command"] is None


def test_the_context_of_a_small_pool_leaves_the_ledgers_error_free(client: TestClient) -> None:
    phi = answer(client, "capacity", model="phi-4", gpu="rtx-5090")
    served = int(phi["engine_args"][phi["engine_args"].index("--max-model-len") + 1])

    assert phi["feasible"]
    assert 2_048 <= served < phi["max_model_len_fitting"]
    assert not any("no margin" in warning for warning in phi["warnings"])


def test_a_price_of_tokens_is_the_price_over_the_tokens(client: TestClient) -> None:
    options = answer(
        client, "recommend", model="deepseek-v3", gpus="h200,h100", **load(1, 1000, 200)
    )["options"]  # fmt: skip

    for option in options:
        by_hand = option["usd_per_hour"] * 1e6 / (option["requests_per_s"] * 200 * 3600)
        assert option["usd_per_million_output_tokens"] == pytest.approx(by_hand, rel=1e-5)
    assert len(options) == 2


@pytest.mark.parametrize("rate", [34, 35, 36, 37])
def test_an_answer_keeps_its_own_limit(client: TestClient, rate: float) -> None:
    asked = {"model": "llama-3.1-70b", "gpu": "h100", "weight_format": "fp8", "input_tokens": 1000}
    sized = answer(client, "size", **asked, output_tokens=200, ttft_s=0.5, tpot_s=0.04, request_rate_per_s=rate)

    assert sized["latency"]["ttft_s"]["p95"] <= 0.5
    assert sized["latency"]["tpot_s"]["p95"] <= 0.04


def test_an_unstated_version_means_the_newest_rules(client: TestClient) -> None:
    asked = {"model": "gpt-oss-120b", "gpu": "h100", "tensor_parallel_size": 1, **load(8, 2000, 500)}
    unstated, newest = (answer(client, "size", **asked, **more) for more in ({}, {"engine_version": "0.33"}))

    assert unstated["rules_version"] == newest["rules_version"] == "vllm-0.33"
    assert unstated["memory_per_gpu"] == newest["memory_per_gpu"]
    assert unstated["safe_margin_bytes"] == newest["safe_margin_bytes"] > 0


def test_replicas_of_one_layout_never_flap(client: TestClient) -> None:
    asked = {"model": "llama-3.1-70b", "gpu": "h100", "weight_format": "fp8", "input_tokens": 5500}
    pods = [
        answer(client, "replicas", **asked, output_tokens=500, concurrent_requests=users)["replicas"]
        for users in (80, 120, 160, 224, 320, 448, 512, 1024, 1280)
    ]

    assert all(fewer <= more for fewer, more in pairwise(pods))


def test_cache_bytes_share_a_scope_and_windows_print_no_bare_zero(client: TestClient) -> None:
    asked = {"model": "llama-3.1-70b", "weight_format": "fp8", "kv_cache_dtype": "bf16", "max_model_len": 10_000}
    caches = [
        answer(client, "capacity", **asked, gpu=gpu, tensor_parallel_size=ranks, gpu_count=ranks)["kv_cache"]
        for gpu, ranks in (("h200", 1), ("h100", 2))
    ]
    windows = answer(client, "capacity", model="mistral-7b", gpu="h100")["kv_cache"]

    assert {(cache["bytes_per_token"], cache["bytes_per_request"]) for cache in caches} == {(327_680, 3_276_800_000)}
    assert [cache["bytes_per_request_per_gpu"] for cache in caches] == [3_276_800_000, 1_638_400_000]
    assert windows["bytes_per_token"] == 131_072  # 2 x 32 layers x 8 heads x 128 x 2 bytes
    assert windows["bytes_per_token_per_gpu"] == 131_072


def test_one_refusal_names_everything_that_is_missing(client: TestClient) -> None:
    refused = client.get("/size", params={"ttft_s": 1})
    fields = {fault["field"] for fault in refused.json()["errors"]}

    assert refused.status_code == 422
    assert fields == {"model", "gpu", "concurrent_requests", "input_tokens", "output_tokens"}


def test_a_limit_on_the_edge_says_what_one_notch_saves(client: TestClient) -> None:
    asked = {
        "model": "llama-3.1-70b",
        "gpu": "h100",
        "weight_format": "fp8",
        "input_tokens": 2000,
        "output_tokens": 300,
    }
    tight, looser = (answer(client, "size", **asked, ttft_s=ttft_s, request_rate_per_s=5) for ttft_s in (0.105, 0.131))
    [told] = [warning for warning in tight["warnings"] if warning.startswith("ttft_s=0.131 takes ")]
    most, now = (int(count) for count in re.findall(r" (\d+)\b", told))

    assert tight["gpus"] == now >= 64
    assert looser["gpus"] == most <= now * 2 / 3


def test_a_notch_that_only_another_token_budget_turns_into_gpus_is_told(client: TestClient) -> None:
    """Referee: the looser question itself; with the engine's own settings it takes no fewer GPUs."""
    asked = {"model": "qwen3-30b-a3b", "gpu": "l4", "input_tokens": 2000, "output_tokens": 31}
    tight, looser = (answer(client, "size", **asked, concurrent_requests=153, ttft_s=ttft_s) for ttft_s in (0.5, 0.625))
    [told] = [warning for warning in tight["warnings"] if warning.startswith("ttft_s=0.625 takes ")]

    assert looser["gpus"] <= tight["gpus"] * 2 / 3
    assert f"takes {looser['gpus']} GPUs instead of {tight['gpus']}" in told


def test_answers_of_a_dozen_tokens_may_need_a_cap_far_below_the_users_that_keep_pace(client: TestClient) -> None:
    """Referee: the same question with the cap stated."""
    asked = {"model": "internvl3-8b", "gpu": "mi300x", "engine": "sglang", "request_rate_per_s": 20.66}
    short = {"input_tokens": 31, "output_tokens": 14, "tpot_s": 0.1}
    chosen, stated = (answer(client, "size", **asked, **short, **cap) for cap in ({}, {"max_num_seqs": 24}))

    assert stated["feasible"]
    assert chosen["gpus"] <= stated["gpus"]


def test_users_who_wait_long_because_nobody_limits_it_are_told_of(client: TestClient) -> None:
    asked = {"model": "qwen3-32b", "gpu": "h100", "request_rate_per_s": 1, "input_tokens": 2000, "output_tokens": 300}
    unlimited, limited = (answer(client, "size", **asked, **more) for more in ({}, {"ttft_s": 5}))
    [told] = [warning for warning in unlimited["warnings"] if warning.startswith("no limit on latency")]

    assert f"{unlimited['latency']['ttft_s']['p95']:.3g} s for the first token" in told
    assert "ttft_s=5 " in told
    assert "tpot_s" not in told  # nobody waits long for the others
    assert limited["latency"]["ttft_s"]["p95"] <= 5 < unlimited["latency"]["ttft_s"]["p95"]
    assert not any(warning.startswith("no limit") for warning in limited["warnings"])


def test_the_lowest_latency_over_several_servers_says_what_bounds_it(client: TestClient) -> None:
    asked = {
        "model": "llama-3.1-8b",
        "gpus": "h100",
        "weight_formats": "bf16",
        "objective": "latency",
        "tensor_parallel_size": 8,
        **load(4, 500, 50),
    }
    [unbounded] = answer(client, "recommend", **asked)["options"]
    [bounded] = answer(client, "recommend", **asked, max_gpus=8)["options"]

    assert unbounded["gpus"] > 8 >= bounded["gpus"]
    assert any("max_gpus or max_usd_per_hour bounds it" in warning for warning in unbounded["warnings"])
    assert not any("bounds it" in warning for warning in bounded["warnings"])


def test_a_grid_names_the_gpus_that_do_not_hold_a_model(client: TestClient) -> None:
    asked = {"models": "llama-3.3-70b", "gpus": "h200", "gpu_counts": "1,2", "context_tokens": "2048", "format": "text"}
    first, second, *_ = client.get("/compare", params=asked).text.splitlines()

    assert ": not on 1 GPU; gpu_count=2" in first
    assert ": 2 GPUs, " in second


@pytest.mark.parametrize("more", [{}, {"tiers": "community"}, {"usd_per_gpu_hour": 2}, {"discount_fraction": 0.5}])
def test_pods_cost_what_the_same_gpus_cost_in_any_other_question(client: TestClient, more: dict[str, Any]) -> None:
    shape = {"tensor_parallel_size": 1, "pipeline_parallel_size": 1}
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "gpu": "l4", **shape}
    sized = answer(client, "size", **asked, **load(100, 800, 200), **more, latency="none")
    pods = answer(client, "replicas", **asked, **load(100, 800, 200), **more)

    alike = ("usd_per_gpu_hour", "tier", "purchase", "is_stale", "discount_fraction", "origin")
    assert {name: pods["cost"][name] for name in alike} == {name: sized["cost"][name] for name in alike}


def test_no_queue_grows_at_a_rate_that_is_carried(client: TestClient) -> None:
    """Prompts of 100 tokens and answers of 10: slots for thousands of requests read none of them faster."""
    for rate in (300, 400, 500):
        asked = {"model": "llama-3.1-8b", "gpu": "h100", "input_tokens": 100, "output_tokens": 10}
        sized = answer(client, "size", **asked, request_rate_per_s=rate)

        assert sized["at_load"]["queue_growth_per_s"] <= 0.05 * rate
        assert sized["at_load"]["requests_per_s"] == pytest.approx(rate, rel=0.05)


def test_rows_of_a_grid_that_differ_in_the_cache_alone_read_differently(client: TestClient) -> None:
    asked = {"models": "llama-3.1-8b", "gpus": "h100", "kv_cache_dtypes": "bf16,fp8", "format": "text"}
    own, narrow, *_ = client.get("/compare", params={**asked, "context_tokens": "2048"}).text.splitlines()

    assert own.startswith("llama-3.1-8b-instruct bf16 on h100-sxm-80gb, 2048 tokens: ")
    assert narrow.startswith("llama-3.1-8b-instruct bf16, cache fp8, on h100-sxm-80gb, 2048 tokens: ")
