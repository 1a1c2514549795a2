"""The largest load that one replica carries within limits.

The searches visit the same loads whatever the limits are, so that a looser one never finds less.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import floor, inf, log2
from typing import Final

from service.engine.inputs import Limits
from service.engine.time.replica import (
    Replica,
    Violation,
    broken_by_rate,
    broken_by_users,
    in_flight,
    saturation_rate,
    tpot_estimate_s,
)
from service.engine.time.traffic import mean_length

# Rates are searched on a grid of 2^(1/32), about 2 %, from 2^-14 to 2^14 per second.
RATE_STEPS_PER_OCTAVE: Final = 32
RATE_OCTAVES: Final = 14
# Loads above this are searched in steps of about 3 %.
FINE_SEARCH: Final = 32
# An estimate this many times beyond a limit, or this far below it, needs no simulation.
HOPELESS, SAFE = 1.6, 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far a search for the largest load has come; at its end `load` is that load."""

    load: float  # carried for certain: users, or requests per second; 0 when not even the smallest one is
    fails_at: float  # the smallest load known to fail
    violates: Violation | None  # what it fails by; None: nothing but room for more


@lru_cache(maxsize=2048)
def most_users(replica: Replica, limits: Limits) -> Reach:
    """Return the most concurrent requests within limits that the replica holds."""
    *_, last = user_search(replica, limits)
    return last


def user_search(replica: Replica, limits: Limits) -> Iterator[Reach]:
    """Yield each step of the search for the most users."""
    if limits.ttft_s is None and limits.tpot_s is None:
        yield Reach(load=replica.slots, fails_at=replica.slots + 1, violates=None)
        return

    def fails(users: int) -> Violation | None:
        if users > replica.slots:
            return "throughput"
        if limits.tpot_s is not None:
            share = tpot_estimate_s(replica, users) / limits.tpot_s
            if share > HOPELESS:
                return "tpot"
            if share < SAFE and limits.ttft_s is None:
                return None
        return broken_by_users(replica, users, limits)

    for reach in _largest(fails):
        yield replace(reach, violates=None) if reach.violates == "throughput" else reach


def _largest(fails: Callable[[int], Violation | None]) -> Iterator[Reach]:
    """Yield the way to the largest passing number below the first failing power of two."""
    low, high = 0, 1
    why = fails(high)
    while why is None:
        low, high = high, 2 * high
        yield Reach(load=low, fails_at=inf, violates=None)
        why = fails(high)
    yield Reach(load=low, fails_at=high, violates=why)
    for passes, above, reason in _halved(low, high, why, fails, lambda users: max(1, users // FINE_SEARCH)):
        yield Reach(load=passes, fails_at=above, violates=reason)


def _halved(
    low: int,
    high: int,
    why: Violation | None,
    fails: Callable[[int], Violation | None],
    finest: Callable[[int], int],
) -> Iterator[tuple[int, int, Violation | None]]:
    """Yield (largest that passes, smallest that fails, why it fails), halving the gap until it is fine enough."""
    while high - low > finest(low):
        middle = (low + high) // 2
        reason = fails(middle)
        if reason is None:
            low = middle
        else:
            high, why = middle, reason
        yield low, high, why


@lru_cache(maxsize=2048)
def hoped_users(replica: Replica, limits: Limits, hope: float) -> int:
    """Return users that a quickly timed replica would not exceed within limits, were it faster by a factor."""
    alone = replica.timer.mixed_s(
        mean_length(replica.traffic.inputs), mean_length(replica.traffic.inputs) / 2, 0.0, 0.0
    )
    new_fraction = 0.0 if replica.traffic.arrives_read else 1 - replica.traffic.prefix_cache_hit_fraction
    if limits.ttft_s is not None and alone * new_fraction > hope * limits.ttft_s:
        return 0
    if limits.tpot_s is None:
        return replica.slots
    low, high = 0, replica.slots + 1
    while high - low > 1:
        middle = (low + high) // 2
        if tpot_estimate_s(replica, middle) > hope * limits.tpot_s:
            high = middle
        else:
            low = middle
    return low


def estimated_rate(replica: Replica, users: int) -> float:
    """Return the throughput of so many users, without simulating them. [1/s]."""
    return users / (max(mean_length(replica.traffic.outputs), 1.0) * tpot_estimate_s(replica, users))


@lru_cache(maxsize=2048)
def highest_rate(replica: Replica, limits: Limits) -> Reach:
    """Return the highest arrival rate within limits; without limits, the one at which the queue diverges."""
    *_, last = rate_search(replica, limits)
    return last


def rate_search(replica: Replica, limits: Limits) -> Iterator[Reach]:
    """Yield each step of the search for the highest rate: down the grid in octaves, in quarters, then between."""
    saturated = saturation_rate(replica)
    bottom = -RATE_OCTAVES * RATE_STEPS_PER_OCTAVE
    low, high = bottom, _octave_above(saturated)
    why: Violation | None = "throughput"

    def fails(step: int) -> Violation | None:
        rate = _rate(step)
        if rate > saturated:
            return "throughput"
        if rate > replica.most_requests_per_s:
            return "throughput" if limits.ttft_s is None else "ttft"
        return _unmet(replica, rate, limits)

    def reach(passes: int, above: int, reason: Violation | None) -> Reach:
        return Reach(load=0.0 if passes == bottom else _rate(passes), fails_at=_rate(above), violates=reason)

    yield reach(low, high, why)
    for stride in (RATE_STEPS_PER_OCTAVE, RATE_STEPS_PER_OCTAVE // 4):
        for step in range(high - stride, low, -stride):
            reason = fails(step)
            if reason is None:
                low = step
                break
            high, why = step, reason
            yield reach(low, high, why)
    for found in _halved(low, high, why, fails, lambda _: 1):
        yield reach(*found)


def _unmet(replica: Replica, request_rate_per_s: float, limits: Limits) -> Violation | None:
    """Return the limit that an open loop below saturation breaks."""
    if limits.ttft_s is None and limits.tpot_s is None:
        return None
    if limits.tpot_s is not None:
        users = replica.streams * in_flight(replica, request_rate_per_s)
        if tpot_estimate_s(replica, users) > HOPELESS * limits.tpot_s:
            return "tpot"
    return broken_by_rate(replica, request_rate_per_s, limits)


def _octave_above(request_rate_per_s: float) -> int:
    """Return the first step in whole octaves above a rate, at most the last one."""
    octave = floor(log2(request_rate_per_s)) + 1 if request_rate_per_s else -RATE_OCTAVES
    return RATE_STEPS_PER_OCTAVE * min(max(octave, -RATE_OCTAVES), RATE_OCTAVES)


def _rate(step: int) -> float:
    return float(2 ** (step / RATE_STEPS_PER_OCTAVE))
