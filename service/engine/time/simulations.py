"""What was simulated and searched, kept for the next question; the store belongs to whoever made it."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from itertools import count
from typing import Final, TypeVar

from service.engine.inputs import Limits
from service.engine.kept import Kept
from service.engine.time.results import Bracket, Violation
from service.engine.time.samples import ScheduleResult
from service.engine.time.shared import Reach, Shared, Told
from service.engine.time.traffic import Sender

Asked = TypeVar("Asked", bound=Hashable)  # users or arrivals

MOST_RESULT_BYTES: Final = 8_000_000  # about 70 kB each
MOST_VERDICTS: Final = 8192
MOST_LATENCIES: Final = 8192
MOST_SEARCHES: Final = 4096
MOST_NUMBERS: Final = 8192  # a recommendation looks at some thousand servers, and at those it lists twice
MOST_ALONE: Final = 16384  # about 1 kB each: a search for the lowest latency asks for thousands


class Simulations:
    """Results, verdicts and searches, each under everything it depends on, by value."""

    def __init__(self) -> None:
        """Start with nothing simulated."""
        self.sender = Sender()
        self._numbers: Kept[int] = Kept(MOST_NUMBERS)
        self._next_number = count(1)
        self.results: Kept[ScheduleResult] = Kept(MOST_RESULT_BYTES, lambda result: result.nbytes)
        self.latencies: Kept[float] = Kept(MOST_LATENCIES)  # of results that may be gone [s]
        self.verdicts: Kept[Told] = Kept(MOST_VERDICTS)
        self.alone: Kept[object] = Kept(MOST_ALONE)  # times with `StepTimer.alone`; None where nobody tells it
        self.shared = Shared()
        self.searches: Kept[tuple[Bracket, Reach | None]] = Kept(MOST_SEARCHES)

    def number_of(self, value: Hashable) -> int:
        """Return a number that stands for a value in keys: whoever is equal has the same, and no other has it ever."""
        return self._numbers.get_or(value, lambda: next(self._next_number))

    def verdict(
        self, server: int, demand: Asked, limits: Limits, measured: int, tell: Callable[[Asked, Limits, int], Told]
    ) -> Violation | None:
        """Return what a demand breaks of limits, kept: what breaks one beside another breaks it alone as well.

        Args:
            server: its number.
            demand: users or arrivals.
            limits: latency at a percentile.
            measured: requests that are measured. [count]
            tell: what tells it of these, where nobody has.
        """
        asked = (server, demand, limits, measured)
        told = self.verdicts.get(asked)
        if told is None:
            told = tell(demand, limits, measured)
            self.verdicts.put(asked, told)
            alone = _alone(limits, told.verdict)
            if alone != limits:
                self.verdicts.put((server, demand, alone, measured), told)
        self.shared.note(told.reach)
        return told.verdict


def _alone(limits: Limits, verdict: Violation | None) -> Limits:
    """Return the limit that is broken, without the other; of a queue that grows, or of nothing, both.

    A simulation ends with the request that breaks a limit: the same one, whatever else is limited.
    """
    match verdict:
        case "ttft":
            return replace(limits, tpot_s=None)
        case "tpot":
            return replace(limits, ttft_s=None)
        case _:
            return limits
