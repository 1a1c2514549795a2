"""The loads that a search for the largest one may visit.

They are the same whatever is asked, so that a looser limit never finds less.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, inf, log2
from typing import Final

from service.engine.time.results import Bracket, Violation

# Rates are searched on a grid of 2^(1/32), about 2 %, from 2^-14 to 2^14 per second.
RATE_STEPS_PER_OCTAVE: Final = 32
RATE_OCTAVES: Final = 14
ROUNDED: Final = 1e-9  # of a step: a rate that was multiplied and divided again is the same one
HIGHEST_RATE: Final = RATE_OCTAVES * RATE_STEPS_PER_OCTAVE
# Users beyond this many are searched in steps of about 3 %.
FINE_SEARCH: Final = 32
MOST_USERS: Final = 1 << 40


def _rungs() -> tuple[int, ...]:
    rungs = [0]
    while rungs[-1] < MOST_USERS:
        rungs.append(rungs[-1] + max(rungs[-1] // FINE_SEARCH, 1))
    return tuple(rungs)


USERS: Final = _rungs()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Numbered loads in rising order, and what is known of them before a search."""

    passes: int  # carried for certain; at the lowest number no load is carried at all
    fails: int  # fails for certain
    violates: Violation | None  # what it fails by; None: memory has no more slots
    amount: Callable[[int], float]  # users, or requests per second, of a number
    at_least: Callable[[float], int]  # the first number that is so much load, or more

    def bracket(self, passes: int, fails: int, violates: Violation | None) -> Bracket:
        """Return how far a search has come."""
        return Bracket(load=self.amount(passes), fails_at=self.amount(fails), violates=violates)


def user_grid(slots: int, *, is_limited: bool) -> Grid:
    """Return numbers of users, in steps of 3 %, and all slots; the slots alone where nothing else limits them."""
    top = bisect_left(USERS, slots)
    return Grid(
        passes=0 if is_limited else top,
        fails=top + 1,
        violates=None,
        amount=lambda step: min(USERS[step], slots) if step <= top else slots + 1,
        at_least=lambda users: min(bisect_left(USERS, users), top) if users <= slots else top + 1,
    )


def users_upto(users: int) -> int:
    """Return the first number of the grid of users that is no less than so many.

    >>> users_upto(32), users_upto(65)
    (32, 66)
    """
    return USERS[bisect_left(USERS, users)]


def rate_grid(saturation_rate: float) -> Grid:
    """Return rates in thirty-seconds of octaves, up to saturation. [1/s]."""
    above = floor(RATE_STEPS_PER_OCTAVE * log2(saturation_rate)) + 1 if saturation_rate else -inf
    fails = int(min(max(above, -HIGHEST_RATE + 1), HIGHEST_RATE + 1))
    return Grid(
        passes=-HIGHEST_RATE,
        fails=fails,
        violates="throughput",
        amount=lambda step: _rate(step) if step > -HIGHEST_RATE else 0.0,
        at_least=_rate_step,
    )


def rate_upto(request_rate_per_s: float) -> float:
    """Return the first rate of the grid that is no less than one. [1/s]."""
    return _rate(_rate_step(request_rate_per_s))


def _rate(step: int) -> float:
    return float(2 ** (step / RATE_STEPS_PER_OCTAVE))


def _rate_step(request_rate_per_s: float) -> int:
    step = ceil(RATE_STEPS_PER_OCTAVE * log2(request_rate_per_s) - ROUNDED) if request_rate_per_s > 0 else -HIGHEST_RATE
    return max(step, -HIGHEST_RATE + 1)
