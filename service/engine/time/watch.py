"""A simulation watched: it ends as soon as a limit is broken for certain."""

from math import inf
from typing import Literal

from service.engine.inputs import Limits
from service.engine.time.traffic import SimulatedLoad

LatencyLimit = Literal["ttft", "tpot"]


class Watch:
    """Tells as soon as it is certain that a percentile of the measured requests breaks a limit."""

    def __init__(self, load: SimulatedLoad, limits: Limits) -> None:
        """Count how many measured requests may miss each limit.

        Args:
            load: the requests.
            limits: latency at a percentile.
        """
        measured = load.requests[load.first_measured : load.last_measured]
        self.ttft_s = inf if limits.ttft_s is None else limits.ttft_s
        self.tpot_s = inf if limits.tpot_s is None else limits.tpot_s
        self.ttft_left = _too_many(len(measured), limits.percentile)
        self.tpot_left = _too_many(sum(request.output_tokens > 1 for request in measured), limits.percentile)

    def answered(self, ttft_s: float, tpot_s: float) -> LatencyLimit | None:
        """Return the limit that is broken for certain, now that one more request was answered."""
        if ttft_s > self.ttft_s:
            self.ttft_left -= 1
            if not self.ttft_left:
                return "ttft"
        if tpot_s > self.tpot_s:
            self.tpot_left -= 1
            if not self.tpot_left:
                return "tpot"
        return None


def _too_many(count: int, percent: float) -> int:
    """Return how many values beyond a limit put the percentile, by nearest rank, beyond it."""
    return count - min(int(percent / 100 * count), count - 1)
