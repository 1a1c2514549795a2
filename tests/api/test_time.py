"""Questions about time, as a user asks them over HTTP."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

ASKED = {
    "model": "llama-3.3-70b-instruct",
    "gpu": "h100",
    "weight_format": "fp8",
    "input_tokens": 1_000,
    "output_tokens": 200,
    "ttft_s": 0.5,
    "tpot_s": 0.04,
}


def answered(client: TestClient, path: str, **question: Any) -> dict[str, Any]:
    response = client.post(path, json={**ASKED, **question})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_forty_requests_per_second_within_limits(client: TestClient) -> None:
    answer = answered(client, "/size", request_rate_per_s=40)

    assert answer["feasible"]
    assert answer["binding_constraint"] in ("ttft", "tpot")
    assert answer["latency"]["basis"] == "measured-kernels"
    assert 0 < answer["latency"]["expected_error_fraction"] < 0.5
    assert answer["per_replica"]["requests_per_s"] * answer["replicas"] >= 40
    assert answer["saturation"]["queue_diverges_at_requests_per_s"] >= answer["saturation"]["request_rate_per_s"]
    assert answer["one_gpu_step_less"]["violates"] in ("ttft", "tpot")
    assert answer["at_load"]["queue_growth_per_s"] < 1


def test_rate_and_concurrency_are_tied_by_littles_law_through_the_model(client: TestClient) -> None:
    state = answered(client, "/size", concurrent_requests=64, ttft_s=None, tpot_s=None)

    in_system = state["at_load"]["requests_per_s"] * state["latency"]["end_to_end_s"]["mean"]
    assert in_system == pytest.approx(64, rel=0.05)


def test_a_limit_nobody_can_meet_says_what_can_be_met(client: TestClient) -> None:
    answer = answered(client, "/size", concurrent_requests=8, tpot_s=0.0001)

    assert not answer["feasible"]
    assert answer["gpus"] == 0
    assert answer["binding_constraint"] == "tpot"
    assert answer["shortfall_bytes"] == 0
    assert any("tpot_s of at least" in sentence for sentence in answer["would_fit"])


@pytest.mark.parametrize("gpu", ["a10g", "l4", "h100-nvl", "h100-pcie", "mi300x", "rtx-4090"])
def test_gpus_without_measured_kernels_get_an_estimate_that_says_so(client: TestClient, gpu: str) -> None:
    answer = answered(
        client,
        "/size",
        model="llama-3.1-8b-instruct",
        gpu=gpu,
        concurrent_requests=4,
        weight_format="bf16",
        ttft_s=None,
        tpot_s=None,
    )

    assert answer["latency"]["basis"] == "roofline"
    assert "no kernels were measured" in answer["latency"]["basis_note"]
    assert any("roofline" in warning for warning in answer["warnings"])
    measured = answered(client, "/size", concurrent_requests=4)["latency"]["expected_error_fraction"]
    assert answer["latency"]["expected_error_fraction"] > measured


def test_headroom_and_spares_count_for_rates_too(client: TestClient) -> None:
    plain = answered(client, "/size", request_rate_per_s=20)
    roomy = answered(client, "/size", request_rate_per_s=20, headroom_fraction=0.5, spare_replicas=1)

    assert roomy["replicas"] > plain["replicas"]


def test_a_burstier_stream_never_needs_fewer_gpus(client: TestClient) -> None:
    even = answered(client, "/size", request_rate_per_s=20, burstiness=1000)
    bursty = answered(client, "/size", request_rate_per_s=20, burstiness=0.3)

    assert bursty["gpus"] >= even["gpus"]


def test_a_cached_prefix_shortens_the_wait(client: TestClient) -> None:
    cold = answered(client, "/capacity", gpu_count=4, concurrent_requests=32)
    warm = answered(client, "/capacity", gpu_count=4, concurrent_requests=32, prefix_cache_hit_fraction=0.9)

    assert warm["latency"]["ttft_s"]["mean"] < 0.7 * cold["latency"]["ttft_s"]["mean"]


def test_beyond_saturation_the_wait_is_told_and_not_refused(client: TestClient) -> None:
    within = answered(client, "/capacity", gpu_count=4, concurrent_requests=50)
    beyond = answered(client, "/capacity", gpu_count=4, concurrent_requests=50_000)

    assert beyond["latency"]["ttft_s"]["mean"] > 60
    assert beyond["max_concurrent_requests"] == within["max_concurrent_requests"]


def test_the_curve_rises_with_load(client: TestClient) -> None:
    curve = answered(client, "/capacity", gpu_count=4)["curve"]

    assert [point["concurrent_requests"] for point in curve] == sorted(point["concurrent_requests"] for point in curve)
    assert curve[-1]["ttft_mean_s"] > curve[0]["ttft_mean_s"]
    assert curve[-1]["tpot_mean_s"] > curve[0]["tpot_mean_s"]
    assert max(point["requests_per_s"] for point in curve) > 5 * curve[0]["requests_per_s"]


def test_options_carry_their_latency(client: TestClient) -> None:
    question = {key: value for key, value in ASKED.items() if key not in ("gpu", "weight_format")}
    answer = client.post(
        "/recommend",
        json={**question, "concurrent_requests": 32, "gpus": ["h100", "h200", "l40s", "a100-sxm-80gb"], "limit": 4},
    ).json()

    assert answer["options"]
    for option in answer["options"]:
        assert 0 < option["ttft_p95_s"] <= 0.5 * 1.25
        assert 0 < option["tpot_p95_s"] <= 0.04 * 1.05
    prices = [option["usd_per_hour"] for option in answer["options"]]
    assert prices == sorted(prices)


# InferenceX, Llama-3.1-70B fp8, vLLM on H100 SXM, TP4, 1,024 in and out, 10 prompts a user, all users at once; means:
# https://github.com/ai-dynamo/aiconfigurator (systems/silicon_sample.csv, exported from InferenceX)
BENCHMARK = {
    "model": "llama-3.1-70b-instruct",
    "gpu": "h100",
    "gpu_count": 4,
    "tensor_parallel_size": 4,
    "weight_format": "fp8",
    "kv_cache_dtype": "bf16",
    "input_tokens": 922,
    "output_tokens": 922,
    "length_variation_fraction": 0.11,  # drawn between 0.8 and 1.0 of 1,024
    "max_num_batched_tokens": 8_192,
    "ttft_s": None,
    "tpot_s": None,
}


def test_a_benchmark_is_answered_as_it_prints_ramp_and_drain_included(client: TestClient) -> None:
    steady = answered(client, "/capacity", **BENCHMARK, concurrent_requests=64)
    printed = answered(client, "/capacity", **BENCHMARK, concurrent_requests=64, num_prompts=640)

    assert printed["latency"]["requests_simulated"] == 640
    assert printed["latency"]["tpot_s"]["mean"] == pytest.approx(0.0195, rel=0.15)
    # 64 users begin at once: a tenth of all prompts wait for each other, and the last ones run half alone.
    assert printed["latency"]["ttft_s"]["p95"] > 5 * steady["latency"]["ttft_s"]["p95"]
    assert printed["latency"]["ttft_s"]["p50"] == pytest.approx(steady["latency"]["ttft_s"]["p50"], rel=0.2)
    assert 0.9 < printed["at_load"]["requests_per_s"] / steady["at_load"]["requests_per_s"] < 1


@pytest.mark.parametrize("load", [{"concurrent_requests": 64}, {"request_rate_per_s": 2, "arrival": "poisson"}])
def test_tokens_of_a_benchmark_cost_what_its_gpus_do_while_it_runs(client: TestClient, load: dict[str, Any]) -> None:
    printed = answered(client, "/capacity", **BENCHMARK, **load, num_prompts=100, usd_per_gpu_hour=3.6)

    # By hand: a thousandth of a dollar for each second of each GPU, in which so many tokens are written.
    tokens = printed["at_load"]["requests_per_s"] * BENCHMARK["output_tokens"]
    usd = 0.001 * printed["gpus"] * 1e6 / tokens
    assert printed["cost"]["at_load"]["usd_per_million_output_tokens"] == pytest.approx(usd, rel=1e-4)


def test_a_benchmark_at_a_rate_begins_with_an_idle_engine(client: TestClient) -> None:
    printed = answered(client, "/capacity", **BENCHMARK, request_rate_per_s=2, num_prompts=500, arrival="poisson")

    assert printed["latency"]["requests_simulated"] == 500
    assert printed["at_load"]["requests_per_s"] == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize(
    "contradiction",
    [
        {"concurrent_requests": 4, "arrival": "burst"},
        {"concurrent_requests": 4, "num_prompts": 40, "arrival": "poisson"},
        {"concurrent_requests": 4, "num_prompts": 40, "arrival": "steady"},
        {"request_rate_per_s": 4, "num_prompts": 40, "arrival": "burst"},
        {"num_prompts": 40},
    ],
    ids=" ".join,
)
def test_a_benchmark_that_contradicts_itself_is_refused(client: TestClient, contradiction: dict[str, Any]) -> None:
    response = client.post("/capacity", json={**BENCHMARK, **contradiction})

    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"


def test_latency_is_told_at_the_percentile_that_limits_are_held_to(client: TestClient) -> None:
    limits = {"ttft_s": 0.5, "tpot_s": 0.02, "percentile": 90}
    latency = answered(client, "/size", request_rate_per_s=20, **limits)["latency"]

    for name in ("ttft", "tpot"):
        assert latency[f"{name}_s"]["p50"] < latency[f"{name}_at_percentile_s"] <= latency[f"{name}_s"]["p95"]
        assert latency[f"{name}_at_percentile_s"] <= limits[f"{name}_s"]
    assert answered(client, "/size", request_rate_per_s=20)["latency"]["ttft_at_percentile_s"] > 0


def test_the_error_of_a_percentile_is_stated_and_another_seed_stays_within_it(client: TestClient) -> None:
    latency = answered(client, "/size", request_rate_per_s=20)["latency"]

    assert latency["requests_simulated"] >= 2_000
    assert latency["percentile"] == 95
    assert 0 < latency["ttft_standard_error_s"] < 0.2 * latency["ttft_s"]["p95"]
    assert 0 < latency["tpot_standard_error_s"] < 0.1 * latency["tpot_s"]["p95"]


def test_tails_rest_on_larger_samples(client: TestClient) -> None:
    latency = answered(client, "/size", request_rate_per_s=20, percentile=99)["latency"]

    assert latency["requests_simulated"] >= 10_000
    assert latency["ttft_s"]["p99"] <= 0.5
    assert latency["tpot_s"]["p99"] <= 0.04
