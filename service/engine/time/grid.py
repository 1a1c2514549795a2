"""The loads that a search for the largest one may visit.

They are the same whatever the limits are, so that a looser limit never finds less.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, inf, log2
from typing import Final

from service.engine.time.results import Bracket, Violation

# Rates are searched on a grid of 2^(1/32), about 2 %, from 2^-14 to 2^14 per second.
RATE_STEPS_PER_OCTAVE: Final = 32
RATE_OCTAVES: Final = 14
LOWEST_RATE: Final = -RATE_OCTAVES * RATE_STEPS_PER_OCTAVE
# Users beyond this many are searched in steps of about 3 %.
FINE_SEARCH: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Numbered loads in rising order, and the way through them."""

    nothing: int  # the number at which no load is carried at all
    passes: int  # carried for certain, to begin with
    fails: int | None  # fails for certain, to begin with; None: nobody knows yet
    violates: Violation | None  # what it fails by
    most: float  # more than this is not carried, whatever the limits
    amount: Callable[[int], float]  # users, or requests per second, of a number
    following: Callable[[int, int | None], int | None]  # the number to try next; None where the gap is fine enough

    def bracket(self, passes: int, fails: int | None, violates: Violation | None) -> Bracket:
        """Return how far a search has come."""
        return Bracket(
            load=0.0 if passes == self.nothing else self.amount(passes),
            fails_at=inf if fails is None else self.amount(fails),
            violates=violates,
        )


def user_grid(slots: int, *, is_limited: bool) -> Grid:
    """Return doubling numbers of users, and those between; the slots alone where nothing else limits them."""
    return Grid(
        nothing=0,
        passes=0 if is_limited else slots,
        fails=None if is_limited else slots + 1,
        violates=None,
        most=slots,
        amount=lambda users: users,
        following=_following_users,
    )


def _following_users(passes: int, fails: int | None) -> int | None:
    """Return twice as many users while all pass, then half of the gap until it is a thirty-second."""
    if fails is None:
        return max(2 * passes, 1)
    return (passes + fails) // 2 if fails - passes > max(1, passes // FINE_SEARCH) else None


def rate_grid(saturation_rate: float) -> Grid:
    """Return rates in thirty-seconds of octaves, below the octave that ends above saturation. [1/s]."""
    return Grid(
        nothing=LOWEST_RATE,
        passes=LOWEST_RATE,
        fails=_octave_above(saturation_rate),
        violates="throughput",
        most=saturation_rate,
        amount=lambda step: float(2 ** (step / RATE_STEPS_PER_OCTAVE)),
        following=_following_rate,
    )


def _following_rate(passes: int, fails: int | None) -> int | None:
    """Return an octave less, then a quarter of one, then half of the gap until it is a thirty-second."""
    if fails is None or fails - passes <= 1:
        return None
    for stride in (RATE_STEPS_PER_OCTAVE, RATE_STEPS_PER_OCTAVE // 4):
        if fails - passes > stride:
            return fails - stride
    return (passes + fails) // 2


def _octave_above(request_rate_per_s: float) -> int:
    """Return the first step in whole octaves above a rate, at most the last one."""
    octave = floor(log2(request_rate_per_s)) + 1 if request_rate_per_s else -RATE_OCTAVES
    return RATE_STEPS_PER_OCTAVE * min(max(octave, -RATE_OCTAVES), RATE_OCTAVES)
