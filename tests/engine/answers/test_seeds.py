"""What the first texts about serving claim, each asked in one call; figures by hand from published configs."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.engine.answers.test_decision import answer, load


def test_a_cache_in_use_is_told_for_each_number_of_users(client: TestClient) -> None:
    """Qwen2.5 7B: 2 x 28 layers x 4 heads x 128 x 2 bytes = 57,344 a token; 0.11 to 7 GiB for 1 to 64 users."""
    rows = answer(client, "compare", models="qwen2.5-7b", gpus="h100", context_tokens=2048,
                  concurrent_requests="1,8,32,64")["rows"]  # fmt: skip

    assert [row["kv_bytes_of_load"] for row in rows] == [users * 2048 * 57_344 for users in (1, 8, 32, 64)]
    assert all(row["context_tokens"] == 2048 for row in rows)


def test_a_cache_is_told_as_a_part_of_the_gpu(client: TestClient) -> None:
    """One user of 128 tokens holds 0.01 % of an H100, 64 of 8,192 a third; the pool's own fraction is another."""
    few, many = answer(client, "compare", models="qwen2.5-7b", gpus="h100", context_tokens=8192,
                       concurrent_requests="1,64")["rows"]  # fmt: skip
    total = answer(client, "size", model="qwen2.5-7b", gpu="h100", **load(1, 7_680, 512))["memory_per_gpu"]

    assert many["kv_gpu_fraction"] == pytest.approx(64 * 8192 * 57_344 / total["total_bytes"])
    assert many["kv_gpu_fraction"] == pytest.approx(64 * few["kv_gpu_fraction"])


def test_contexts_and_users_are_one_grid(client: TestClient) -> None:
    """Llama 3.1 70B: 2 x 80 layers x 8 heads x 128 x 2 bytes = 327,680 a token: 20 GiB for 8 of 8,192 tokens."""
    rows = answer(client, "compare", models="llama-3.1-70b", gpus="b200", context_tokens="2048,4096,8192",
                  concurrent_requests="8,16")["rows"]  # fmt: skip

    assert [row["kv_bytes_of_load"] for row in rows] == [
        context * users * 327_680 for context in (2048, 4096, 8192) for users in (8, 16)
    ]
    assert rows[4]["kv_bytes_of_load"] == 20 << 30


def test_what_latent_attention_saves_stands_in_a_row(client: TestClient) -> None:
    """DeepSeek-V3: 61 layers x 576 x 2 bytes, against 128 heads of 192 and 128 elements."""
    [row] = answer(client, "compare", models="deepseek-v3", gpus="h200", context_tokens=2048, gpu_counts=8)["rows"]

    assert row["kv_bytes_per_token"] == 61 * 576 * 2
    assert row["kv_saved_fraction"] > 0.98


def test_a_kept_cache_has_its_price_its_time_and_its_break_even(client: TestClient) -> None:
    told = answer(
        client,
        "size",
        model="llama-3.3-70b",
        gpu="h100",
        weight_format="fp8",
        kv_cache_dtype="bf16",
        **load(8, 8_000, 500),
    )
    reuse, cost = told["reuse"], told["cost"]["usd_per_hour"] / told["replicas"] / 3600

    assert reuse["request_bytes"] == -(-8_500 // 16) * 16 * 327_680
    assert reuse["usd_per_thousand_reads"] == pytest.approx(1000 * cost * reuse["read_again_s"], rel=1e-5)
    for tier in reuse["tiers"]:
        assert tier["saves_s"] == pytest.approx(reuse["read_again_s"] - tier["fetch_s"])
        assert tier["saves_usd_per_thousand_hits"] == pytest.approx(1000 * cost * tier["saves_s"], rel=1e-5)
        hits = tier["break_even_hit_fraction"]
        assert hits * tier["saves_s"] == pytest.approx(tier["fetch_s"])
    assert reuse["worth_keeping_s"] > 0


def test_reading_a_prompt_and_a_cache_are_told_as_rates(client: TestClient) -> None:
    """The cache of a token of Llama 3.1 8B is 131,072 bytes: no faster than the memory of an H100 reads it."""
    told = answer(client, "capacity", model="llama-3.1-8b", gpu="h100", input_tokens=2000, output_tokens=100)

    assert told["prefill_tokens_per_s"] > 0
    assert told["kv_read_s_per_token"] >= 131_072 / 3.36e12


def test_paging_serves_more_than_whole_contexts_would(client: TestClient) -> None:
    """`max_concurrency` is what fits where each request keeps its longest context; requests of an eighth fit more."""
    asked: dict[str, Any] = {"model": "llama-2-7b", "gpu": "h100", "max_model_len": 4096}
    whole = answer(client, "capacity", **asked)["kv_cache"]["max_concurrency"]
    paged = answer(client, "capacity", **asked, input_tokens=448, output_tokens=64)["max_concurrent_requests"]

    assert 2 <= paged / whole <= 9


def test_a_cap_on_contexts_saves_gpus_and_says_so(client: TestClient) -> None:
    asked: dict[str, Any] = {"model": "llama-3.1-70b", "gpu": "h100", "weight_format": "fp8", "latency": "none"}
    long = answer(client, "size", **asked, **load(5, 127_000, 1000))
    lever = next(each for each in long["levers"] if "input_tokens" in each["change"])
    short = answer(client, "size", **asked, **load(5, int(lever["change"]["input_tokens"]), 1000))

    assert short["gpus"] == lever["gpus"] < long["gpus"]
    assert short["cost"]["usd_per_hour"] == pytest.approx(lever["usd_per_hour"])
