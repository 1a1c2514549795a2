"""One line of the accuracy report."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the report."""

    subject: str
    count: int
    equal: float | None  # share of rows without any error
    median: float | None
    p90: float | None
    worst: str
    mean: float | None = None
    safe: float | None = None  # share of rows that promise no more memory than there was


def per_cent(share: float | None) -> str:
    """Return a share in per cent; nothing where there is none."""
    return "" if share is None else f"{100 * share:.1f} %"
