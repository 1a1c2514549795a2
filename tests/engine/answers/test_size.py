"""What a buyer would ask, and what a buyer would expect."""

import pytest
from starlette.testclient import TestClient

GIB = 1 << 30
SEVENTY_B = {"model": "llama-3.3-70b", "concurrent_requests": 64, "output_tokens": 500, "weight_format": "fp8"}


def gpus(client: TestClient, **question: object) -> int:
    response = client.post("/size", json=question)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["feasible"]
    return int(answer["gpus"])


def test_a_70b_model_in_fp8_loads_about_70_gigabytes(client: TestClient) -> None:
    answer = client.post("/size", json={**SEVENTY_B, "gpu": "h100", "input_tokens": 5_500}).json()

    # 70,553,706,496 parameters; embeddings and output head keep two bytes (nvidia/Llama-3.3-70B-Instruct-FP8).
    assert answer["weights"]["num_parameters"] == 70_553_706_496
    assert answer["weights"]["weight_bytes"] == pytest.approx(70.6e9, rel=0.03)
    assert answer["kv_cache"]["bytes_per_token"] == 163_840
    assert answer["kv_cache"]["bytes_per_request"] == 6_000 * 163_840
    assert answer["kv_cache"]["bytes_per_request_per_gpu"] * answer["gpus_per_replica"] == 6_000 * 163_840


@pytest.mark.parametrize("gpu", ["h100", "h200"])
def test_context_changes_the_count_as_a_buyer_would_expect(client: TestClient, gpu: str) -> None:
    counts = [
        gpus(client, **SEVENTY_B, gpu=gpu, kv_cache_dtype="bf16", input_tokens=n - 500) for n in (3_000, 6_000, 12_000)
    ]

    assert counts == sorted(counts)
    assert counts[2] > counts[0]
    assert counts[1] >= 64 * 6_000 * 327_680 / (141e9 if gpu == "h200" else 80e9)


def test_deepseek_v3_needs_more_than_a_node_of_h100_and_fits_one_of_h200(client: TestClient) -> None:
    asked = {"model": "deepseek-v3", "concurrent_requests": 8, "input_tokens": 1_000, "output_tokens": 1_000}

    # 671 GB in fp8, 80 and 141 GB a GPU.
    assert 8 < gpus(client, **asked, gpu="h100") <= 16
    assert 5 <= gpus(client, **asked, gpu="h200") <= 8


def test_what_cannot_be_met_says_by_how_much(client: TestClient) -> None:
    answer = client.post(
        "/size",
        json={
            "model": "llama-3.1-405b-instruct",
            "gpu": "l4",
            "tensor_parallel_size": 8,
            "pipeline_parallel_size": 1,
            "concurrent_requests": 1,
            "input_tokens": 100,
            "output_tokens": 100,
        },
    ).json()

    assert answer["feasible"] is False
    assert answer["gpus"] == 0
    assert answer["binding_constraint"] == "weights"
    # 811,706,777,600 bytes of weights on 8 x 22 GiB: about 78 GiB are missing on each.
    assert answer["shortfall_bytes"] > 811_706_777_600 / 8 - 24 * GIB
    assert answer["would_fit"]


def test_qwen_7b_on_one_h100_by_context(client: TestClient) -> None:
    answer = client.get("/capacity?model=qwen2.5-7b&gpu=h100&gpu_count=1").json()

    table = {row["context_tokens"]: row["max_concurrent_requests"] for row in answer["table"]}
    assert list(table) == [2_048, 8_192, 32_768, 131_072]
    # The pool is what 79.2 GiB x 0.92 leaves beside 14.2 GiB of weights and the working memory.
    pool = answer["memory_per_gpu"]["kv_cache_bytes"]
    for context, requests in table.items():
        assert requests == pytest.approx(pool / (context * 57_344), abs=1.01)


def test_h100_nvl_at_three_quarters_says_which_pairs_fit(client: TestClient) -> None:
    answer = client.get(
        "/capacity?model=llama-3.1-8b&gpu=h100-nvl&gpu_memory_utilization=0.75&max_num_seqs=64&gpu_count=1"
    ).json()

    for row in answer["table"]:
        assert row["max_concurrent_requests"] <= 64
    assert answer["table"][0]["max_concurrent_requests"] == 64
    assert answer["table"][-1]["max_concurrent_requests"] < 64
    assert answer["memory_per_gpu"]["reserved_bytes"] >= 0.25 * answer["memory_per_gpu"]["total_bytes"] - 1


def test_rate_and_duration_are_tied_by_littles_law(client: TestClient) -> None:
    shared = {"model": "llama-3.1-8b", "gpu": "h100", "input_tokens": 2_000, "output_tokens": 500}

    by_rate = client.post("/size", json={**shared, "request_rate_per_s": 10, "request_duration_s": 40}).json()
    by_count = client.post("/size", json={**shared, "concurrent_requests": 400}).json()

    assert by_rate["gpus"] == by_count["gpus"]


def test_headroom_and_spares_are_added(client: TestClient) -> None:
    asked = {
        "model": "qwen3-32b",
        "gpu": "h100",
        "concurrent_requests": 200,
        "input_tokens": 4_000,
        "output_tokens": 500,
    }
    plain = client.post("/size", json=asked).json()

    roomy = client.post("/size", json={**asked, "headroom_fraction": 0.5, "spare_replicas": 1}).json()

    assert roomy["replicas"] >= plain["replicas"] + 1


def test_every_default_is_listed_with_its_origin(client: TestClient) -> None:
    answer = client.post("/size", json={**SEVENTY_B, "gpu": "h100", "input_tokens": 5_500}).json()

    listed = {it["name"]: it for it in answer["assumptions"]}
    for name in ("gpu_memory_utilization", "max_num_batched_tokens", "max_num_seqs", "kv_cache_dtype", "max_model_len"):
        assert listed[name]["origin"] in {"default", "catalog", "chosen"}
        assert listed[name]["source"]
    assert listed["weight_format"]["origin"] == "request"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("tensor_parallel_size", 3, "does not divide"),
        ("pipeline_parallel_size", 1_000, "exceeds"),
        ("expert_parallel", True, "experts"),
    ],
)
def test_a_layout_the_engine_would_refuse_is_refused(client: TestClient, field: str, value: object, words: str) -> None:
    response = client.post("/size", json={**SEVENTY_B, "gpu": "h100", "input_tokens": 100, field: value})

    assert response.status_code == 422
    assert words in response.json()["detail"]


def test_blocks_of_a_quantization_must_divide_too(client: TestClient) -> None:
    # 1,536 expert columns over 8 ranks leave 192, which blocks of 128 do not divide: vLLM 0.28 refuses to start, and
    # 0.33 refines the scales to blocks of 64 (`fused_moe/oracle/fp8.py`, `refine_fp8_moe_block_shape`).
    asked = {
        "model": "qwen3-235b-a22b",
        "weight_format": "fp8",
        "concurrent_requests": 1,
        "input_tokens": 9,
        "output_tokens": 9,
    }

    cut = {**asked, "gpu": "h100", "tensor_parallel_size": 8}
    refused = client.post("/size", json={**cut, "engine_version": "0.28", "expert_parallel": False})
    refined = client.post("/size", json={**cut, "engine_version": "0.33", "expert_parallel": False})
    dealt_out = client.post("/size", json={**cut, "engine_version": "0.28"})

    assert refused.status_code == 422
    assert "128" in refused.json()["detail"]
    assert refined.json()["layout"]["expert_parallel"] is False
    assert dealt_out.json()["layout"]["expert_parallel"] is True


# vLLM refuses to start otherwise: "To serve at least one request with the models's max seq len (131072), (40.00 GiB KV
# cache is needed, which is larger than the available KV cache memory". `v1/core/kv_cache_utils.py`
@pytest.mark.parametrize(
    ("model", "gpu", "context"),
    [("llama-3.3-70b", "h100", 131_072), ("llama-3.1-8b", "l4", 131_072), ("qwen2.5-72b", "h100", 32_768)],
)
def test_a_stated_context_is_held_by_the_pool(client: TestClient, model: str, gpu: str, context: int) -> None:
    asked = {"model": model, "gpu": gpu, "concurrent_requests": 4, "input_tokens": 2_000, "output_tokens": 500}
    free = client.post("/size", json={**asked, "latency": "none"}).json()
    served = client.post("/size", json={**asked, "latency": "none", "max_model_len": context}).json()
    layout = {"tensor_parallel_size": 1, "pipeline_parallel_size": 1, "data_parallel_size": 1, **free["layout"]}
    pinned = client.post("/size", json={**asked, "latency": "none", "max_model_len": context, **layout}).json()

    assert served["gpus"] > free["gpus"]  # which hold the load, and no request of the context
    assert served["kv_cache"]["max_concurrency"] >= 1
    assert not pinned["feasible"]
    assert pinned["shortfall_bytes"] > 0


@pytest.mark.parametrize(("users", "tpot_s"), [(600, 0.08), (400, 0.1), (400, 0.15)])
def test_an_engine_that_reads_prompts_alone_keeps_a_limit_on_pace_alone(
    client: TestClient, users: int, tpot_s: float
) -> None:
    # An estimate once called chunks of 256 tokens in time, for which whoever decodes waits one after the other.
    asked = {"model": "gpt-oss-120b", "gpu": "h20", "engine": "sglang", "input_tokens": 4_000, "output_tokens": 500}
    answer = client.post("/size", json={**asked, "concurrent_requests": users, "tpot_s": tpot_s}).json()

    assert answer["feasible"]
    assert answer["latency"]["tpot_s"]["p95"] <= tpot_s


def test_endless_room_is_no_more_than_an_engine_runs(client: TestClient) -> None:
    """SGLang reads alone, and of a model with latents nobody knows the room of a layout without planning it.

    A bound on what a layout carries simulated a million slots, and the question was refused as too much work.
    """
    asked = {"model": "deepseek-v3", "gpu": "h200", "engine": "sglang", "input_tokens": 3_000, "output_tokens": 400}
    asked |= {"ttft_s": 1.5, "tpot_s": 0.05, "levers": "none"}
    counts = []
    for rate in (6, 20):
        response = client.post("/size", json={**asked, "request_rate_per_s": rate})
        assert response.status_code == 200, response.text
        counts.append(response.json()["gpus"])

    assert 0 < counts[0] <= counts[1]
