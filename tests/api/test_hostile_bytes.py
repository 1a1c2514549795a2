"""Requests that no client library sends: none is an error of the service, which goes on answering."""

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import httpx2
import pytest

from service.api.connections import logger
from service.api.problems import MOST_BYTES
from service.api.seldom import OF_STRANGERS, Seldom
from tests.api.hostile_bytes import ASKED, BYTES, COMPOSED
from tests.api.served import Served, served
from tests.conftest import API_KEY

Answer = TypeVar("Answer")

MOST_S = 0.25  # of the processor, here shared with who asks


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    # What is found once, step times and words of names, is found before the clock runs, and nothing else beside it.
    with served(tmp_path_factory.mktemp("bytes"), builds_ahead=False) as running:
        httpx2.post(f"{running.url}/size", content=ASKED, headers={"content-type": "application/json"}, timeout=60)
        httpx2.get(f"{running.url}/catalog/models/nobody", timeout=60)
        yield running


def timed(ask: Callable[[], Answer]) -> tuple[Answer, float]:
    """An answer, and the processor time of it: the least of three where the first was slow, as others share it."""
    times_s: list[float] = []
    while True:
        began_s = time.process_time()
        answer = ask()
        times_s.append(time.process_time() - began_s)
        if times_s[-1] < MOST_S or len(times_s) == 3:
            return answer, min(times_s)


def statuses(answer: bytes) -> set[int]:
    """Return the statuses of all answers."""
    return {int(line[9:12]) for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")}


@pytest.mark.parametrize(("request_", "allowed"), BYTES.values(), ids=BYTES)
def test_hostile_bytes_are_refused_in_time_and_the_service_goes_on(
    service: Served, request_: bytes, allowed: set[int]
) -> None:
    answer, took_s = timed(lambda: service.said(request_))

    assert statuses(answer)
    assert statuses(answer) <= allowed
    assert b"evil" not in answer
    assert took_s < MOST_S
    assert httpx2.get(f"{service.url}/livez").status_code == 200


@pytest.mark.parametrize(("path", "media_type", "body"), COMPOSED.values(), ids=COMPOSED)
def test_what_nobody_could_mean_is_refused_in_time(service: Served, path: str, media_type: str, body: bytes) -> None:
    headers = {"content-type": media_type, "x-api-key": API_KEY}
    response, took_s = timed(lambda: httpx2.post(f"{service.url}{path}", content=body, headers=headers, timeout=60))

    assert response.status_code < 500
    assert response.status_code < 400 or len(response.content) <= MOST_BYTES
    assert took_s < 2 * MOST_S  # megabytes are written and read, here too


def test_a_flood_of_what_is_no_http_is_no_flood_of_lines() -> None:
    record = logger.makeRecord(logger.name, 30, "", 0, OF_STRANGERS[0], (), None)
    other = logger.makeRecord(logger.name, 30, "", 0, "anything else", (), None)
    seldom = Seldom()

    assert [seldom.filter(record) for _ in range(1_000)] == [True, *[False] * 999]
    assert all(seldom.filter(other) for _ in range(10))
    assert any(isinstance(each, Seldom) for each in logger.filters)
