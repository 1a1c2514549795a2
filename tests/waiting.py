"""Waiting for what comes about in another thread or process: as long as a busy machine may take, and no longer."""

import time
from collections.abc import Callable


def eventually(holds: Callable[[], object], seconds: float = 60) -> bool:
    """Return whether something becomes true within a while."""
    ends = time.monotonic() + seconds
    while not (found := bool(holds())) and time.monotonic() < ends:
        time.sleep(0.01)
    return found
