"""Whether settings of a layout may be faster than what is known, told before they are planned and tried.

    alone    one request's own steps on an idle engine: no load makes them fewer
    shared   the fewest replicas carry the load; where r of them surely do, no replica has less than its share of r,
             and what its users see in a cache without end is the least that they see in a real one

A budget that takes more replicas than the engine's own is no better for it: so many of the engine's own are as fast.
Both are asked of a small sample first, at a percentile so far below the 95th that chance does not tell against it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Final

from service.engine.fleet.aims import NOTHING, Merit
from service.engine.fleet.ceilings import least_s, served_with, timed_as, unplanned
from service.engine.fleet.planned import held_of
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.ranking import ALIKE
from service.engine.fleet.settings import Resolved
from service.engine.fleet.variants import BATCHED_WHY, batched_tokens, with_chosen
from service.engine.inputs import Layout, Limits, Load
from service.engine.time.batching import Serving
from service.engine.time.chance import MEASURED, ROUGHLY_MEASURED
from service.engine.time.demand import Demand, Users, demand_of, wanted_of
from service.engine.time.estimate import alone_s, pace_s
from service.engine.time.results import Violation
from service.engine.time.roomy import BOUNDLESS, forgiving
from service.engine.time.samples import ScheduleResult, whole
from service.engine.time.shared import Told
from service.engine.time.simulation import Machine
from service.engine.time.steps import StepTimers, Timing

PERCENTILE: Final = 95.0  # at which deployments are told apart
# At which a small sample of a share is beyond a time only where a large one surely is at the 95th.
LIKELY: Final = forgiving(Limits(percentile=PERCENTILE)).percentile
# Another budget than the engine's own answered at most so many times as soon, where so many replicas surely carry.
SOONER_BY_BUDGET: Final = 1.3
MANY: Final = 1 << 40
# Replicas that surely carry a load are looked for at so many times those whose memory holds it.
TIMES_THOSE_THAT_HOLD: Final = (1, 2, 4, 8)
# Who surely keeps a limit keeps so much of it, and so does everybody of a small sample.
SURELY: Final = 0.9
# Shares of a pool that may be filled with whole requests, so that nobody is sent back by the chance of their lengths.
SURELY_HELD: Final = 0.9
# A single request was answered at most so many times as fast by a layout as by the fastest that splits every layer.
FASTER_THAN_SPLIT: Final = 1.25


@dataclass(frozen=True, kw_only=True)  # without slots, for what is made once
class _Roomy:
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


def _budgets(
    question: SizeQuestion, resolved: Resolved, layout: Layout, budgets: Sequence[int], known_s: Callable[[], float]
) -> Iterator[int]:
    """Yield the token budgets with which a layout may answer sooner than what is known, whatever the cap on requests.

    A budget that no iteration fills serves as any larger one does, and as any smaller one that is not filled either.
    """
    own = resolved.settings.max_num_batched_tokens
    if _alone_s(_timing(question, resolved, layout), layout, question.load, own) >= known_s():
        return
    told = _told(question, resolved, layout, own, known_s() * SOONER_BY_BUDGET)
    if told is None:
        yield from budgets
    elif told.may_be_faster:
        if told.is_faster_than(known_s()):
            yield own
        others = (tokens for tokens in budgets if tokens != own and not told.serves_alike(tokens))
        for tokens in others:
            other = _told(question, resolved, layout, tokens, known_s())
            if other is None or other.may_be_faster:
                yield tokens


def may_be_as_fast(question: SizeQuestion, resolved: Resolved, layout: Layout, soonest_s: float) -> bool:
    """Return whether a layout with the engine's own settings may be as fast as the soonest that is known. [s]."""
    told = _told(question, resolved, layout, resolved.settings.max_num_batched_tokens, ALIKE * soonest_s)
    return told is None or told.may_be_faster


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What is told of a layout under a token budget."""

    may_be_faster: bool
    at_least_s: float = 0.0  # by a small sample, where its share is known
    most_batched_tokens: int = MANY  # of an iteration
    max_num_batched_tokens: int = 0

    def is_faster_than(self, known_s: float) -> bool:
        """Return whether it may be faster than so much. [s]."""
        return self.may_be_faster and self.at_least_s < known_s

    def serves_alike(self, tokens: int) -> bool:
        """Return whether another budget makes the same iterations. [tokens]."""
        return self.most_batched_tokens < min(tokens, self.max_num_batched_tokens)


def _told(
    question: SizeQuestion, resolved: Resolved, layout: Layout, max_num_batched_tokens: int, than_s: float
) -> _Told | None:
    """Return what is told of a layout with a token budget, before it is planned; None where nothing is."""
    timers, load, timing = question.timers, question.load, _timing(question, resolved, layout)
    if timing is None or timers is None:
        return None
    settings = with_chosen(resolved, "max_num_batched_tokens", max_num_batched_tokens, BATCHED_WHY)
    held = held_of(settings, layout, load.input_tokens, load.output_tokens)
    if alone_s(unplanned(timing, layout, load, max_num_batched_tokens)) >= than_s or not held(1):
        return _Told(may_be_faster=False)
    serving = _surely_served(timing, settings, layout, load, held)
    if not serving.slots:
        return _Told(may_be_faster=True)
    return _told_loaded(question, _Roomy(serving=serving, timers=timers), than_s)


def _told_loaded(question: SizeQuestion, roomy: _Roomy, than_s: float) -> _Told:
    load, limits, spares = question.load, question.limits, question.headroom.spare_replicas
    wanted, demand = wanted_of(load, question.headroom), demand_of(load)
    if roomy.roughly_seen_s(Users(1)) >= than_s:  # no share is less
        return _Told(may_be_faster=False)
    holding = wanted.replicas(roomy.serving.slots) if isinstance(wanted, Users) else 1
    for times in TIMES_THOSE_THAT_HOLD:
        replicas = times * holding
        share = demand.per_replica(replicas + spares)
        least_s = roomy.seen_s(share, than_s)
        if least_s < than_s:
            break
        if roomy.surely_carries(wanted.per_replica(replicas), limits):
            return _Told(may_be_faster=False)
    if roomy.carries_nobody(limits):
        return _Told(may_be_faster=False)
    is_sure = times == 1 and roomy.surely_carries(wanted.per_replica(holding), limits)
    return _Told(
        may_be_faster=True,
        at_least_s=least_s if is_sure else 0.0,
        most_batched_tokens=roomy.most_batched_tokens(share) if is_sure else MANY,
        max_num_batched_tokens=roomy.serving.settings.max_num_batched_tokens,
    )


def _surely_served(
    timing: Timing, resolved: Resolved, layout: Layout, load: Load, held: Callable[[int], int]
) -> Serving:
    """Return how a layout serves a load with as many slots as its cache surely fills."""
    settings = resolved.settings
    seqs = min(settings.max_num_seqs, int(SURELY_HELD * held(settings.max_num_seqs)))
    surely = replace(resolved, settings=replace(settings, max_num_seqs=max(seqs, 1)))
    return served_with(timing, surely, layout, load, seqs * layout.data_parallel_size)


def soonest_first(
    question: SizeQuestion, resolved: Resolved, layouts: Sequence[Layout], known_s: Callable[[], float]
) -> Iterator[tuple[Layout, int]]:
    """Yield layouts and token budgets that may answer sooner than what is known, by an estimate of the asked load.

    Args:
        question: what to deploy.
        resolved: the engine's own settings, or those stated.
        layouts: in question.
        known_s: the time to the last token, at the 95th percentile, that is to be beaten: asked before each. [s]
    """
    budgets = batched_tokens(resolved)
    soon = (index for index, layout in enumerate(layouts) if least_s(question, resolved, layout) < known_s())
    told = sorted((_estimated_s(question, resolved, layouts[index]), index) for index in soon)
    for _, index in told:
        for tokens in _budgets(question, resolved, layouts[index], budgets, known_s):
            yield layouts[index], tokens


def _estimated_s(question: SizeQuestion, resolved: Resolved, layout: Layout) -> float:
    """Return about the time to the last token where one replica serves all of the load; 0 where nobody tells. [s]."""
    timing = _timing(question, resolved, layout)
    if timing is None:
        return 0.0
    serving = unplanned(timing, layout, question.load, resolved.settings.max_num_batched_tokens)
    users = demand_of(question.load).users_in_flight(serving)
    return max(alone_s(serving), serving.traffic.outputs.mean() * pace_s(serving, users))


def rising_in_time(
    question: SizeQuestion, resolved: Resolved, layouts: Sequence[Layout], hope: float, is_hopeless: Iterable[bool]
) -> Iterator[tuple[Merit, bool]]:
    """Yield bounds, rising, on the time of one request on any layout, and whether it is the final one.

    By quick estimates first, then by the layouts' own steps; infinite where nothing carries a request in time.

    Args:
        question: what to deploy.
        resolved: the engine's own settings, or those stated.
        layouts: that split every layer.
        hope: how many times faster than the quick estimate kernels may be.
        is_hopeless: whether one of them carries nothing, asked until one does.
    """
    timers, load, tokens, least_s = question.timers, question.load, resolved.settings.max_num_batched_tokens, 0.0
    if timers is not None and not resolved.settings.num_speculative_tokens:
        keys = [(layout, timed_as(resolved, layout)) for layout in layouts]
        least_s = min(_alone_s(timers.quick(key), layout, load, tokens) for layout, key in keys) / hope
        yield (least_s, 0.0), False
        own_s = min(_alone_s(timers.timer(key), layout, load, tokens) for layout, key in keys)
        least_s = max(own_s / FASTER_THAN_SPLIT, least_s)
        yield (least_s, 0.0), False
    yield NOTHING if all(is_hopeless) else (least_s, 0.0), True


def _timing(question: SizeQuestion, resolved: Resolved, layout: Layout) -> Timing | None:
    """Return the step times of a layout; None where nobody tells them, or drafts change what a step makes."""
    if question.timers is None or resolved.settings.num_speculative_tokens:
        return None
    return question.timers.timer(timed_as(resolved, layout))


def _alone_s(timing: Timing | None, layout: Layout, load: Load, tokens: int) -> float:
    return 0.0 if timing is None else alone_s(unplanned(timing, layout, load, tokens))
