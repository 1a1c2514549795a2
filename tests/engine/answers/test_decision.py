"""The choice between deployments, as buyers checked it: fewer GPUs, lower prices, and counts that never fall."""

from itertools import pairwise
from typing import Any

import pytest
from starlette.testclient import TestClient


def answer(client: TestClient, path: str, **asked: Any) -> dict[str, Any]:
    response = client.get(f"/{path}", params=asked)
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


def load(count: int, input_tokens: int, output_tokens: int) -> dict[str, int]:
    return {"concurrent_requests": count, "input_tokens": input_tokens, "output_tokens": output_tokens}


# model, GPU, load, most GPUs: a layout or setting that was stated by hand carries the load on so many
STATED_BY_HAND: dict[str, tuple[str, str, dict[str, Any], int]] = {
    "copies of the attention": ("deepseek-v3", "h200", load(1024, 2000, 500), 8),
    # The caches of one server hold them beside steps of 256 tokens, and no more than 256 run beside those.
    "more than one server runs": ("deepseek-v3", "h200", load(2000, 2000, 500), 16),
    "of two nodes": ("deepseek-v3", "h200", load(2500, 2000, 500), 16),
    "long prompts": ("deepseek-v3", "h200", load(64, 30_000, 1000), 8),
    "fewer sequences": ("gpt-oss-120b", "h100", load(16, 2000, 500), 1),
    "one user": ("llama-3.1-70b", "h100", {**load(1, 2000, 500), "weight_format": "fp8"}, 1),
    "recurrent layers": ("qwen3.6-27b", "h100", load(16, 8000, 1000), 1),
    "a small GPU": ("llama-3.1-8b", "l4", load(28, 1000, 200), 1),
    "copies within limits": ("deepseek-v3", "h200", {**load(512, 2000, 500), "ttft_s": 3, "tpot_s": 0.15}, 8),
    "within limits": ("kimi-k2", "b200", {**load(512, 2000, 500), "ttft_s": 3, "tpot_s": 0.15}, 8),
}


@pytest.mark.parametrize(("model", "gpu", "asked", "most"), STATED_BY_HAND.values(), ids=STATED_BY_HAND)
def test_no_more_gpus_than_a_layout_stated_by_hand(
    client: TestClient, model: str, gpu: str, asked: dict[str, Any], most: int
) -> None:
    sized = answer(client, "size", model=model, gpu=gpu, **asked)

    assert sized["feasible"]
    assert 0 < sized["gpus"] <= most
    assert all(note["source"] for note in sized["assumptions"] if note["origin"] == "chosen")


def test_a_stated_setting_is_kept(client: TestClient) -> None:
    sized = answer(client, "size", model="gpt-oss-120b", gpu="h100", max_num_seqs=1024, **load(16, 2000, 500))

    assert sized["engine_args"][sized["engine_args"].index("--max-num-seqs") + 1] == "1024"
    assert next(note for note in sized["assumptions"] if note["name"] == "max_num_seqs")["origin"] == "request"


def test_the_cheapest_is_no_dearer_than_any_stated_layout(client: TestClient) -> None:
    asked = {
        "model": "llama-3.1-70b", "gpus": "h200", "weight_formats": "fp8", "kv_cache_dtypes": "bf16",
        "service_class": "batch", **load(64, 5500, 500),
    }  # fmt: skip
    best = answer(client, "recommend", **asked)["options"][0]["usd_per_hour"]

    for ranks in (1, 2, 4):
        stated = answer(client, "recommend", **asked, tensor_parallel_size=ranks)["options"]
        assert best <= min((option["usd_per_hour"] for option in stated if option["usd_per_hour"]), default=best)


def test_six_gpus_carry_at_least_what_four_do_at_any_context(client: TestClient) -> None:
    tables = [
        [row["max_concurrent_requests"] for row in answer(client, "capacity", model="llama-3.3-70b", gpu="h100",
         gpu_count=count)["table"]]
        for count in (2, 4, 6, 8, 12)
    ]  # fmt: skip

    for fewer, more in pairwise(tables):
        assert all(one <= other for one, other in zip(fewer, more, strict=True))


def test_more_gpus_hold_no_fewer_whole_contexts_where_the_engine_starts_by_itself(client: TestClient) -> None:
    # On 14 GPUs it only starts under fewer sequences than its own; two copies of seven stages then hold most.
    fewer, more = (answer(client, "capacity", model="deepseek-v3", gpu="h100", gpu_count=count) for count in (14, 16))

    assert fewer["max_model_len_fitting"] == more["max_model_len_fitting"]
    assert fewer["max_concurrent_requests"] <= more["max_concurrent_requests"]


def test_a_context_too_short_to_serve_is_not_an_answer(client: TestClient) -> None:
    one = answer(client, "capacity", model="llama-3.3-70b", gpu="h100")

    assert not one["feasible"]
    assert one["would_fit"][0] == "gpu_count=2"


def test_a_load_is_not_rounded_up_to_the_stages(client: TestClient) -> None:
    for asked in ({"concurrent_requests": 1}, {"concurrent_requests": 3}):
        sized = answer(client, "size", model="deepseek-v3", gpu="l4", input_tokens=1000, output_tokens=200, **asked)
        state = sized["at_load"]
        assert state["concurrent_requests"] == pytest.approx(asked["concurrent_requests"], rel=0.01)
        by_hand = asked["concurrent_requests"] / sized["latency"]["end_to_end_s"]["mean"]
        assert state["requests_per_s"] == pytest.approx(by_hand, rel=0.01)


@pytest.mark.parametrize(("field", "name"), [("providers", "amazone"), ("regions", "eu-nowhere-1")])
def test_an_unknown_provider_or_region_is_refused_with_the_known_ones(
    client: TestClient, field: str, name: str
) -> None:
    asked: dict[str, Any] = {
        "model": "llama-3.1-8b",
        "request_rate_per_s": 1,
        "input_tokens": 500,
        "output_tokens": 100,
    }
    response = client.get("/recommend", params={**asked, field: name})

    assert response.status_code == 422
    assert ("runpod" if field == "providers" else "any") in response.text


def test_milliseconds_draw_a_warning(client: TestClient) -> None:
    sized = answer(client, "size", model="llama-3.1-8b", gpu="h100", ttft_s=500, **load(4, 500, 100))

    assert any("milliseconds" in warning for warning in sized["warnings"])


def test_text_and_csv_tell_the_question(client: TestClient) -> None:
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "gpu": "h100", **load(4, 500, 100)}
    text = client.get("/size", params={**asked, "format": "text"}).text
    table = client.get("/size", params={**asked, "format": "csv"}).text

    assert "model=llama-3.1-8b" in text
    assert "concurrent_requests=4" in text
    assert "USD/h" in text
    assert "checkpoint: meta-llama/Llama-3.1-8B-Instruct" in text
    assert "asked.concurrent_requests" in table.splitlines()[0]
