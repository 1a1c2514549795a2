"""What monitors and logs see of the service: bounded, and without a secret."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from tests.conftest import API_KEY, seeded_service, service_settings

QUESTION: dict[str, Any] = {
    "model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 8, "input_tokens": 1000, "output_tokens": 100,
}  # fmt: skip
CANARY = "canary-secret-5d41402a"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[TestClient]:
    with seeded_service(service_settings(tmp_path, json_log=True)) as client:
        yield client


def samples(client: TestClient) -> dict[tuple[str, tuple[str, ...]], float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        (sample.name, tuple(value for name, value in sorted(sample.labels.items()) if name != "le")): sample.value
        for family in families
        for sample in family.samples
    }


def test_requests_are_counted_by_route_and_kept_answers_told_apart(service: TestClient) -> None:
    for _ in range(3):
        service.get("/size", params=QUESTION)
    service.get("/catalog/gpus/h100")
    service.get("/workloads/nobody/replicas")
    seen = samples(service)

    assert seen["sizer_http_requests_total", ("GET", "/size", "200")] == 3
    assert seen["sizer_kept_replies_total", ("/size",)] == 2
    assert seen["sizer_http_requests_total", ("GET", "/catalog/gpus/{name}", "200")] == 1
    assert seen["sizer_http_requests_total", ("GET", "/workloads/{name}/replicas", "404")] == 1
    assert seen["sizer_catalog_revision", ()] >= 1
    assert seen["sizer_answers_kept", ()] == 1
    assert ("sizer_work_mean_seconds", ("quick",)) in seen


def test_what_is_refused_before_its_route_is_counted_there(service: TestClient) -> None:
    assert service.put("/workloads/chat", json={}, headers={"x-api-key": "nobody"}).status_code == 401
    assert service.get("/catalog/models/a/b", headers={"x-api-key": "nobody"}).status_code == 401
    assert service.post("/size:batch", data={"model": "a"}).status_code == 415
    assert service.post("/workloads", data={"model": "a"}).status_code == 415
    assert service.post("/nothing", data={"model": "a"}).status_code == 415
    seen = samples(service)

    for counted in (
        ("PUT", "/workloads/{name}", "401"),
        ("GET", "/catalog/models/{name:any_name}", "401"),
        ("POST", "/size:batch", "415"),
        ("POST", "/workloads", "415"),
        ("POST", "unmatched", "415"),
    ):
        assert seen["sizer_http_requests_total", counted] == 1, counted


def test_no_label_grows_with_what_callers_send(service: TestClient) -> None:
    service.get("/nothing")
    before = len(samples(service))
    for number in range(30):
        service.get(f"/nothing-{number}")
        service.get(f"/workloads/w{number}")
        service.request(f"M{number}", "/size")

    assert len(samples(service)) - before < 40  # three routes and their buckets, not ninety


def test_an_answer_tells_its_id_and_time(service: TestClient) -> None:
    named = service.get("/livez", headers={"x-request-id": "abc-1"})
    odd = service.get("/livez", headers={"x-request-id": "two words"})

    assert named.headers["x-request-id"] == "abc-1"
    assert odd.headers["x-request-id"] != "two words"
    assert named.headers["server-timing"].startswith("total;dur=")


def test_secrets_reach_neither_lines_nor_metrics_nor_answers(
    service: TestClient, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("service.requests").addHandler(handler)
    try:
        answers = [
            service.get("/size", params={**QUESTION, "model": CANARY}, headers={"x-api-key": API_KEY}),
            service.get("/livez", headers={"x-api-key": CANARY, "authorization": f"Bearer {CANARY}"}),
            service.get("/size", params=QUESTION, headers={"authorization": f"Bearer {CANARY}"}),
            service.put("/workloads/chat", json={}, headers={"x-api-key": CANARY}),
        ]
    finally:
        logging.getLogger("service.requests").removeHandler(handler)
    told = [json.loads(line) for line in lines]

    assert [answer.status_code for answer in answers] == [404, 200, 401, 401]
    assert [line["status"] for line in told] == [404, 200, 401, 401]
    assert told[0]["caller"].startswith("configured key ")
    written = "".join((*lines, caplog.text.replace("httpx", ""), service.get("/metrics").text, *capfd.readouterr()))
    assert API_KEY not in "".join((*lines, service.get("/metrics").text))
    assert CANARY not in "".join((*lines, service.get("/metrics").text))
    assert CANARY not in "".join(answer.text for answer in answers[1:])
    assert "Bearer" not in written
