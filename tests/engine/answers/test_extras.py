"""Stated extras: drafts, adapters, cached prefixes. Unset means off."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100",
    "input_tokens": 1_000,
    "output_tokens": 200,
    "concurrent_requests": 4,
}
SIZES_OF_A_STEP = ("max_num_batched_tokens", "max_num_seqs")


def answered(client: TestClient, **extra: Any) -> dict[str, Any]:
    response = client.post("/size", json={**ASKED, **extra})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_drafts_quicken_few_users_and_take_a_layer_of_memory(client: TestClient) -> None:
    plain = answered(client)
    drafted = answered(client, num_speculative_tokens=3, speculative_acceptance_fraction=0.7)

    assert drafted["latency"]["tpot_s"]["mean"] < 0.7 * plain["latency"]["tpot_s"]["mean"]
    assert drafted["kv_cache"]["bytes_per_token"] * 32 == plain["kv_cache"]["bytes_per_token"] * 33  # 32 layers and one
    assert drafted["memory_per_gpu"]["weight_bytes"] > plain["memory_per_gpu"]["weight_bytes"]
    assert any("drafter" in warning for warning in drafted["warnings"])


def test_as_many_users_run_as_a_step_has_tokens_for_with_their_drafts(client: TestClient) -> None:
    drafts = {"num_speculative_tokens": 3, "speculative_acceptance_fraction": 0.7}
    asked = {key: value for key, value in ASKED.items() if key != "concurrent_requests"} | {"gpu_count": 1, **drafts}
    few, free = (
        client.post("/capacity", json={**asked, **more}).json()
        for more in ({"max_num_batched_tokens": 64, "max_num_seqs": 64}, {})
    )

    assert few["max_concurrent_requests"] == 16
    assert "max_num_batched_tokens" in " ".join(few["warnings"])
    tokens, seqs = (next(s["value"] for s in free["assumptions"] if s["name"] == name) for name in SIZES_OF_A_STEP)
    assert 4 * free["max_concurrent_requests"] <= tokens
    assert free["max_concurrent_requests"] <= seqs


def test_rejected_drafts_slow_everybody_down(client: TestClient) -> None:
    plain = answered(client)
    useless = answered(client, num_speculative_tokens=3, speculative_acceptance_fraction=0)

    assert useless["latency"]["tpot_s"]["mean"] > plain["latency"]["tpot_s"]["mean"]


@pytest.mark.parametrize("path", ["size", "capacity", "recommend", "replicas"])
def test_a_chance_of_zero_is_told_as_any_other(client: TestClient, path: str) -> None:
    drafts: dict[str, Any] = {"num_speculative_tokens": 3, "speculative_acceptance_fraction": 0}
    where = {"gpus": "h100"} if path == "recommend" else {"gpu": "h100"}
    load = {"concurrent_requests": 8, "input_tokens": 500, "output_tokens": 100}
    response = client.get(f"/{path}", params={"model": "llama-3.1-8b", **where, **load, **drafts})
    told = {note["name"]: (note["value"], note["origin"]) for note in response.json()["assumptions"]}

    assert told["speculative_acceptance_fraction"] == (0.0, "request")


@pytest.mark.parametrize("extra", [{"num_speculative_tokens": 2}, {"speculative_acceptance_fraction": 0.5}])
def test_drafts_and_their_acceptance_go_together(client: TestClient, extra: dict[str, Any]) -> None:
    response = client.post("/size", json={**ASKED, **extra})

    assert response.status_code == 422
    assert "go together" in response.text


def test_adapters_take_the_engines_buffers(client: TestClient) -> None:
    # Llama 3.1 8B: per layer, fused query-key-value 3 x 4096 + 6144, output 4096 + 4096, gate and up
    # 2 x 4096 + 28672, down 14336 + 4096; embedding and head, once each, 128256 + 4096; by vLLM's create_lora_weights,
    # worked out by hand.
    sides = (3 * 4096 + 6144) + (4096 + 4096) + (2 * 4096 + 28672) + (14336 + 4096)
    vocabulary = 2 * (128256 + 4096)
    plain = answered(client)
    adapted = answered(client, max_loras=4, max_lora_rank=32)

    taken = adapted["memory_per_gpu"]["weight_bytes"] - plain["memory_per_gpu"]["weight_bytes"]
    assert taken == 4 * 32 * 2 * (32 * sides + vocabulary)
    assert "--enable-lora" in adapted["engine_args"]


def test_choices_of_numbers_are_read_from_a_query_string_too(client: TestClient) -> None:
    by_get = client.get("/size", params={**ASKED, "max_loras": 4, "max_lora_rank": 32, "block_size": 32})
    by_post = client.post("/size", json={**ASKED, "max_loras": 4, "max_lora_rank": 32, "block_size": 32})

    assert by_get.status_code == 200, by_get.text
    assert by_get.content == by_post.content
    assert client.get("/size", params={**ASKED, "max_lora_rank": 7}).status_code == 422


def test_adapters_of_experts_are_refused(client: TestClient) -> None:
    response = client.post("/size", json={**ASKED, "model": "gpt-oss-20b", "max_loras": 2})

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "max_loras"


POOLED = {
    "model": "llama-3.3-70b", "gpu": "h100", "weight_format": "fp8", "input_tokens": 4_000, "output_tokens": 200,
    "request_rate_per_s": 20, "ttft_s": 2.0, "tpot_s": 0.03, "disaggregated": True,
}  # fmt: skip


def test_pools_of_their_own_add_up(client: TestClient) -> None:
    answer = client.post("/size", json=POOLED).json()
    pools = answer["pools"]

    assert answer["feasible"]
    prefill = pools["prefill_replicas"] * pools["prefill_gpus_per_replica"]
    decode = pools["decode_replicas"] * pools["decode_gpus_per_replica"]
    assert answer["gpus"] == prefill + decode
    # 4,000 tokens of 160 KiB in fp8 over the decode ranks' network, 400 Gb/s each.
    per_gpu = 4_000 * 163_840 / pools["prefill_tensor_parallel_size"]
    assert pools["kv_transfer_bytes_per_gpu"] == pytest.approx(per_gpu, rel=0.01)
    assert pools["kv_transfer_s"] == pytest.approx(per_gpu / 50e9, rel=0.01)
    assert answer["latency"]["ttft_s"]["p95"] <= 2.0 * 1.25
    assert answer["latency"]["tpot_s"]["p95"] <= 0.03 * 1.05


@pytest.mark.parametrize("percentile", [50, 95, 99])
def test_the_wait_of_both_pools_is_told_at_the_percentile_asked_for_too(client: TestClient, percentile: int) -> None:
    latency = client.post("/size", json={**POOLED, "percentile": percentile}).json()["latency"]

    assert latency["ttft_at_percentile_s"] == pytest.approx(latency["ttft_s"][f"p{percentile}"])
    assert latency["ttft_at_percentile_s"] > latency["ttft_s"]["mean"] / 2
    assert 0 < latency["ttft_standard_error_s"] < latency["ttft_at_percentile_s"]


def test_the_gpus_of_both_pools_are_counted_and_it_is_told_whose_replicas_are(client: TestClient) -> None:
    answer = client.post("/size", json=POOLED).json()
    pools = answer["pools"]
    prefill = pools["prefill_replicas"] * pools["prefill_gpus_per_replica"]
    warned = next(each for each in answer["warnings"] if "are of both pools" in each)

    assert answer["gpus"] == prefill + answer["replicas"] * answer["gpus_per_replica"]
    assert (answer["replicas"], answer["gpus_per_replica"]) == (
        pools["decode_replicas"],
        pools["decode_gpus_per_replica"],
    )
    assert "replicas, gpus_per_replica, layout" in warned.split(";")[1]


def test_a_decode_pool_makes_tokens_at_an_even_pace(client: TestClient) -> None:
    pooled = client.post("/size", json=POOLED).json()["latency"]["itl_s"]
    mixed = client.post("/size", json={**POOLED, "disaggregated": False}).json()["latency"]["itl_s"]

    assert pooled["p99"] < mixed["p99"]  # nobody reads a prompt in between


def test_pools_need_a_rate(client: TestClient) -> None:
    question = {key: value for key, value in POOLED.items() if key != "request_rate_per_s"}
    response = client.post("/size", json={**question, "concurrent_requests": 8})

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "disaggregated"


def test_decoding_leaves_reading_its_part_of_the_limit(client: TestClient) -> None:
    """A decode pool that keeps pace alone may use up what the first token may take: no pool of readers mends that."""
    question = {**POOLED, "input_tokens": 3_000, "output_tokens": 400, "ttft_s": 1.0, "tpot_s": 0.05}
    answers = [client.post("/size", json={**question, "request_rate_per_s": rate}).json() for rate in (1, 12, 24, 48)]
    counts = [answer["gpus"] for answer in answers]

    assert all(answer["feasible"] for answer in answers)
    assert all(answer["latency"]["ttft_s"]["p95"] <= 1.0 for answer in answers)
    assert counts == sorted(counts)
    assert not any("paid for anyway" in warning for answer in answers for warning in answer["warnings"])


def test_more_arrivals_never_need_fewer_pooled_gpus(client: TestClient) -> None:
    counts = [
        client.post("/size", json={**POOLED, "request_rate_per_s": rate}).json()["gpus"] for rate in (1, 5, 20, 80)
    ]

    assert counts == sorted(counts)


def test_as_many_servers_are_paid_for_as_the_command_names(client: TestClient) -> None:
    """Copies of three GPUs leave one of four idle on each of their servers."""
    question = {
        "model": "deepseek-v2-lite", "gpu": "gb200", "concurrent_requests": 8, "input_tokens": 1_000,
        "output_tokens": 200, "pipeline_parallel_size": 3, "data_parallel_size": 4,
    }  # fmt: skip
    answer = client.post("/size", json=question).json()

    assert answer["cost"]["instances"] == answer["command"].count("# on node") == 4
    assert (answer["gpus"], answer["cost"]["gpus_paid"]) == (12, 16)


@pytest.mark.parametrize("path", ["size", "recommend"])
@pytest.mark.parametrize(("model", "has_towers"), [("llama-3.1-8b", False), ("qwen2.5-vl-7b-instruct", True)])
def test_text_alone_says_where_it_changes_nothing(
    client: TestClient, path: str, model: str, *, has_towers: bool
) -> None:
    where = {"gpus": "h100"} if path == "recommend" else {"gpu": "h100"}
    asked = {**ASKED, "model": model, "language_model_only": True} | where
    if path == "recommend":
        del asked["gpu"]
    [source] = [
        note["source"]
        for note in client.post(f"/{path}", json=asked).json()["assumptions"]
        if note["name"] == "language_model_only"
    ]

    assert ("changes nothing" in (source or "")) is not has_towers
