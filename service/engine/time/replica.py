"""One replica under load: what its users see, what breaks, and the most that it carries."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from math import inf

from cachetools.keys import hashkey

from service.engine.inputs import Limits, Load
from service.engine.memory.plan import MemoryPlan
from service.engine.time.batching import BlockPool, Serving, block_pool, serving_of
from service.engine.time.demand import Demand, Users
from service.engine.time.drafting import with_drafts
from service.engine.time.estimate import HOPELESS, SAFE, pace_s
from service.engine.time.results import Bracket, Violation
from service.engine.time.samples import ScheduleResult
from service.engine.time.scheduler import simulate, simulate_within
from service.engine.time.search import search
from service.engine.time.simulations import Simulations
from service.engine.time.steps import StepTimers, Timing, deployed
from service.engine.time.traffic import Traffic, traffic_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replica:
    """One replica: its memory, its times, and the requests it serves."""

    plan: MemoryPlan
    serving: Serving
    pool: BlockPool
    simulations: Simulations
    key: Hashable  # what is found is kept under it: all it depends on, by value, hashed once
    most_requests_per_s: float = inf  # within the limit on TTFT alone, where a cap keeps pace

    @property
    def timing(self) -> Timing:
        """Return its times, and where they come from."""
        return self.serving.timing

    @property
    def slots(self) -> int:
        """Return the requests that run at once, by cache and by `max_num_seqs`."""
        return self.serving.slots

    def capped(self, plan: MemoryPlan, most_requests_per_s: float) -> "Replica":
        """Return the same replica under a plan that runs fewer requests at once.

        Args:
            plan: its memory with another `max_num_seqs`.
            most_requests_per_s: a bound on what it carries.
        """
        same = _replica(plan, serving_of(plan, self.timing, self.serving.traffic), self.simulations)
        return replace(same, most_requests_per_s=most_requests_per_s)

    def seen(self, demand: Demand) -> ScheduleResult:
        """Return what those who make a demand see, even beyond what is carried: those beyond its slots wait."""
        return self.simulations.results.get_or(
            (self.key, demand), lambda: demand.seen(self._simulated(demand), self.serving)
        )

    @property
    def saturation_rate(self) -> float:
        """Return the rate at which the queue grows without end: the throughput with every slot taken. [1/s]."""
        return self.seen(Users(self.slots)).requests_per_s if self.slots else 0.0

    def most(self, kind: type[Demand], limits: Limits) -> Bracket:
        """Return the largest load within limits; of arrivals without limits, the one at which the queue diverges.

        Args:
            kind: users or arrivals.
            limits: latency at a percentile.
        """

        def searched() -> Bracket:
            *_, last = self.brackets(kind, limits)
            return last

        asked = (self.key, self.most_requests_per_s, kind, limits)
        return self.simulations.searches.get_or(asked, searched)

    def brackets(self, kind: type[Demand], limits: Limits) -> Iterator[Bracket]:
        """Yield each step of the search for the largest load."""
        return search(kind.grid(self, limits), lambda amount: self.breaks(kind.of(amount), limits))

    def breaks(self, demand: Demand, limits: Limits) -> Violation | None:
        """Return what a demand breaks that there is room for: by an estimate where that is certain, else simulated."""
        beyond = demand.beyond(self, limits)
        if beyond is not None or (limits.ttft_s is None and limits.tpot_s is None):
            return beyond
        return self.simulations.verdicts.get_or((self.key, demand, limits), lambda: self._verdict(demand, limits))

    def _verdict(self, demand: Demand, limits: Limits) -> Violation | None:
        """Return the limit that is broken by an estimate, or else by a simulation."""
        if limits.tpot_s is not None:
            pace = pace_s(self.serving, demand.users_in_flight(self.serving)) / limits.tpot_s
            if pace > HOPELESS:
                return "tpot"
            if pace < SAFE and limits.ttft_s is None and not demand.may_queue:
                return None
        return self._simulated_verdict(demand, limits)

    def _simulated_verdict(self, demand: Demand, limits: Limits) -> Violation | None:
        """Return what a simulated demand breaks; a broken limit is told before all requests are answered."""
        asked = (self.key, demand)
        result = self.simulations.results.get(asked)
        if result is None:
            outcome = self._simulated_within(demand, limits)
            if not isinstance(outcome, ScheduleResult):
                return outcome
            result = demand.seen(outcome, self.serving)
            self.simulations.results.put(asked, result)
        return demand.broken(result, limits)

    def _simulated(self, demand: Demand) -> ScheduleResult:
        load = demand.simulated(self.serving, self.simulations.sender)
        return simulate(self.timing, load, pool=self.pool, settings=self.serving.settings)

    def _simulated_within(self, demand: Demand, limits: Limits) -> ScheduleResult | Violation:
        load = demand.simulated(self.serving, self.simulations.sender)
        return simulate_within(self.timing, load, pool=self.pool, settings=self.serving.settings, limits=limits)


def replica_of(plan: MemoryPlan, timing: Timing, traffic: Traffic, simulations: Simulations) -> Replica:
    """Return a replica with drafts as its settings say.

    Args:
        plan: its memory.
        timing: its times, without drafts.
        traffic: what it serves.
        simulations: the store of what is found about it.
    """
    return _replica(plan, serving_of(plan, with_drafts(timing, plan), traffic), simulations)


def _replica(plan: MemoryPlan, serving: Serving, simulations: Simulations) -> Replica:
    pool = block_pool(plan)
    return Replica(plan=plan, serving=serving, pool=pool, simulations=simulations, key=hashkey(serving, pool))


def timed(plan: MemoryPlan, timers: StepTimers | None, load: Load) -> Replica | None:
    """Return a plan with its times; None where it holds no request or nobody times it."""
    if timers is None or not plan.holds_one_request:
        return None
    timing = timers.timer(deployed(plan))
    return None if timing is None else replica_of(plan, timing, traffic_of(load), timers.simulations)


def quickly_timed(plan: MemoryPlan, timers: StepTimers, load: Load) -> Serving | None:
    """Return how a plan serves a load by a quick estimate, drafts left aside; None where nobody times it."""
    timing = timers.quick(deployed(plan))
    return None if timing is None else serving_of(plan, timing, traffic_of(load))
