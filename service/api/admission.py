"""Admission by cost: quick questions and dear ones have threads of their own, and what does not fit is told at once.

Nobody can tell what a question costs before it is answered. So each begins among the quick ones; what takes longer
than its slice there is put off, and begins again among the dear ones, where what it simulated so far is kept. However
many dear questions are asked, a quick one waits for slices, never for them.
"""

import os
from asyncio import CancelledError, wrap_future
from asyncio import timeout as timeout_of
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import inf
from threading import Lock
from time import monotonic, thread_time
from traceback import clear_frames
from typing import Final, TypeVar

from cachetools import LRUCache

from service.engine.patience import GivenUpError, go_on, working_for

Result = TypeVar("Result")
SLICE_S: Final = 0.15  # of the processor, of a question among the quick ones
SLICES_OF_TIME: Final = 2  # as long may it take by the clock: on a busy machine nothing is dear that waits for a core
MOST_WAIT_S: Final = 0.08  # for a turn among the quick ones; with a slice, what most callers see at worst: under 250 ms
MOST_WIDTH: Final = 3  # threads that compute share one interpreter: more of them only keep the event loop waiting
ALWAYS_WAIT: Final = 2  # for each thread, however long work takes: what one dashboard asks at once
FIRST_GUESS_S: Final = 0.02  # of what a question takes, before any was asked
NEWEST_SHARE: Final = 0.1  # of the newest in what work took lately
MOST_KINDS: Final = 1024
MOSTLY: Final = 0.5


def num_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def let_go(error: BaseException) -> None:
    """Empty the frames that an error came through: who keeps the error would keep all that they worked with."""
    each: BaseException | None = error
    while each is not None:
        clear_frames(each.__traceback__)
        each = each.__context__


class OverloadError(RuntimeError):
    """It would wait too long for its turn."""

    def __init__(self, retry_after_s: int) -> None:
        """Keep when asking again makes sense."""
        super().__init__()
        self.retry_after_s = retry_after_s


class TooDearError(RuntimeError):
    """It was not done by its deadline."""


class _PutOffError(Exception):
    """It took longer than its slice."""


@dataclass(slots=True)
class Ticket:
    """One question on its way; whoever asked may leave."""

    ends_at: float
    is_gone: bool = False

    def has_given_up(self) -> bool:
        """Return whether nobody waits for it any longer."""
        return self.is_gone or monotonic() > self.ends_at


class Turns:
    """Threads, who waits for one, and what work took there lately."""

    def __init__(self, name: str, *, width: int, most_wait_s: float) -> None:
        """Open as many threads as the width, for whoever expects to wait no longer than `most_wait_s`."""
        self._threads = ThreadPoolExecutor(width, thread_name_prefix=name)
        self._width, self._most_wait_s = width, most_wait_s
        self._counting = Lock()
        self.num_waiting = 0
        self.mean_s = FIRST_GUESS_S

    @property
    def wait_s(self) -> float:
        """Return how long the next one would wait, by what work took lately. [s]."""
        return self.num_waiting * self.mean_s / self._width

    @property
    def is_full(self) -> bool:
        """Return whether the next one would wait too long; a few always may."""
        return self.num_waiting >= ALWAYS_WAIT * self._width and self.wait_s > self._most_wait_s

    @property
    def room(self) -> int:
        """Return how many may be here at once, at work or waiting."""
        waiting = int(self._most_wait_s * self._width / max(self.mean_s, 1e-4))
        return self._width + max(ALWAYS_WAIT * self._width, waiting)

    async def run(self, work: Callable[[], Result], ticket: Ticket, slice_s: float | None = None) -> Result:
        """Return what the work returns.

        Raises:
            OverloadError: it would wait too long.
            TimeoutError: it was not done when its ticket ended.
            _PutOffError: it took longer than its slice.
        """
        if self.is_full:
            raise OverloadError(max(round(self.wait_s), 1))
        turn = _Turn(self, ticket, slice_s)
        done = self._threads.submit(turn.work, work)
        done.add_done_callback(turn.leave_the_queue)
        try:
            async with timeout_of(max(ticket.ends_at - monotonic(), 0)):
                return await wrap_future(done)
        except (CancelledError, TimeoutError):
            ticket.is_gone = True
            raise

    def enter(self) -> None:
        """Count one more that waits."""
        with self._counting:
            self.num_waiting += 1

    def leave(self, took_s: float | None = None) -> None:
        """Count one less that waits, or learn what one took."""
        with self._counting:
            if took_s is None:
                self.num_waiting -= 1
            else:
                self.mean_s += NEWEST_SHARE * (took_s - self.mean_s)

    def close(self) -> None:
        """Begin nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Turn:
    """A piece of work that waits for a thread, and how long it may take there."""

    def __init__(self, turns: Turns, ticket: Ticket, slice_s: float | None) -> None:
        self._turns, self._ticket, self._slice_s = turns, ticket, slice_s
        self._ends_at, self._spent_at = ticket.ends_at, inf
        self._waits = True
        turns.enter()

    def leave_the_queue(self, _: object = None) -> None:
        """Wait no longer: it began, or never will."""
        if self._waits:
            self._waits = False
            self._turns.leave()

    def work(self, work: Callable[[], Result]) -> Result:
        """Do it, while somebody waits for it and the slice lasts."""
        self.leave_the_queue()
        began_at = monotonic()
        if self._slice_s is not None:
            self._ends_at = began_at + SLICES_OF_TIME * self._slice_s
            self._spent_at = thread_time() + self._slice_s
        try:
            with working_for(self._is_over):
                go_on()
                return work()
        except GivenUpError as error:
            let_go(error)
            if self._ticket.has_given_up():
                raise TimeoutError from None
            raise _PutOffError from None
        except Exception as error:
            let_go(error)
            raise
        finally:
            self._turns.leave(monotonic() - began_at)

    def _is_over(self) -> bool:
        return self._ticket.has_given_up() or thread_time() > self._spent_at or monotonic() > self._ends_at


class Admission:
    """Lets questions in: each begins among the quick ones, and is put off where it is none."""

    def __init__(self, patience_s: float, cores: int | None = None) -> None:
        """Open both rooms.

        Args:
            patience_s: from a question to its answer, or to being told that there is none. [s]
            cores: that this process may use; None: counted.
        """
        cores = cores or num_cores()
        self._patience_s = patience_s
        self.quick = Turns("quick", width=min(max(cores - 1, 1), MOST_WIDTH), most_wait_s=MOST_WAIT_S)
        self.dear = Turns("dear", width=min(max(cores // 2, 1), MOST_WIDTH), most_wait_s=patience_s / 2)
        self.num_dear = 0
        self._share_put_off: LRUCache[Hashable, float] = LRUCache(MOST_KINDS)

    async def run(self, kind: Hashable, work: Callable[[], Result]) -> Result:
        """Return what the work returns; it may be begun twice.

        Args:
            kind: of the question: those of one kind cost about the same.
            work: what looks up whether to go on.

        Raises:
            OverloadError: too much is waiting already.
            TooDearError: it was not done within the patience.
        """
        ticket = Ticket(monotonic() + self._patience_s)
        try:
            return await self._run(kind, work, ticket)
        except TimeoutError as error:
            raise TooDearError from error

    async def _run(self, kind: Hashable, work: Callable[[], Result], ticket: Ticket) -> Result:
        share = self._share_put_off.get(kind, 0.0)
        if self.dear.is_full and share > MOSTLY:
            raise OverloadError(max(round(self.dear.wait_s), 1))
        try:
            result = await self.quick.run(work, ticket, SLICE_S)
        except _PutOffError:
            self._share_put_off[kind] = share + NEWEST_SHARE * (1 - share)
        else:
            self._share_put_off[kind] = share * (1 - NEWEST_SHARE)
            return result
        self.num_dear += 1
        try:
            return await self.dear.run(work, ticket)
        finally:
            self.num_dear -= 1

    def close(self) -> None:
        """Begin nothing more."""
        self.quick.close()
        self.dear.close()
