"""Memory that was freed goes back to the system: the C library keeps it, in pieces between what is still in use."""

import ctypes
import sys
from functools import lru_cache
from typing import Any


def give_back_freed() -> None:
    """Give back what was freed, in milliseconds; other C libraries than glibc do so on their own."""
    trim = _trim()
    if trim is not None:
        trim(0)


@lru_cache(maxsize=1)
def _trim() -> Any:
    """Return the C library's function; None where it has none."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
