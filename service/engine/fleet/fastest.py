"""Whether settings of a layout may be faster than what is known, told before they are planned and tried.

    alone    one request's own steps on an idle engine: no load makes them fewer
    shared   the fewest replicas carry the load; where r of them surely do, no replica has less than its share of r,
             and what its users see in a cache without end is the least that they see in a real one

A budget that takes more replicas than the engine's own is no better for it: so many of the engine's own are as fast.
Where these are known, no other budget's share is less than theirs.
Both are asked of a small sample first, at a percentile so far below the 95th that chance does not tell against it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from service.engine.fleet.aims import NOTHING, Merit
from service.engine.fleet.ceilings import least_s, served_with, timed_as, unplanned
from service.engine.fleet.endless import Endless
from service.engine.fleet.planned import held_of
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.ranking import ALIKE
from service.engine.fleet.settings import Resolved
from service.engine.fleet.variants import BATCHED_WHY, batched_tokens, with_chosen
from service.engine.inputs import Layout, Load
from service.engine.time.batching import Serving
from service.engine.time.demand import Users, demand_of, wanted_of
from service.engine.time.estimate import MOST_REPLICAS, alone_s, pace_s
from service.engine.time.steps import Timing

# Another budget than the engine's own answered at most so many times as soon, where so many replicas surely carry.
SOONER_BY_BUDGET: Final = 1.3
MANY: Final = 1 << 40
# Replicas that surely carry a load are looked for at so many times those whose memory holds it.
TIMES_THOSE_THAT_HOLD: Final = (1, 2, 4, 8)
# Shares of a pool that may be filled with whole requests, so that nobody is sent back by the chance of their lengths.
SURELY_HELD: Final = 0.9
# A single request was answered at most so many times as fast by a layout as by the fastest that splits every layer.
FASTER_THAN_SPLIT: Final = 1.25


def _budgets(
    question: SizeQuestion,
    resolved: Resolved,
    layout: Layout,
    budgets: Sequence[int],
    known_s: Callable[[], float],
    most_of: Callable[[Layout], int],
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
            other = _told(question, resolved, layout, tokens, known_s(), min(most_of(layout), told.enough))
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
    enough: int = MOST_REPLICAS  # that surely carry the load, spares included

    def is_faster_than(self, known_s: float) -> bool:
        """Return whether it may be faster than so much. [s]."""
        return self.may_be_faster and self.at_least_s < known_s

    def serves_alike(self, tokens: int) -> bool:
        """Return whether another budget makes the same iterations. [tokens]."""
        return self.most_batched_tokens < min(tokens, self.max_num_batched_tokens)


def _told(
    question: SizeQuestion,
    resolved: Resolved,
    layout: Layout,
    max_num_batched_tokens: int,
    than_s: float,
    most: int = MOST_REPLICAS,
) -> _Told | None:
    """Return what is told of a layout with a token budget, before it is planned; None where nothing is.

    Args:
        question: what to deploy.
        resolved: the engine's own settings, or those stated.
        layout: of one replica.
        max_num_batched_tokens: in the place of its own. [tokens]
        than_s: the time to the last token that is to be beaten. [s]
        most: the most replicas of interest, spares included. [replicas]
    """
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
    return _told_loaded(question, Endless(serving=serving, timers=timers), than_s, most)


def _told_loaded(question: SizeQuestion, roomy: Endless, than_s: float, most: int) -> _Told:
    load, limits, spares = question.load, question.limits, question.headroom.spare_replicas
    wanted, demand = wanted_of(load, question.headroom), demand_of(load)
    if most < MOST_REPLICAS and roomy.seen_s(demand.per_replica(most), than_s) >= than_s:
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
        enough=holding + spares if is_sure else MOST_REPLICAS,
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
    question: SizeQuestion,
    resolved: Resolved,
    layouts: Sequence[Layout],
    known_s: Callable[[], float],
    most_of: Callable[[Layout], int] = lambda _: MOST_REPLICAS,
) -> Iterator[tuple[Layout, int]]:
    """Yield layouts and token budgets that may answer sooner than what is known, by an estimate of the asked load.

    Args:
        question: what to deploy.
        resolved: the engine's own settings, or those stated.
        layouts: in question.
        known_s: the time to the last token, at the 95th percentile, that is to be beaten: asked before each. [s]
        most_of: the most replicas of a layout that are of interest with another budget than the engine's own, spares
            included: asked before each. [replicas]
    """
    budgets = batched_tokens(resolved)
    soon = (index for index, layout in enumerate(layouts) if least_s(question, resolved, layout) < known_s())
    told = sorted((_estimated_s(question, resolved, layouts[index]), index) for index in soon)
    for _, index in told:
        for tokens in _budgets(question, resolved, layouts[index], budgets, known_s, most_of):
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
