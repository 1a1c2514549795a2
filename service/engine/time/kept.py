"""Values kept by key: what was found once is not computed again, and memory stays bounded."""

from collections.abc import Callable, Hashable
from contextlib import suppress
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache
from cachetools.keys import hashkey

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """At most so many values; the one not asked for the longest goes first. Safe to share between threads."""

    def __init__(self, most: int) -> None:
        """Start empty.

        Args:
            most: values to keep. [count]
        """
        self._values: LRUCache[Hashable, Value] = LRUCache(maxsize=most)
        self._lock = Lock()

    def get(self, key: Hashable) -> Value | None:
        """Return what is kept under a key; None where nothing is."""
        with self._lock:
            return self._values.get(hashkey(key))

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a value."""
        with self._lock:
            self._values[hashkey(key)] = value

    def get_or(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return what is kept under a key, made now where nothing is; threads that ask at once may both make it."""
        hashed = hashkey(key)  # once: some keys are tables
        with self._lock, suppress(KeyError):
            return self._values[hashed]
        value = make()
        with self._lock:
            self._values[hashed] = value
        return value

    def __len__(self) -> int:
        """Return how many values are kept."""
        return len(self._values)
