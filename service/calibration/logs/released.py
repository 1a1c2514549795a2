"""Which version of vLLM a run most likely was, where its source states its date alone: the newest of that day.

Source:
    upload times of pypi.org/project/vllm, of the first files of each version.
"""

from bisect import bisect_right
from typing import Final

VLLM: Final = (
    ("2024-09-05", "0.6.0"), ("2025-01-27", "0.7.0"), ("2025-03-18", "0.8.0"), ("2025-05-28", "0.9.0"),
    ("2025-07-25", "0.10.0"), ("2025-09-13", "0.10.2"), ("2025-10-04", "0.11.0"), ("2025-11-19", "0.11.1"),
    ("2025-12-03", "0.12.0"), ("2025-12-19", "0.13.0"), ("2026-01-20", "0.14.0"), ("2026-01-29", "0.15.0"),
    ("2026-02-26", "0.16.0"), ("2026-03-07", "0.17.0"), ("2026-03-20", "0.18.0"), ("2026-04-03", "0.19.0"),
    ("2026-04-27", "0.20.0"), ("2026-05-15", "0.21.0"), ("2026-05-29", "0.22.0"), ("2026-06-15", "0.23.0"),
    ("2026-06-30", "0.24.0"), ("2026-07-11", "0.25.0"), ("2026-07-25", "0.26.0"), ("2026-08-10", "0.27.0"),
    ("2026-08-26", "0.28.0"), ("2026-09-09", "0.29.0"), ("2026-09-22", "0.30.0"), ("2026-10-05", "0.31.0"),
    ("2026-10-18", "0.32.0"), ("2026-11-02", "0.33.0"),
)  # fmt: skip


def vllm_of_day(day: str) -> str | None:
    """Return the newest version of a day, or of the middle of a month; None before any, or of a year alone."""
    if len(day) < len("2025-10"):
        return None
    place = bisect_right([first for first, _ in VLLM], day if len(day) > len("2025-10") else f"{day}-15")
    return VLLM[place - 1][1] if place else None
