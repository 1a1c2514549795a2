"""One deadline for all that a piece of work asks of the database, however many statements that takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


class DeadlineError(RuntimeError):
    """The time for a piece of work is up; what it began is rolled back."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit what is asked of the database inside the block; an earlier deadline around it stays."""
    before = _deadline.get()
    ends = monotonic() + seconds
    token = _deadline.set(ends if before is None else min(before, ends))
    try:
        yield
    finally:
        _deadline.reset(token)


def seconds_left() -> float | None:
    """Return the seconds until the deadline, at least 0; None without one."""
    ends = _deadline.get()
    return None if ends is None else max(ends - monotonic(), 0.0)


def check_deadline() -> None:
    """Stop a piece of work whose time is up.

    Raises:
        DeadlineError: it is.
    """
    if seconds_left() == 0.0:
        raise DeadlineError("the database did not answer in time")
