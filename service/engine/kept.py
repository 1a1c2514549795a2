"""Values kept by key: what was found once is not computed again, and memory stays bounded."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")
Missing = TypeVar("Missing")


class _Held(Generic[Value]):
    """One value, and whether anybody asked for it since it last was to go."""

    __slots__ = ("is_asked", "size", "value")

    def __init__(self, value: Value, size: int) -> None:
        self.value, self.size, self.is_asked = value, size, False


class Kept(Generic[Value]):
    """Values up to a size; those nobody asked for go first, the oldest of them. Safe to share between threads.

    Every value has a second chance: one that was asked for since it was put, or since its last turn, stays for another
    turn. A search asks hundreds of times what is kept, and so an answer is one look into a dictionary, without a lock;
    keeping them in the order in which they were asked for takes four times as long.
    """

    __slots__ = ("_lock", "_most", "_size", "_size_of", "_values")

    def __init__(self, most: int, size_of: Callable[[Value], int] | None = None) -> None:
        """Start empty.

        Args:
            most: values to keep, or their size. [count, or as `size_of` says]
            size_of: the size of a value; None: 1.
        """
        self._most, self._size_of, self._size = most, size_of, 0
        self._values: OrderedDict[Hashable, _Held[Value]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, missing: Missing | None = None) -> Value | Missing | None:
        """Return what is kept under a key; None, or what stands for it, where nothing is."""
        held = self._values.get(key)
        if held is None:
            return missing
        held.is_asked = True
        return held.value

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a value; one that is larger than all there may be is not kept."""
        if self._size_of is None:
            held = _Held(value, 1)
            held.is_asked = True  # until it has its place: what was kept before goes first
            with self._lock:  # to hash a key takes longer than all the rest: it is asked for once
                self._values[key] = held
                if len(self._values) > self._most:
                    self._free_one()
            held.is_asked = False
            return
        size = self._size_of(value)
        with self._lock:
            before = self._values.pop(key, None)
            self._size -= 0 if before is None else before.size
            if size > self._most:
                return
            self._size += size
            while self._size > self._most:
                self._free_one()
            self._values[key] = _Held(value, size)

    def _free_one(self) -> None:
        """Let the oldest value go that nobody asked for since its last turn."""
        while True:
            key, held = self._values.popitem(last=False)
            if not held.is_asked:
                self._size -= held.size
                return
            held.is_asked = False
            self._values[key] = held

    def get_or(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return what is kept under a key, made now where nothing is; threads that ask at once may both make it."""
        held = self._values.get(key)
        if held is not None:
            held.is_asked = True
            return held.value
        value = make()
        self.put(key, value)
        return value

    def __len__(self) -> int:
        """Return how many values are kept."""
        return len(self._values)
