"""A count that keeps limits with a stated probability, over HTTP."""

import csv
import io
from typing import Any

import pytest
from fastapi.testclient import TestClient

ASKED = {
    "model": "llama-3.1-8b", "gpu": "h100", "request_rate_per_s": 60, "input_tokens": 1000, "output_tokens": 200,
    "ttft_s": 0.5, "tpot_s": 0.02,
}  # fmt: skip


def sized(client: TestClient, **more: Any) -> dict[str, Any]:
    document: dict[str, Any] = client.post("/size", json={**ASKED, **more}).json()
    return document


def origins(answer: dict[str, Any]) -> list[str]:
    return [note["origin"] for note in answer["assumptions"] if note["name"] == "confidence"]


def test_without_a_confidence_the_answer_says_that_it_is_the_median(client: TestClient) -> None:
    answer = sized(client)

    assert answer["confidence"] == {"probability": 0.5, "slowdown": 1.0, "sample_error_fraction": None, "counts": []}
    assert origins(answer) == ["default"]


def test_the_count_at_a_confidence_is_the_one_that_others_show_for_it(client: TestClient) -> None:
    probabilities = (0.5, 0.8, 0.95)
    answers = {each: sized(client, confidence=each, request_rate_per_s=300) for each in probabilities}

    for probability, answer in answers.items():
        shown = {count["probability"]: count["gpus"] for count in answer["confidence"]["counts"]}
        assert shown == {each: other["gpus"] for each, other in answers.items()}
        assert answer["gpus"] == shown[probability]
        assert origins(answer) == ["request"]
    counts = [answer["gpus"] for answer in answers.values()]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


@pytest.mark.parametrize("confidence", [0.3, 1.0, "likely"])
def test_less_than_an_even_chance_and_certainty_are_refused(client: TestClient, confidence: object) -> None:
    response = client.post("/size", json={**ASKED, "confidence": confidence})

    assert response.status_code == 422
    assert "confidence" in response.text


def asked(client: TestClient, path: str, **more: Any) -> dict[str, Any]:
    """Return the answer of any question about the same load."""
    document: dict[str, Any] = client.post(path, json={**ASKED, **more}).json()
    return document


def test_gpus_at_hand_and_one_pod_carry_less_with_more_certainty(client: TestClient) -> None:
    rates = [asked(client, "/capacity", confidence=each)["requests_per_s"] for each in (0.5, 0.9)]
    pods = [asked(client, "/replicas", confidence=each, request_rate_per_s=300) for each in (0.5, 0.9)]

    assert asked(client, "/capacity")["requests_per_s"] == rates[0] > rates[1]
    assert pods[0]["per_pod"]["max_requests_per_s"] > pods[1]["per_pod"]["max_requests_per_s"]
    assert pods[0]["replicas"] < pods[1]["replicas"]
    assert origins(pods[1]) == ["request"]


def test_a_recommended_deployment_is_as_fast_as_it_is_sized(client: TestClient) -> None:
    one_gpu = {key: value for key, value in ASKED.items() if key != "gpu"}
    found = client.post("/recommend", json={**one_gpu, "gpus": ["h100"], "confidence": 0.9, "limit": 1}).json()
    (option,) = found["options"]
    stated = ("weight_format", "kv_cache_dtype", "tensor_parallel_size", "pipeline_parallel_size")

    answer = sized(client, confidence=0.9, **{name: option[name] for name in stated})

    assert answer["gpus"] == option["gpus"]
    assert answer["latency"]["ttft_s"]["p95"] == option["ttft_p95_s"]
    assert answer["latency"]["tpot_s"]["p95"] == option["tpot_p95_s"]


def test_a_recommendation_takes_no_fewer_gpus_with_more_certainty(client: TestClient) -> None:
    one_gpu = {key: value for key, value in ASKED.items() if key != "gpu"}
    even, sure = (
        client.post("/recommend", json={**one_gpu, "gpus": ["h100"], "confidence": each}).json() for each in (0.5, 0.95)
    )

    assert even["options"][0]["gpus"] <= sure["options"][0]["gpus"]
    assert even["options"][0]["tpot_p95_s"] != sure["options"][0]["tpot_p95_s"]
    assert origins(sure) == ["request"]


def test_rows_side_by_side_are_sized_at_the_confidence(client: TestClient) -> None:
    lists = {"models": [ASKED["model"]], "gpus": [ASKED["gpu"]], "request_rate_per_s": [60]}
    lengths = {"input_tokens": [1000], "output_tokens": [200], "ttft_s": 0.5, "tpot_s": 0.02}
    rows = client.post("/compare", json={**lists, **lengths, "confidence": 0.9}).json()["rows"]

    assert [row["gpus"] for row in rows] == [sized(client, confidence=0.9)["gpus"]]


def test_counts_are_told_in_every_format(client: TestClient) -> None:
    asked = {**ASKED, "confidence": 0.8}
    counts = {each["probability"]: each["gpus"] for each in sized(client, confidence=0.8)["confidence"]["counts"]}
    text, table, gauges = (
        client.post("/size", json={**asked, "format": name}).text for name in ("text", "csv", "prometheus")
    )
    [row] = csv.DictReader(io.StringIO(table))

    assert set(counts) == {0.5, 0.8, 0.95}
    for probability, gpus in counts.items():
        percent = f"{100 * probability:g}"
        assert f"{percent}% {gpus}" in next(line for line in text.splitlines() if line.startswith("GPUs at"))
        assert row[f"confidence.gpus_at_{percent}_percent"] == str(gpus)
        assert f"sizer_confidence_gpus_at_{percent}_percent{{" in gauges
