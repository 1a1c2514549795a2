"""How many requests tell of a percentile, and which limits chance leaves certain.

error of a share = sqrt(p (1 - p) / n)
surely           = by two errors; by three of a few requests, whose neighbours in a queue are late together

Percentiles p are shares here, of n requests.
"""

from dataclasses import replace
from math import sqrt
from typing import Final

from service.engine.inputs import Limits

# Requests that are measured: to see roughly where a limit lies; to tell of percentiles; of the tail beyond the 95th,
# and of what fewer tell by chance alone.
ROUGHLY_MEASURED: Final = 256
MEASURED: Final = 2_000
MOST_MEASURED: Final = 10_000
MEASURED_PERCENTILE: Final = 95.0
# What is carried keeps its limits by so many standard errors, so that another sample keeps them too; and by so many
# where more could be measured: gemma-3-27b kept TTFT for 29 users by two errors of 2,000, and broke it by 10,000.
ERRORS: Final = 2.0
ERRORS_OF_FEW: Final = 3.0


def measured_for(limits: Limits) -> int:
    """Return how many requests a percentile needs: at the 99th, a hundred lie beyond it. [count]."""
    return MEASURED if limits.percentile <= MEASURED_PERCENTILE else MOST_MEASURED


def surely_kept(limits: Limits, measured: int) -> Limits:
    """Return limits that a sample keeps only where another one keeps the stated ones.

    Args:
        limits: latency at a percentile.
        measured: requests of the sample. [count]

    >>> round(surely_kept(Limits(ttft_s=1.0, percentile=95), 2_000).percentile, 2)
    96.46
    """
    return replace(limits, percentile=min(limits.percentile + _error(limits, measured), 100.0))


def surely_broken(limits: Limits, measured: int) -> Limits:
    """Return limits that a sample breaks only where another one breaks the stated ones.

    Args:
        limits: latency at a percentile.
        measured: requests of the sample. [count]
    """
    return replace(limits, percentile=max(limits.percentile - _error(limits, measured), 0.0))


def _error(limits: Limits, measured: int) -> float:
    share = limits.percentile / 100
    errors = ERRORS if measured >= MOST_MEASURED else ERRORS_OF_FEW
    return 100 * errors * sqrt(share * (1 - share) / measured)
