"""What was simulated and searched, kept for the next question; the store belongs to whoever made it."""

from typing import Final

from service.engine.time.kept import Kept
from service.engine.time.results import Bracket, Violation
from service.engine.time.samples import ScheduleResult
from service.engine.time.traffic import Sender

MOST_RESULTS: Final = 2048  # about 7 kB each
MOST_VERDICTS: Final = 16384
MOST_SEARCHES: Final = 4096


class Simulations:
    """Results, verdicts and searches, each under everything it depends on, by value."""

    def __init__(self) -> None:
        """Start with nothing simulated."""
        self.sender = Sender()
        self.hopes: Kept[int] = Kept(MOST_SEARCHES)
        self.results: Kept[ScheduleResult] = Kept(MOST_RESULTS)
        self.verdicts: Kept[Violation | None] = Kept(MOST_VERDICTS)
        self.searches: Kept[Bracket] = Kept(MOST_SEARCHES)
