"""Work, counted: calls of functions, which a busy machine does not make more of; and memory, as it is asked for."""

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any


def calls_of(work: Callable[[], object]) -> int:
    """Return how many functions the work calls, written in Python or not."""
    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def memory_of(work: Callable[[], object]) -> tuple[int, int]:
    """Return what the work takes at most, and what it leaves behind. [bytes]."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        _, most = tracemalloc.get_traced_memory()
        gc.collect()
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return most, left
