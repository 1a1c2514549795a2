"""Which version a run most likely was, where its source states its date alone: the newest of that day.

Sources:
    upload times of pypi.org/project/vllm, of the first files of each version; for SGLang the day on which the files in
    each version's wheel were written.
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
SGLANG: Final = (
    ("2025-07-31", "0.4.10"), ("2025-10-06", "0.5.3"), ("2025-10-24", "0.5.4"), ("2025-11-06", "0.5.5"),
    ("2025-12-11", "0.5.6"), ("2026-01-23", "0.5.8"), ("2026-02-23", "0.5.9"), ("2026-04-05", "0.5.10"),
    ("2026-05-07", "0.5.11"), ("2026-05-16", "0.5.12"), ("2026-06-11", "0.5.13"), ("2026-06-26", "0.5.14"),
    ("2026-07-10", "0.5.15"), ("2026-07-25", "0.5.16"), ("2026-08-08", "0.5.17"), ("2026-08-21", "0.5.18"),
    ("2026-09-04", "0.5.19"), ("2026-09-18", "0.5.20"), ("2026-10-01", "0.5.21"), ("2026-10-15", "0.5.22"),
)  # fmt: skip


def vllm_of_day(day: str) -> str | None:
    """Return the newest version of a day, or of the middle of a month; None before any, or of a year alone."""
    return _of_day(VLLM, day)


def sglang_of_day(day: str) -> str | None:
    """Return the same of SGLang.

    >>> sglang_of_day("2026-06"), sglang_of_day("2026-07-09"), sglang_of_day("2025-03-08")
    ('0.5.13', '0.5.14', None)
    """
    return _of_day(SGLANG, day)


def _of_day(released: tuple[tuple[str, str], ...], day: str) -> str | None:
    if len(day) < len("2025-10"):
        return None
    place = bisect_right([first for first, _ in released], day if len(day) > len("2025-10") else f"{day}-15")
    return released[place - 1][1] if place else None
