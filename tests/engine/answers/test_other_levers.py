"""Another GPU and another model, where they are asked for: each saves what its own question answers."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from service.engine.answers.other_levers import saves
from tests.engine.answers.test_decision import answer, load

CASES: dict[str, dict[str, Any]] = {
    "memory": {"model": "llama-3.3-70b", "gpu": "h200", "latency": "none", **load(64, 6_000, 500)},
    "limits": {"model": "llama-3.1-8b", "gpu": "h100", "request_rate_per_s": 6, "input_tokens": 500,
               "output_tokens": 100, "ttft_s": 2, "tpot_s": 0.1, "providers": "runpod"},
}  # fmt: skip


@pytest.mark.parametrize("asked", CASES.values(), ids=CASES)
def test_another_gpu_or_model_takes_what_the_lever_says(client: TestClient, asked: dict[str, Any]) -> None:
    now = answer(client, "size", **asked, levers="all")
    others = [lever for lever in now["levers"] if {"gpu", "model"} & set(lever["change"])]

    assert any("gpu" in lever["change"] for lever in others)
    assert now["gpus"] == 1 or any("model" in lever["change"] for lever in others)
    for lever in others:
        then = answer(client, "size", **{**asked, **lever["change"]})
        assert (then["gpus"], then["cost"]["usd_per_hour"]) == (lever["gpus"], pytest.approx(lever["usd_per_hour"]))
        assert lever["saves_gpus"] == now["gpus"] - then["gpus"]
        assert lever["saves_usd_per_hour"] == pytest.approx(now["cost"]["usd_per_hour"] - lever["usd_per_hour"])
        assert lever["saves_usd_per_hour"] > 0


def test_nobody_waits_for_others_who_did_not_ask(client: TestClient) -> None:
    plain = answer(client, "size", **CASES["memory"])

    assert not any({"gpu", "model"} & set(lever["change"]) for lever in plain["levers"])


def test_the_price_of_one_type_says_nothing_of_another(client: TestClient) -> None:
    owned = answer(client, "size", **CASES["memory"], levers="all", usd_per_gpu_hour=2.0)

    assert not any("gpu" in lever["change"] for lever in owned["levers"])


def test_a_confidence_has_no_such_levers(client: TestClient) -> None:
    refused = client.get("/size", params={**CASES["limits"], "levers": "all", "confidence": 0.9})

    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "levers"


def test_money_tells_and_gpus_where_there_is_no_price() -> None:
    assert saves((2.0, 10.0), (4.0, 9.0))
    assert not saves((2.0, 10.0), (1.0, 10.0))
