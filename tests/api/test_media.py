"""Accept may name how an answer is written, where the question does not."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.conftest import seeded_service, service_settings

ADDRESS = "/size?model=qwen3-32b&gpu=h100&concurrent_requests=8&input_tokens=900&output_tokens=90&latency=none"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with seeded_service(service_settings(tmp_path_factory.mktemp("media"))) as client:
        yield client


@pytest.mark.parametrize(
    ("accept", "name"),
    [
        ("text/csv", "csv"),
        ("Text/CSV; charset=utf-8", "csv"),
        ("application/yaml", "yaml"),
        ("text/plain", "text"),
        ("*/*", "json"),
        ("application/json", "json"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "json"),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", "json"),
        ("image/png", "json"),
        ("text/csv;q=0", "json"),
        ("text/csv; Q=0.000", "json"),
        ("text/csv;q=0.001", "csv"),
    ],
)
def test_a_type_alone_is_the_format(service: TestClient, accept: str, name: str) -> None:
    answers = [service.get(ADDRESS, headers={"accept": accept}) for _ in range(2)]  # the second is kept
    stated = service.get(f"{ADDRESS}&format={name}", headers={"accept": "image/png"})

    assert [answer.content for answer in answers] == [stated.content] * 2
    assert answers[0].headers["content-type"] == stated.headers["content-type"]
    assert answers[1].headers["vary"] == "Accept"


def test_a_format_that_is_stated_is_the_format(service: TestClient) -> None:
    both = service.get(f"{ADDRESS}&format=json", headers={"accept": "text/csv"})
    number = service.get(f"{ADDRESS}&field=gpus", headers={"accept": "text/csv"})

    assert both.headers["content-type"] == "application/json"
    assert number.text == "1\n"


@pytest.mark.parametrize("path", [ADDRESS, "/size", "/catalog/gpus"])
def test_a_body_of_a_get_is_refused_and_not_ignored(service: TestClient, path: str) -> None:
    service.get(path)  # what is kept is not answered to it either
    for method in ("GET", "HEAD"):
        refused = service.request(method, path, content=b'{"model": "qwen3-32b"}')
        assert refused.status_code == 422
    [fault] = service.request("GET", path, content=b"{}").json()["errors"]
    assert fault["field"] == "body"
    assert fault["accepted"].startswith("no body" if "catalog" in path else "send it by POST: curl --json '{")


@pytest.mark.parametrize("path", [ADDRESS, "/size", "/catalog/gpus", "/livez"])
def test_a_body_in_chunks_of_a_get_is_refused_as_well(service: TestClient, path: str) -> None:
    service.get(path)
    for method in ("GET", "HEAD"):
        assert service.request(method, path, content=iter((b'{"model":', b"1}"))).status_code == 422
    [fault] = service.request("GET", path, content=iter((b"{}",))).json()["errors"]
    assert (fault["field"], fault["detail"]) == ("body", "a GET has a body, which is not read")


def test_no_chunk_is_no_body(service: TestClient) -> None:
    asked = service.request("GET", ADDRESS, headers={"transfer-encoding": "chunked"})

    assert (asked.status_code, asked.content) == (200, service.get(ADDRESS).content)


@pytest.mark.parametrize("length", ["0", "00"])
def test_an_empty_body_of_a_get_is_none(service: TestClient, length: str) -> None:
    plain, empty = service.get(ADDRESS), service.get(ADDRESS, headers={"content-length": length})

    assert (empty.status_code, empty.content) == (200, plain.content)
    assert service.request("GET", ADDRESS, content=b"").status_code == 200
