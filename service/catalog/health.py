"""How the catalog in use stands to the database."""

from dataclasses import dataclass
from typing import Final, Literal

STALE_SECONDS: Final = 300.0
Origin = Literal["database", "disk", "seed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What refreshing the catalog has come to. Times are seconds since 1970."""

    origin: Origin = "seed"  # where the catalog in use was read from
    confirmed_at: float | None = None  # when it was last known to be what the database holds
    asked_at: float = 0.0  # when the database was last asked anything
    database_is_up: bool = False  # whether it answered
    failures: int = 0  # refreshes that failed or were refused, since the start
    last_error: str | None = None  # why the last one did; None where it worked

    def age_s(self, now: float) -> float | None:
        """Return for how long the catalog in use may have been out of date; None where it never was the database's."""
        return None if self.confirmed_at is None else max(now - self.confirmed_at, 0.0)

    def is_stale(self, now: float) -> bool:
        """Return whether that is longer than answers should rest on."""
        age = self.age_s(now)
        return age is None or age > STALE_SECONDS
