"""Lets whoever asked give up: long work looks here, between two pieces of it, whether anybody still waits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import local


class GivenUpError(Exception):
    """Nobody waits for this work any longer."""


class _Asker(local):
    """Each thread's own: whether the one it works for has given up."""

    has_given_up: Callable[[], bool] | None = None


_asker = _Asker()


@contextmanager
def working_for(has_given_up: Callable[[], bool]) -> Iterator[None]:
    """Work in this thread until the asker has given up."""
    before, _asker.has_given_up = _asker.has_given_up, has_given_up
    try:
        yield
    finally:
        _asker.has_given_up = before


def go_on() -> None:
    """Return where somebody waits, or nobody said otherwise.

    Raises:
        GivenUpError: the asker has given up.
    """
    if _asker.has_given_up is not None and _asker.has_given_up():
        raise GivenUpError
