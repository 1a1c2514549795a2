"""Lines of the log that anybody can provoke."""

import logging
from time import monotonic
from typing import Final

SELDOM_S: Final = 60.0
OF_STRANGERS: Final = (  # uvicorn's own words for what anybody can send
    "Invalid HTTP request received.",
    "Unsupported upgrade request.",
    "No supported WebSocket library detected.",
)


class Seldom(logging.Filter):
    """Lets a line that anybody can provoke through once a minute: a flood of requests is no flood of lines."""

    def __init__(self) -> None:
        """Start with none written."""
        super().__init__()
        self._free_at = dict.fromkeys(OF_STRANGERS, 0.0)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is written."""
        line = next((line for line in OF_STRANGERS if str(record.msg).startswith(line)), None)
        if line is None:
            return True
        is_free = monotonic() >= self._free_at[line]
        if is_free:
            self._free_at[line] = monotonic() + SELDOM_S
        return is_free
