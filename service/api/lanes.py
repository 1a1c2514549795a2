"""Threads of their own, few and counted, for work that may be slow: it never takes those that answer questions."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore
from time import monotonic
from typing import Final, TypeVar

from service.catalog.deadline import check_deadline, within

Result = TypeVar("Result")
MARGIN_S: Final = 0.2  # the work's own deadline comes first, so that what became of it is known


class FullError(RuntimeError):
    """As many wait already as may; the next one is told at once."""


class Lane:
    """Runs work in turn. Who waits longer than the lane's patience is told so, and what has not begun never does."""

    def __init__(self, name: str, *, width: int, waiting: int, patience_s: float) -> None:
        """Open the lane.

        Args:
            name: of its threads.
            width: what runs at once.
            waiting: what may wait for its turn.
            patience_s: from being asked to the answer; the database is given up on by then. [s]
        """
        self._pool = ThreadPoolExecutor(width, thread_name_prefix=name)
        self._room = Semaphore(width + waiting)
        self._patience_s = patience_s

    async def run(self, work: Callable[[], Result]) -> Result:
        """Return what the work returns.

        Raises:
            FullError: too many wait already.
            TimeoutError: it was not done in time; a thread that is still at it keeps its place until it ends.
        """
        if not self._room.acquire(blocking=False):
            raise FullError
        ends_at = monotonic() + self._patience_s - MARGIN_S
        future = self._pool.submit(_limited, work, ends_at)
        future.add_done_callback(lambda _: self._room.release())
        return await asyncio.wait_for(asyncio.wrap_future(future), self._patience_s)

    def close(self, *, at_once: bool = False) -> None:
        """Begin nothing more, and wait for what has begun, unless at once."""
        self._pool.shutdown(wait=not at_once, cancel_futures=True)


def _limited(work: Callable[[], Result], ends_at: float) -> Result:
    with within(ends_at - monotonic()):
        check_deadline()
        return work()
