"""One server of a load, whoever planned it: what its users see, what breaks, and the most that it carries."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf
from typing import Final, Self

from service.engine.inputs import Limits
from service.engine.time.batching import BlockPool, Serving
from service.engine.time.chance import (
    MEASURED,
    MOST_MEASURED,
    ROUGHLY_MEASURED,
    measured_for,
    surely_broken,
    surely_kept,
)
from service.engine.time.demand import Demand, Users
from service.engine.time.estimate import HOPELESS, SAFE, pace_s, reach_of, tells_pace
from service.engine.time.results import Bracket, LoadState, Violation
from service.engine.time.samples import ScheduleResult, warm_up_length, whole
from service.engine.time.search import search
from service.engine.time.shared import Reach, Told
from service.engine.time.simulation import Machine
from service.engine.time.simulations import Simulations
from service.engine.time.steps import Timing
from service.engine.time.traffic import SimulatedLoad

# A run whose first so many requests tell of its beginning is begun again, longer before.
UNSETTLED_FRACTION: Final = 0.25


@dataclass(frozen=True, kw_only=True, eq=False)  # without slots, for what is made once
class Server:
    """Streams of requests side by side: their times, their bounds and their cache."""

    serving: Serving
    pool: BlockPool
    simulations: Simulations
    uncapped: Self | None = None  # the same without the cap that keeps pace: arrivals are none that it cannot read

    @cached_property
    def key(self) -> int:
        """Return the number of all it depends on, by value: what is found out is kept under it."""
        return self.simulations.number_of((self.serving, self.pool))

    @property
    def timing(self) -> Timing:
        """Return its times, and where they come from."""
        return self.serving.timing

    @property
    def slots(self) -> int:
        """Return the requests that run at once, by cache and by `max_num_seqs`."""
        return self.serving.slots

    @cached_property
    def unbound_key(self) -> int:
        """Return the number of all it depends on but for its bounds: token budget, `max_num_seqs` and cache."""
        serving = self.serving
        settings = replace(serving.settings, max_num_batched_tokens=0, max_num_seqs=0)
        return self.simulations.number_of((serving.timing, serving.traffic, settings, serving.streams))

    @cached_property
    def machine(self) -> Machine:
        """Return one of its streams, ready to serve."""
        return Machine(self.timing, self.pool, self.serving.settings)

    def seen(self, demand: Demand, measured: int = MEASURED) -> ScheduleResult:
        """Return what those who make a demand see, even beyond what is carried: those beyond its slots wait.

        Args:
            demand: users or arrivals.
            measured: requests that are measured. [count]
        """
        result = self.simulations.results.get_or(
            (self.key, demand, measured), lambda: demand.seen(self._served(demand, measured), self.serving)
        )
        self.simulations.shared.note(result.reach)
        return result

    def latency_s(self, demand: Demand, measured: int, percentile: float) -> float:
        """Return the time to the last token that those who make a demand see. [s].

        Args:
            demand: users or arrivals.
            measured: requests that are measured. [count]
            percentile: of them.
        """
        return self.simulations.latencies.get_or(
            (self.key, demand, measured, percentile),
            lambda: self.seen(demand, measured).end_to_end_s.percentile(percentile),
        )

    def together(self, asked: Demand, replicas: int, measured: int) -> LoadState:
        """Return the state of so many equal replicas that share a demand, in parts where it does not divide evenly.

        Args:
            asked: of all of them.
            replicas: how many there are. [count]
            measured: requests that are measured. [count]
        """
        shares = asked.shares(replicas, self.serving.groups)
        state = LoadState.of_all([self.seen(share, measured).state(count) for count, share in shares])
        return state.of_arrivals(asked.amount, replicas * self.saturation_rate) if asked.may_queue else state

    def benchmarked(self, demand: Demand, num_prompts: int) -> ScheduleResult:
        """Return what a benchmark prints that sends so many prompts to an idle engine: ramp and drain included.

        Args:
            demand: users who begin at once, or arrivals.
            num_prompts: all of which are measured. [count]

        Source:
            vLLM 0.33, vllm/benchmarks/serve.py (benchmark, calculate_metrics).
        """

        def served() -> ScheduleResult:
            load = demand.benchmark(self.serving, self.simulations.sender, num_prompts)
            of_fullest = ceil(num_prompts / self.serving.groups)  # stream, that is simulated: others may have fewer
            return whole(self.machine.simulated(load)).side_by_side(num_prompts / of_fullest)

        return self.simulations.results.get_or((self.key, demand, "benchmark", num_prompts), served)

    @property
    def saturation_rate(self) -> float:
        """Return the rate at which the queue grows without end: the throughput with every slot taken. [1/s]."""
        users = self.serving.in_every_stream(self.slots)
        return self.seen(Users(users), ROUGHLY_MEASURED).requests_per_s if users else 0.0

    def alone(self) -> ScheduleResult:
        """Return what a single user sees."""
        return self.seen(Users(1), ROUGHLY_MEASURED)

    def most(self, kind: type[Demand], limits: Limits) -> Bracket:
        """Return the largest load within limits; of arrivals without limits, the one at which the queue diverges.

        Args:
            kind: users or arrivals.
            limits: latency at a percentile.
        """
        asked = (self.key, None if self.uncapped is None else self.uncapped.key, kind, limits)
        bracket, reach = self.simulations.searches.get_or(asked, lambda: self._most(kind, limits))
        self.simulations.shared.note(reach)
        return bracket

    def _most(self, kind: type[Demand], limits: Limits) -> tuple[Bracket, Reach | None]:
        """Return the largest load, and what finding it used."""
        with self.simulations.shared.noting() as noted:
            if (hopeless := self._hopeless(limits)) is not None:  # nobody waits less than a single user does
                return Bracket(load=0.0, fails_at=1.0, violates=hopeless), noted.reach
            bracket = search(
                kind.grid(self, limits),
                kind.guessed(self, limits),
                lambda amount: self.breaks(kind.of(amount), limits, ROUGHLY_MEASURED),
                lambda amount: self.is_doubtful(kind.of(amount), limits),
            )
        is_full = not kind.may_queue and bracket.load >= self.slots  # more slots may hold more users
        return bracket, None if is_full else noted.reach

    def most_with(self, asked: Demand | None, kind: type[Demand], limits: Limits) -> Bracket:
        """Return the largest load: what is asked where that is carried, though chance breaks a little less.

        Args:
            asked: of this replica, if anything.
            kind: users or arrivals.
            limits: latency at a percentile.
        """
        bracket = self.most(kind, limits)
        if not isinstance(asked, kind) or asked.amount <= bracket.load or not self.carries(asked, limits):
            return bracket
        return replace(bracket, load=asked.amount, fails_at=max(bracket.fails_at, asked.amount))

    def is_doubtful(self, demand: Demand, limits: Limits) -> Violation | None:
        """Return what a demand breaks, or may break by the chance of another sample; None where it is carried."""
        if broken := self._surely_broken(demand, limits):
            return broken
        measured = self.measured_for(demand, limits)
        return self._broken(demand, surely_kept(limits, measured), measured) or self._beyond_uncapped(demand, limits)

    def measured_for(self, demand: Demand, limits: Limits) -> int:
        """Return how many requests tell whether a demand keeps limits: more where fewer tell it by chance. [count]."""
        measured = measured_for(limits)
        if measured == MOST_MEASURED or self._surely_broken(demand, limits) is not None:
            return measured
        is_kept = self._broken(demand, surely_kept(limits, measured), measured) is None
        return measured if is_kept else MOST_MEASURED

    def _surely_broken(self, demand: Demand, limits: Limits) -> Violation | None:
        """Return what few requests tell for certain that a demand breaks; what they saw tells of tighter limits too."""
        few = measured_for(limits)
        return None if few == MOST_MEASURED else self._broken(demand, surely_broken(limits, few), few)

    def are_enough(self, replicas: float, wanted: Demand, limits: Limits) -> bool:
        """Return whether so many replicas may carry a demand, asked at the next load of the search.

        Args:
            replicas: the most there may be; infinite where any number may. [count]
            wanted: users or arrivals.
            limits: latency at a percentile.
        """
        if replicas < 1:
            return False
        if replicas == inf:
            return bool(self.most(type(wanted), limits).load)
        return self.carries(wanted.per_replica(int(replicas)), limits)

    def may_be_enough(self, replicas: float, wanted: Demand, limits: Limits) -> bool:
        """Return what `are_enough` does, and of any number of replicas only whether a single user is carried."""
        return self._hopeless(limits) is None if replicas == inf else self.are_enough(replicas, wanted, limits)

    def _hopeless(self, limits: Limits) -> Violation | None:
        """Return the limit that a single user sees broken."""
        return self.breaks(Users(1), limits, ROUGHLY_MEASURED)

    def carries(self, demand: Demand, limits: Limits) -> bool:
        """Return whether a demand is carried, asked at the next load that searches visit."""
        share = demand.rounded_up(self)
        if not demand.may_queue:
            if not demand.has_room(self):
                self.simulations.shared.note(None)  # more slots have room
                return False
            self.simulations.shared.note(reach_of(self.serving, share.users_in_flight(self.serving)))
            return self.is_doubtful(share, limits) is None
        # With few slots it is soon seen how fast arrivals may come; else that takes as long as what they break.
        if self.uncapped is not None:
            return share.has_room(self) and self.is_doubtful(share, limits) is None
        return self.is_doubtful(share, limits) is None and share.has_room(self)

    def breaks(self, demand: Demand, limits: Limits, measured: int) -> Violation | None:
        """Return what a demand breaks: told by an estimate where that is certain, else simulated until it is.

        Args:
            demand: users or arrivals.
            limits: latency at a percentile.
            measured: requests that are measured. [count]
        """
        return self._broken(demand, limits, measured) or self._beyond_uncapped(demand, limits)

    def _broken(self, demand: Demand, limits: Limits, measured: int) -> Violation | None:
        """Return the same, whatever it carries without a cap that keeps pace."""
        if not limits.are_stated:
            return None
        return self.simulations.verdict(self.key, demand, limits, measured, self._verdict)

    def _beyond_uncapped(self, demand: Demand, limits: Limits) -> Violation | None:
        """Return the limit on TTFT, or throughput without one, that arrivals break whatever the cap: others wait."""
        if self.uncapped is None or not demand.may_queue or not limits.are_stated:
            return None
        if self.uncapped.carries(demand, replace(limits, tpot_s=None)):
            return None
        return "throughput" if limits.ttft_s is None else "ttft"

    def _verdict(self, demand: Demand, limits: Limits, measured: int) -> Told:
        """Return the limit that is broken by an estimate, or else by a simulation."""
        if limits.tpot_s is not None and tells_pace(self.serving):
            users = demand.users_in_flight(self.serving)
            pace = pace_s(self.serving, users) / limits.tpot_s
            if pace > HOPELESS:
                return Told("tpot", reach_of(self.serving, users))
            # Who reads prompts alone has tokens wait for all chunks of a prompt: no full step bounds that.
            if pace < SAFE and limits.ttft_s is None and not (demand.may_queue or self.serving.waits_for_prompts):
                return Told(None, reach_of(self.serving, users))
        return self._simulated_verdict(demand, limits, measured)

    def _simulated_verdict(self, demand: Demand, limits: Limits, measured: int) -> Told:
        """Return what a simulated demand breaks; a broken limit is told before all requests are answered."""
        load = demand.simulated(self.serving, self.simulations.sender, measured)
        asked = (self.unbound_key, demand, limits, measured, load.under_way)
        if (result := self.simulations.results.get((self.key, demand, measured))) is not None:
            return self.simulations.shared.tell(asked, self.machine, Told(demand.broken(result, limits), result.reach))
        told = self.simulations.shared.told(asked, self.machine, lambda: self._told(demand, limits, measured, load))
        if told.reach is None or load.under_way >= (load.concurrency or 0):
            return told
        tokens, seqs = self.machine.bounds  # they decide how many users begin under way
        return Told(told.verdict, told.reach.with_all_of(Reach(tokens, seqs, 0)))

    def _told(self, demand: Demand, limits: Limits, measured: int, load: SimulatedLoad) -> Told:
        """Return what a simulation tells; keep what it measured, if that is enough for percentiles."""
        # Of users who are all simulated nothing else is broken where no limit is.
        is_told = measured == ROUGHLY_MEASURED and (load.concurrency or 0) * self.serving.groups >= demand.amount
        outcome = self.machine.simulated(load, limits, is_verdict=is_told)
        if not isinstance(outcome, ScheduleResult):
            return outcome
        result = demand.seen(self._settled(demand, outcome, measured), self.serving)
        if measured > ROUGHLY_MEASURED:
            self.simulations.results.put((self.key, demand, measured), result)
        return Told(demand.broken(result, limits), result.reach)

    def _served(self, demand: Demand, measured: int) -> ScheduleResult:
        load = demand.simulated(self.serving, self.simulations.sender, measured)
        return self._settled(demand, whole(self.machine.simulated(load)), measured)

    def _settled(self, demand: Demand, result: ScheduleResult, measured: int) -> ScheduleResult:
        """Return a result of the steady state: behind a long warm-up where the short one was seen to be too short."""
        if not demand.may_queue or not warm_up_length(result.ttft_s.values) > len(result.ttft_s) * UNSETTLED_FRACTION:
            return result
        load = demand.simulated(self.serving, self.simulations.sender, measured, has_settled=False)
        again = whole(self.machine.simulated(load))
        return replace(again, reach=again.reach.with_all_of(result.reach))
