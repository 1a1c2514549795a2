"""A replica with a cache without end, before it is planned: its users see the least that they see in a real one.

It is asked of a small sample first, at a percentile so far below the 95th that chance does not tell against it.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Final

from service.engine.inputs import Limits
from service.engine.time.batching import Serving
from service.engine.time.chance import MEASURED, ROUGHLY_MEASURED
from service.engine.time.demand import Demand, Users
from service.engine.time.results import Violation
from service.engine.time.roomy import BOUNDLESS, forgiving
from service.engine.time.samples import ScheduleResult, whole
from service.engine.time.shared import Told
from service.engine.time.simulation import Machine
from service.engine.time.steps import StepTimers

PERCENTILE: Final = 95.0  # at which deployments are told apart
# At which a small sample of a share is beyond a time only where a large one surely is at the 95th.
LIKELY: Final = forgiving(Limits(percentile=PERCENTILE)).percentile
# Who surely keeps a limit keeps so much of it, and so does everybody of a small sample.
SURELY: Final = 0.9


@dataclass(frozen=True, kw_only=True)  # without slots, for what is made once
class Endless:
    """A replica with all the cache it could wish for, under some settings, before it is planned."""

    serving: Serving
    timers: StepTimers

    @property
    def saturation_rate(self) -> float:
        """Return a rate at which the queue surely does not grow. [1/s]."""
        return SURELY * self._seen(Users(self.serving.slots), ROUGHLY_MEASURED).requests_per_s

    @cached_property
    def key(self) -> int:
        """Return the number of all that what it shows depends on."""
        return self.timers.simulations.number_of((self.serving, BOUNDLESS))

    @cached_property
    def machine(self) -> Machine:
        """Return one of its streams, ready to serve."""
        return Machine(self.serving.timing, BOUNDLESS, self.serving.settings)

    def seen_s(self, share: Demand, than_s: float) -> float:
        """Return what users wait for their last token at least: by a large sample where a small one takes less. [s].

        Who waits longer for the first token waits longer for the last, and is told before all are answered.
        """
        if self._broken(share, Limits(ttft_s=than_s, percentile=LIKELY)) == "ttft":
            return inf
        least_s = self.roughly_seen_s(share)
        return least_s if least_s >= than_s else self._seen(share, MEASURED).end_to_end_s.percentile(PERCENTILE)

    def roughly_seen_s(self, share: Demand) -> float:
        """Return what a small sample tells for certain. [s]."""
        return self._seen(share, ROUGHLY_MEASURED).end_to_end_s.percentile(LIKELY)

    def most_batched_tokens(self, share: Demand) -> int:
        """Return the tokens of its fullest iteration. [tokens]."""
        return self._seen(share, MEASURED).reach.tokens

    def _seen(self, share: Demand, measured: int) -> ScheduleResult:
        simulations = self.timers.simulations

        def seen() -> ScheduleResult:
            load = share.simulated(self.serving, simulations.sender, measured)
            return share.seen(whole(self.machine.simulated(load)), self.serving)

        return simulations.results.get_or((self.key, share, measured), seen)

    def surely_carries(self, share: Demand, limits: Limits) -> bool:
        """Return whether a share is carried, whatever chance does."""
        share = share.rounded_up(self)
        if not share.has_room(self):
            return False
        return self._broken(share, _surely(limits)) is None

    def carries_nobody(self, limits: Limits) -> bool:
        """Return whether a single user surely sees a limit broken."""
        return self._broken(Users(1), forgiving(limits)) is not None

    def _broken(self, share: Demand, limits: Limits) -> Violation | None:
        """Return what a small sample of a share breaks."""
        simulations = self.timers.simulations

        def verdict() -> Told:
            load = share.simulated(self.serving, simulations.sender, ROUGHLY_MEASURED)
            outcome = self.machine.simulated(load, limits)
            if not isinstance(outcome, ScheduleResult):
                return outcome
            seen = share.seen(outcome, self.serving)
            simulations.results.put((self.key, share, ROUGHLY_MEASURED), seen)
            return Told(share.broken(seen, limits), outcome.reach)

        return simulations.verdicts.get_or((self.key, share, limits, ROUGHLY_MEASURED), verdict).verdict


def _surely(limits: Limits) -> Limits:
    """Return limits that nobody of a sample breaks, each nine tenths of what it is."""
    ttft_s, tpot_s = (None if limit is None else SURELY * limit for limit in (limits.ttft_s, limits.tpot_s))
    return replace(limits, ttft_s=ttft_s, tpot_s=tpot_s, percentile=100.0)
