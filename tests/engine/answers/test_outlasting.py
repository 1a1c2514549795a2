"""A rate with a stated time of each request, and requests that take longer. Referee: the same rate as arrivals."""

import re
from typing import Any

import pytest
from starlette.testclient import TestClient

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b", "gpu": "l40s", "request_rate_per_s": 20, "input_tokens": 1000, "output_tokens": 400,
    "ttft_s": 1, "tpot_s": 0.05,
}  # fmt: skip
SHORT = ASKED | {"request_duration_s": 2}  # they take 16 s
POD = {"tensor_parallel_size": 1, "pipeline_parallel_size": 1}


def told(client: TestClient, path: str, asked: dict[str, Any]) -> dict[str, Any]:
    response = client.post(path, json=asked)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_requests_that_take_longer_than_stated_are_sized_as_arrivals(client: TestClient) -> None:
    """One GPU was told of 20 a second, on which 2.5 are answered."""
    coming, short = told(client, "/size", ASKED), told(client, "/size", SHORT)

    assert short["gpus"] == coming["gpus"] > 1
    assert short["at_load"]["requests_per_s"] > 19
    [warning] = [each for each in short["warnings"] if "request_duration_s=2" in each]
    assert "2.5" in warning
    assert not [each for each in coming["warnings"] if "request_duration_s" in each]


def test_so_are_pods_and_options(client: TestClient) -> None:
    pods, short_pods = (told(client, "/replicas", asked | POD) for asked in (ASKED, SHORT))
    listed = {"gpus": "l40s,h100", "weight_formats": "bf16"}
    options, short_options = (
        told(client, "/recommend", {name: asked[name] for name in asked if name != "gpu"} | listed)
        for asked in (ASKED, SHORT)
    )

    assert short_pods["replicas"] == pods["replicas"] > 1
    assert [each["gpus"] for each in short_options["options"]] == [each["gpus"] for each in options["options"]]
    assert any("request_duration_s=2" in each for each in short_options["warnings"])


def test_requests_that_stay_longer_than_they_take_are_so_many_users(client: TestClient) -> None:
    staying = told(client, "/size", ASKED | {"request_duration_s": 60, "levers": "none"})
    rate = {"concurrent_requests": 1200, "request_rate_per_s": None}

    assert staying["gpus"] == told(client, "/size", ASKED | rate | {"levers": "none"})["gpus"]
    assert not [each for each in staying["warnings"] if "request_duration_s" in each]


def test_what_waits_more_is_what_is_asked_for_and_not_carried(client: TestClient) -> None:
    """`0 more wait every second` was told of 2 a second of which 1.24 are carried."""
    asked = {"model": "qwen3-32b", "gpu": "h100", "request_rate_per_s": 2, "input_tokens": 400, "output_tokens": 900}
    warnings = told(client, "/capacity", asked | {"request_duration_s": 20})["warnings"]
    [warning] = [each for each in warnings if "more wait every second" in each]
    rate, carried, waiting = map(float, re.findall(r"[0-9.]+(?= )", warning))

    assert carried + waiting == pytest.approx(rate, rel=0.01)
