"""Values kept by key: what was found once is not computed again, and memory stays bounded."""

from collections.abc import Callable, Hashable
from contextlib import suppress
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache
from cachetools.keys import hashkey

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """Values up to a size; the one not asked for the longest goes first. Safe to share between threads."""

    def __init__(self, most: int, size_of: Callable[[Value], int] | None = None) -> None:
        """Start empty.

        Args:
            most: values to keep, or their size. [count, or as `size_of` says]
            size_of: the size of a value; None: 1.
        """
        self._values: LRUCache[Hashable, Value] = LRUCache(maxsize=most, getsizeof=size_of)
        self._lock = Lock()

    def get(self, key: Hashable) -> Value | None:
        """Return what is kept under a key; None where nothing is."""
        with self._lock:
            return self._values.get(hashkey(key))

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a value; one that is larger than all there may be is not kept."""
        with self._lock:
            try:
                self._values[hashkey(key)] = value
            except ValueError:
                return

    def get_or(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return what is kept under a key, made now where nothing is; threads that ask at once may both make it."""
        hashed = hashkey(key)  # once: some keys are tables
        with self._lock, suppress(KeyError):
            return self._values[hashed]
        value = make()
        with self._lock, suppress(ValueError):  # larger than all there may be
            self._values[hashed] = value
        return value

    def __len__(self) -> int:
        """Return how many values are kept."""
        return len(self._values)
