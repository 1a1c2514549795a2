"""Work, counted: calls of functions, which a busy machine does not make more of; and memory, as it is asked for."""

import gc
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def _profiled(count: Callable[[Any, str, Any], None]) -> Iterator[None]:
    """Tell of every call; of none that others' garbage makes, which thousands of tests before may have left."""
    was_enabled = gc.isenabled()
    gc.disable()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)
        if was_enabled:
            gc.enable()


def calls_of(work: Callable[[], object]) -> int:
    """Return how many functions the work calls, written in Python or not."""
    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    with _profiled(count):
        work()
    return calls


def functions_of(work: Callable[[], object]) -> Counter[str]:
    """Return how often the work calls each function of the service, by module and name."""
    calls: Counter[str] = Counter()

    def count(frame: Any, event: str, _argument: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("service."):
            calls[f"{module.removeprefix('service.')}:{frame.f_code.co_qualname}"] += 1

    with _profiled(count):
        work()
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
