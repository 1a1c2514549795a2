"""Questions over a real socket: answered in time or told why not, computed once for all who ask, never for nobody."""

import asyncio
import gc
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from service.engine.patience import GivenUpError, go_on
from service.questions.answers import Answer, Row
from service.questions.asked import Question
from service.questions.registry import QUESTIONS
from service.questions.sources import Sources
from service.running import LOOKED_THROUGH_AFTER
from tests.api.served import Served, served
from tests.questions.toy import ToyQuery, Words
from tests.waiting import eventually

QUESTION: dict[str, Any] = {
    "model": "qwen3-32b",
    "gpu": "h100",
    "concurrent_requests": 8,
    "input_tokens": 900,
    "output_tokens": 90,
}


class Work:
    """What the slow question did, and what it waits for."""

    release = threading.Event()
    begun: list[int] = []  # noqa: RUF012 - shared by the one question there is
    given_up: list[int] = []  # noqa: RUF012


class SlowAnswer(Answer[Words]):
    """How many words fit, in the end."""

    def rows(self) -> Sequence[Row]:
        return [self.document]

    def lines(self) -> Sequence[str]:
        return ["slow"]


class SlowQuery(ToyQuery):
    """How many words, in the end?"""

    def answer(self, sources: Sources) -> SlowAnswer:  # type: ignore[override]
        Work.begun.append(self.bytes_per_word)
        while not Work.release.wait(0.002):
            try:
                go_on()
            except GivenUpError:
                Work.given_up.append(self.bytes_per_word)
                raise
        result = Words(feasible=True, gpu="h100", words=1, bytes_per_word=self.bytes_per_word)
        return SlowAnswer(result, sources.catalog.revision)


class SlowBody(SlowQuery):
    """`SlowQuery`, as JSON."""


SLOW = Question(
    name="slow",
    summary="Slow",
    description="Slow",
    query=SlowQuery,
    body=SlowBody,
    answer=SlowAnswer,
    examples={"slow": {"summary": "slow", "value": {"gpu": "h100"}}},
    abridged={},
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("reception")
    with served(folder, questions=(*QUESTIONS, SLOW)) as running:
        yield running
        Work.release.set()


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    Work.release.clear()
    Work.begun.clear()
    Work.given_up.clear()
    yield
    Work.release.set()


def slow(number: int) -> dict[str, Any]:
    return {"gpu": "h100", "bytes_per_word": number}


def test_a_question_whose_client_left_is_given_up(service: Served) -> None:
    with service.connected() as connection:
        connection.sendall(b"GET /slow?gpu=h100&bytes_per_word=101 HTTP/1.1\r\nhost: here\r\n\r\n")
        assert eventually(lambda: 101 in Work.begun)

    assert eventually(lambda: 101 in Work.given_up)
    assert httpx2.get(f"{service.url}/size", params=QUESTION, timeout=60).status_code == 200


def test_forty_five_dear_questions_cost_no_cheap_one_its_answer(service: Served) -> None:
    """Neither while they run nor after their clients left, and the service ends when told to."""
    connections = [service.connected() for _ in range(45)]
    for number, connection in enumerate(connections):
        connection.sendall(b"GET /slow?gpu=h100&bytes_per_word=%d HTTP/1.1\r\nhost: here\r\n\r\n" % (200 + number))
    assert eventually(lambda: len(set(Work.begun)) >= 2)

    during = [cheap(service, number) for number in range(5)]
    for connection in connections:
        connection.close()
    after = [cheap(service, 10 + number) for number in range(5)]

    assert during == after == [200] * 5
    assert httpx2.get(f"{service.url}/livez").status_code == 200
    begun = set(Work.begun)
    assert eventually(lambda: begun <= set(Work.given_up))


def cheap(service: Served, number: int) -> int:
    """Ask as a caller does who comes again when told to."""
    question = {**QUESTION, "concurrent_requests": 8 + number}
    for _ in range(20):
        response = httpx2.get(f"{service.url}/size", params=question, timeout=60)
        if response.status_code != 503:
            break
        assert int(response.headers["retry-after"]) >= 1
        time.sleep(0.2)
    return response.status_code


def test_a_question_asked_by_many_is_computed_once_and_for_whoever_stays(service: Served) -> None:
    async def asked() -> list[int]:
        async with httpx2.AsyncClient(timeout=60) as client:
            url = f"{service.url}/slow"
            tasks = [asyncio.create_task(client.post(url, json=slow(300))) for _ in range(3)]
            while 300 not in Work.begun:  # noqa: ASYNC110 - what is waited for happens in threads
                await asyncio.sleep(0.01)
            tasks[0].cancel()
            await asyncio.sleep(0.1)
            Work.release.set()
            return [response.status_code for response in await asyncio.gather(*tasks[1:])]

    assert asyncio.run(asked()) == [200] * 2
    assert Work.begun.count(300) <= 2  # among the quick ones, and among the dear ones
    assert 300 not in Work.given_up or Work.begun.count(300) == 2


def test_a_question_that_takes_too_long_is_told_so(tmp_path: Path) -> None:
    with served(tmp_path, questions=(*QUESTIONS, SLOW), question_seconds=1) as hasty:
        response = httpx2.post(f"{hasty.url}/slow", json=slow(400), timeout=60)

    assert response.status_code == 503
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["type"] == "/problems/too-dear"
    assert "ask again" in response.json()["detail"]
    assert response.headers["retry-after"] == "1"
    assert eventually(lambda: 400 in Work.given_up)


def test_all_that_is_kept_is_looked_through_for_garbage_when_nobody_waits(service: Served) -> None:
    """It stops every thread for as long as dozens of answers take."""
    reception = service.app.state.reception
    assert eventually(lambda: reception.is_idle)

    with service.connected() as connection:
        connection.sendall(b"GET /slow?gpu=h100&bytes_per_word=501 HTTP/1.1\r\nhost: here\r\n\r\n")
        assert eventually(lambda: 501 in Work.begun)
        is_idle = reception.is_idle

    assert not is_idle
    assert eventually(lambda: reception.is_idle)
    assert gc.get_threshold() == LOOKED_THROUGH_AFTER
