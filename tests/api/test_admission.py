"""Quick questions never wait for dear ones, what does not fit is told at once, and nobody is worked for who left."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pytest

from service.api.admission import MOST_WAIT_S, Admission, OverloadError, TooDearError
from service.engine.patience import go_on


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What dear work waits for; set in the end, so that no thread is left."""
    event = threading.Event()
    yield event
    event.set()


def until(event: threading.Event) -> None:
    """Work until told to end, looking up now and then whether anybody still waits."""
    while not event.wait(0.002):
        go_on()


def test_a_dear_question_is_put_off_and_answered_among_the_dear(release: threading.Event) -> None:
    admission = Admission(60, cores=1)
    rooms: list[str] = []

    def dear() -> str:
        rooms.append(threading.current_thread().name.split("_")[0])
        if len(rooms) == 2:
            release.set()
        until(release)
        return "answered"

    assert asyncio.run(admission.run("dear", dear)) == "answered"
    assert rooms == ["quick", "dear"]
    admission.close()


def test_quick_questions_are_answered_however_many_dear_ones_were_asked(release: threading.Event) -> None:
    admission = Admission(60, cores=1)

    async def asked() -> list[int]:
        dear = [asyncio.create_task(admission.run("dear", lambda: until(release))) for _ in range(20)]
        while sum(task.done() for task in dear) + admission.dear.num_waiting < 19:  # all but the one that runs  # noqa: ASYNC110 - what is waited for happens in threads
            await asyncio.sleep(0.01)
        answers = [await admission.run("quick", partial(int, number)) for number in range(50)]
        release.set()
        await asyncio.gather(*dear, return_exceptions=True)
        return answers

    assert asyncio.run(asked()) == list(range(50))
    admission.close()


def test_what_would_wait_too_long_is_told_at_once_and_when_to_ask_again(release: threading.Event) -> None:
    admission = Admission(60, cores=1)
    admission.quick.mean_s = MOST_WAIT_S

    async def asked() -> list[object]:
        first = [asyncio.create_task(admission.run("quick", lambda: release.wait(60))) for _ in range(100)]
        while sum(task.done() for task in first) < 95:  # two run, a few wait, the others were told  # noqa: ASYNC110 - what is waited for happens in threads
            await asyncio.sleep(0.001)
        release.set()
        return list(await asyncio.gather(*first, return_exceptions=True))

    results = asyncio.run(asked())
    told = [result for result in results if isinstance(result, OverloadError)]

    assert len(told) >= 95
    assert all(error.retry_after_s >= 1 for error in told)
    assert results.count(True) == 100 - len(told)  # whoever was let in is answered
    admission.close()


def test_what_takes_longer_than_the_patience_is_given_up(release: threading.Event) -> None:
    admission = Admission(0.5, cores=1)
    ended = threading.Event()

    def endless() -> None:
        try:
            until(release)
        finally:
            ended.set()

    with pytest.raises(TooDearError):
        asyncio.run(admission.run("endless", endless))

    assert ended.wait(10)
    assert not release.is_set()
    admission.close()


def test_work_whose_asker_left_is_given_up_and_what_had_not_begun_never_does(release: threading.Event) -> None:
    admission = Admission(60, cores=1)
    begun: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        until(release)

    async def asked() -> None:
        running = [asyncio.create_task(admission.run(number, partial(work, number))) for number in range(2)]
        while len(begun) < 2:  # noqa: ASYNC110 - what is waited for happens in threads
            await asyncio.sleep(0.001)
        waiting = asyncio.create_task(admission.run("waiting", lambda: work(99)))
        await asyncio.sleep(0)
        for task in (*running, waiting):
            task.cancel()
        await asyncio.gather(*running, waiting, return_exceptions=True)

    asyncio.run(asked())
    assert asyncio.run(admission.run("next", lambda: "free")) == "free"

    assert 99 not in begun
    assert admission.quick.num_waiting == 0
    admission.close()


def test_a_kind_that_is_mostly_dear_is_told_at_once_while_the_dear_are_many(release: threading.Event) -> None:
    admission = Admission(60, cores=1)
    admission.dear.mean_s = 60
    begun: list[int] = []

    def dear(number: int) -> None:
        begun.append(number)
        until(release)

    async def asked() -> int:
        tasks = []
        for number in range(20):  # one after the other, as an attacker's connection would
            task = asyncio.create_task(admission.run("dear", partial(dear, number)))
            tasks.append(task)
            with suppress(TimeoutError, OverloadError):
                await asyncio.wait_for(asyncio.shield(task), 0.4)
        told = sum(task.done() for task in tasks)
        release.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        return told

    told = asyncio.run(asked())

    assert told >= 15
    assert len(set(begun)) < 15  # the last ones took no slice of anybody
    admission.close()


def test_what_work_took_is_learnt() -> None:
    admission = Admission(60, cores=1)
    before_s = admission.quick.mean_s

    for number in range(50):
        asyncio.run(admission.run(number, lambda: None))
    lower_s = admission.quick.mean_s
    asyncio.run(admission.run("slow", lambda: time.sleep(0.2)))

    assert lower_s < before_s
    assert admission.quick.mean_s > lower_s
    admission.close()


def test_an_error_is_the_asker_s() -> None:
    admission = Admission(60, cores=1)

    def failing() -> None:
        raise ValueError("as told")

    with pytest.raises(ValueError, match="as told"):
        asyncio.run(admission.run("failing", failing))
    admission.close()


def test_cores_that_one_interpreter_cannot_use_open_no_threads() -> None:
    small, large = Admission(60, cores=1), Admission(60, cores=64)

    assert [admission.quick.room for admission in (small, large)] == [5, 15]  # at the first guess of what work takes
    assert small.dear.room < large.dear.room < 64 * small.dear.room
    for admission in (small, large):
        admission.close()
