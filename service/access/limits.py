"""How often a key may ask: a bucket for each, filled at a steady rate."""

from collections.abc import Callable
from math import ceil
from time import monotonic
from typing import Final

from cachetools import LRUCache

MOST_KEYS: Final = 10_000
BURST_S: Final = 2.0  # of requests that may come at once


class Limiter:
    """Buckets of requests, one for each caller.

    >>> limiter = Limiter(1.0, now=lambda: 0.0)
    >>> [limiter.wait_s("a") for _ in range(3)], limiter.wait_s("b")
    ([0, 0, 1], 0)
    """

    def __init__(self, requests_per_s: float | None, now: Callable[[], float] = monotonic) -> None:
        """Start with full buckets; None: without a limit."""
        self._rate = requests_per_s
        self._now = now
        self._buckets: LRUCache[str, tuple[float, float]] = LRUCache(MOST_KEYS)  # requests left, when

    def wait_s(self, caller: str) -> int:
        """Return how long a caller must wait, 0 where it need not. [s]."""
        if self._rate is None:
            return 0
        most, now = max(self._rate * BURST_S, 1.0), self._now()
        left, at = self._buckets.get(caller, (most, now))
        left = min(left + (now - at) * self._rate, most)
        self._buckets[caller] = (left - 1 if left >= 1 else left, now)
        return 0 if left >= 1 else max(ceil((1 - left) / self._rate), 1)
