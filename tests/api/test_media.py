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
