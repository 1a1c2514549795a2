"""A repeated question leaves as the bytes it left as before, until the catalog is another."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.api.replies import MOST_BODY_BYTES, Replies
from tests.conftest import API_KEY, seeded_service, service_settings

QUESTION: dict[str, Any] = {
    "model": "qwen3-32b",
    "gpu": "h100",
    "concurrent_requests": 8,
    "input_tokens": 900,
    "output_tokens": 90,
}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[TestClient]:
    with seeded_service(service_settings(tmp_path)) as client:
        client.headers["X-API-Key"] = API_KEY
        yield client


def kept(client: TestClient) -> int:
    """Return how many replies are kept."""
    layer: Any = client.app
    layer = layer.middleware_stack
    while not isinstance(layer, Replies):
        layer = layer.app if hasattr(layer, "app") else layer._app  # noqa: SLF001 - as below
    return len(layer._kept)  # noqa: SLF001 - nothing shows it from outside, by intent


def test_a_repeated_question_is_the_same_to_the_byte_and_kept_once(service: TestClient) -> None:
    first, second = service.get("/size", params=QUESTION), service.get("/size", params=QUESTION)

    assert first.status_code == second.status_code == 200
    assert first.content == second.content
    of_the_moment = dict.fromkeys(("x-catalog-age", "x-request-id", "server-timing"), "")
    assert {**first.headers, **of_the_moment} == {**second.headers, **of_the_moment}
    assert kept(service) == 1
    assert service.post("/size", json=QUESTION).content == first.content
    assert kept(service) == 2


@pytest.mark.parametrize(
    "how", [{}, {"field": "gpus"}, {"format": "yaml"}, {"format": "csv"}, {"format": "prometheus"}]
)
def test_what_has_not_changed_is_not_sent_again(service: TestClient, how: dict[str, str]) -> None:
    params = {**QUESTION, **how}
    etag = service.get("/size", params=params).headers["etag"]

    unchanged = service.get("/size", params=params, headers={"if-none-match": etag})
    changed = service.get("/size", params=params, headers={"if-none-match": '"another"'})

    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged.headers["etag"] == etag
    assert changed.status_code == 200
    assert changed.headers["cache-control"] == "no-cache, stale-if-error=600"


def test_another_catalog_is_another_answer(service: TestClient) -> None:
    before = service.get("/size", params=QUESTION)
    assert service.delete("/catalog/gpus/t4").status_code == 200

    after = service.get("/size", params=QUESTION, headers={"if-none-match": before.headers["etag"]})

    assert after.status_code == 200
    assert after.json()["catalog_revision"] == before.json()["catalog_revision"] + 1
    assert kept(service) == 1


def test_in_a_rush_what_is_kept_is_answered_and_the_rest_told_to_come_again(service: TestClient) -> None:
    """Also in the middle of a body, and without reading the question: the event loop has enough to do."""
    before = service.get("/size", params=QUESTION)
    quick = service.app.state.reception.admission.quick  # type: ignore[attr-defined]
    for _ in range(1_000):
        quick.enter()

    repeated = [service.get("/size", params=QUESTION) for _ in range(5)]
    distinct = service.post("/size", json={**QUESTION, "input_tokens": 901})
    others = [service.get(path).status_code for path in ("/livez", "/readyz", "/catalog/gpus")]
    for _ in range(1_000):
        quick.leave()

    assert [response.content for response in repeated] == [before.content] * 5
    assert distinct.status_code == 503
    assert distinct.headers["content-type"] == "application/problem+json"
    assert int(distinct.headers["retry-after"]) >= 1
    assert others == [200] * 3
    assert service.post("/size", json={**QUESTION, "input_tokens": 901}).status_code == 200


def test_a_refusal_is_not_kept(service: TestClient) -> None:
    for _ in range(2):
        assert service.get("/size", params={**QUESTION, "gpu": "nothing"}).status_code == 404
    refused = service.get("/size", params={**QUESTION, "gpu": "nothing"})

    assert kept(service) == 0
    assert "etag" not in refused.headers
    assert refused.headers["cache-control"] == "no-store"


def test_bodies_are_told_apart_by_every_byte(service: TestClient) -> None:
    json = {"content-type": "application/json"}
    compact = b'{"model":"qwen3-32b","gpu":"h100","concurrent_requests":8,"input_tokens":900,"output_tokens":90}'
    first = service.post("/size", content=compact, headers=json)
    second = service.post("/size", content=compact.replace(b"900", b"901"), headers=json)

    assert first.status_code == second.status_code == 200
    assert first.content != second.content
    assert service.post("/size", content=compact, headers={"content-type": "text/plain"}).status_code == 415
    assert service.post("/size?model=x", content=compact, headers=json).status_code == 422


def test_a_large_body_is_answered_and_not_kept(service: TestClient) -> None:
    padded = b" " * (MOST_BODY_BYTES + 1)
    body = (
        b'{"model":"qwen3-32b","gpu":"h100","concurrent_requests":8,"input_tokens":900,"output_tokens":90'
        + padded
        + b"}"
    )

    response = service.post("/size", content=body, headers={"content-type": "application/json"})

    assert response.status_code == 200
    assert kept(service) == 0


def test_answers_say_how_old_the_catalog_may_be(service: TestClient) -> None:
    response = service.get("/size", params=QUESTION)

    assert int(response.headers["x-catalog-age"]) >= 0
    assert "x-catalog-stale" not in response.headers


def test_answers_from_a_catalog_that_nobody_confirmed_say_so(tmp_path: Path) -> None:
    from service.main import create_app  # noqa: PLC0415

    away = service_settings(tmp_path, database_url=f"sqlite:///{tmp_path}/not-there.sqlite3")
    with TestClient(create_app(away)) as service:
        response = service.get("/size", params=QUESTION)

    assert response.status_code == 200
    assert response.headers["x-catalog-stale"] == "true"
