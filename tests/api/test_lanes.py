"""A lane keeps slow work to itself: what does not fit is told at once, what takes too long in time."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from service.api.lanes import MARGIN_S, FullError, Lane
from service.catalog.deadline import DeadlineError, check_deadline, seconds_left
from tests.waiting import eventually


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def outcomes(lane: Lane, work: Callable[[], object], count: int) -> list[object]:
    """Ask for the same work so many times at once."""

    async def asked() -> list[object]:
        return list(await asyncio.gather(*(lane.run(work) for _ in range(count)), return_exceptions=True))

    return asyncio.run(asked())


def kinds(results: list[object]) -> dict[str, int]:
    names = [type(it).__name__ for it in results]
    return {name: names.count(name) for name in names}


def test_no_more_runs_at_once_than_the_lane_is_wide() -> None:
    running: list[int] = []
    most: list[int] = []

    def work() -> None:
        running.append(1)
        most.append(len(running))
        time.sleep(0.02)
        running.pop()

    lane = Lane("test", width=2, waiting=20, patience_s=10)
    results = outcomes(lane, work, 10)
    lane.close()

    assert results == [None] * 10
    assert max(most) <= 2


def test_what_does_not_fit_is_told_at_once(release: threading.Event) -> None:
    lane = Lane("test", width=1, waiting=2, patience_s=0.5)

    began = time.monotonic()
    results = outcomes(lane, lambda: release.wait(60), 10)
    took_s = time.monotonic() - began
    release.set()
    lane.close()

    assert kinds(results) == {"TimeoutError": 3, "FullError": 7}
    assert took_s < 30


def test_a_thread_that_is_still_at_it_keeps_its_place_and_gives_it_back(release: threading.Event) -> None:
    lane = Lane("test", width=1, waiting=0, patience_s=0.3)
    assert kinds(outcomes(lane, lambda: release.wait(60), 1)) == {"TimeoutError": 1}

    while_stuck = kinds(outcomes(lane, lambda: 7, 1))
    release.set()

    assert while_stuck == {FullError.__name__: 1}
    assert eventually(lambda: outcomes(lane, lambda: 7, 1) == [7])
    lane.close()


def test_work_that_waited_too_long_for_its_turn_never_begins(release: threading.Event) -> None:
    begun: list[str] = []
    lane = Lane("test", width=1, waiting=1, patience_s=0.3)

    async def asked() -> list[object]:
        first = lane.run(lambda: release.wait(60))
        second = lane.run(lambda: begun.append("second"))
        return list(await asyncio.gather(first, second, return_exceptions=True))

    results = asyncio.run(asked())
    release.set()
    time.sleep(0.2)
    lane.close()

    assert kinds(results) == {"TimeoutError": 2}
    assert begun == []


def test_the_work_s_own_deadline_comes_before_the_lane_s() -> None:
    lane = Lane("test", width=1, waiting=0, patience_s=1.0)
    [left] = outcomes(lane, seconds_left, 1)

    def late() -> None:
        time.sleep(1.0 - MARGIN_S + 0.05)
        check_deadline()

    # A thread that is woken late may be told by the lane after all, but not each time.
    told = eventually(lambda: isinstance(outcomes(lane, late, 1)[0], DeadlineError))
    lane.close()

    assert isinstance(left, float)
    assert left <= 1.0 - MARGIN_S
    assert told


def test_an_error_is_the_caller_s() -> None:
    def broken() -> None:
        raise KeyError("that one")

    lane = Lane("test", width=1, waiting=0, patience_s=5)
    with pytest.raises(KeyError, match="that one"):
        asyncio.run(lane.run(broken))
    lane.close()
