"""Of the layouts that carry the load asked for, the one that ends its requests soonest, on the GPUs given.

Weights cut thin over many stages leave the most room, and every token crosses them all: the layout that holds most
requests keeps the few that are asked for waiting. A GPU more must not carry less: what is chosen carries at least what
one GPU less carries at most. Within limits that are stated, more is better than sooner.

Source:
    vLLM `docs/serving/parallelism_scaling.md`: tensor parallel within a server, stages over several.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from math import nextafter
from typing import Final

from service.engine.errors import UnsupportedLayoutError
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.given_gpus import as_started, asked_users, largest, merit_of, of_layout
from service.engine.fleet.lengths import has_lengths
from service.engine.fleet.most import Merit
from service.engine.fleet.planned import legal_layouts
from service.engine.fleet.questions import CapacityQuestion
from service.engine.fleet.settings import Resolved
from service.engine.fleet.space import simplicity
from service.engine.inputs import Layout
from service.engine.time.demand import Users, demand_of
from service.engine.time.samples import ScheduleResult

SOONER: Final = 0.9  # of the time to the last token: for less, no room is given up
NOTHING: Final[Merit] = (False, 0, 0.0)
KEPT_UP: Final = 0.05  # of the answers a second, by which a queue may seem to grow


def soonest(question: CapacityQuestion, resolved: Resolved, most: Deployment) -> Deployment:
    """Return what ends the load asked for sooner by a tenth than what carries most; that where nothing does.

    Of several within a tenth of the soonest those of the fewest stages count, and of these what carries most. GPUs that
    carry nothing more change nothing.

    Args:
        question: what was asked.
        resolved: its settings.
        most: the deployment that carries most.
    """
    if question.limits.are_stated or not has_lengths(question) or at_load(most, question) is None:
        return most
    needed, roomiest, (_, _, of_fewer) = needed_for(question, resolved, most)
    least = max(of_fewer, demand_of(question.load).amount)
    others = (
        other for layout in _sooner(needed, resolved, roomiest) for other in _best_of(needed, resolved, layout, least)
    )
    chosen = _soonest(needed, roomiest, others)
    if chosen is roomiest:
        return most
    return replace(chosen, replicas=question.gpu_count // chosen.layout.gpus_per_replica)


def needed_for(
    question: CapacityQuestion, resolved: Resolved, most: Deployment
) -> tuple[CapacityQuestion, Deployment, Merit]:
    """Return the question on the fewest GPUs that carry as much, what carries it there, and what one GPU less carries.

    What is chosen there is chosen on more GPUs that carry no more.
    """
    whole = merit_of(question, most)
    while True:
        needed = replace(question, gpu_count=most.gpus)
        fewer = replace(question, gpu_count=most.gpus - 1)
        try:
            other = largest(fewer, resolved)
        except UnsupportedLayoutError:
            return needed, most, NOTHING
        least = merit_of(fewer, other)
        if least < whole:
            return needed, most, least
        most = other


def held(deployment: Deployment) -> int:
    """Return the requests that all replicas hold at once. [requests]."""
    return deployment.replicas * deployment.carries(Users).max_concurrent_requests


def at_load(deployment: Deployment, question: CapacityQuestion) -> ScheduleResult | None:
    """Return the times of the load asked for; None where it is not carried, nobody asked, or nobody tells time."""
    timed = deployment.with_times(question.timers)
    seen = timed.seen() if timed.is_asked and asked_users(timed.load) <= held(timed) else None
    return seen if seen is not None and seen.queue_growth_per_s <= KEPT_UP * seen.requests_per_s else None


def ends_s(seen: ScheduleResult) -> float:
    """Return within how long requests end, at the 95th percentile. [s]."""
    return seen.end_to_end_s.percentile(95.0)


def _sooner(question: CapacityQuestion, resolved: Resolved, roomiest: Deployment) -> Iterator[Layout]:
    """Yield the usual layouts that end the load sooner with the engine's own settings, or do not carry it with them."""
    whole = at_load(roomiest, question)
    for layout in legal_layouts(resolved, question.layout).usual:
        if layout == roomiest.layout or layout.gpus_per_replica > question.gpu_count:
            continue
        seen = at_load(as_started(question, resolved, layout), question)
        if seen is None or whole is None or ends_s(seen) <= SOONER * ends_s(whole):
            yield layout


def _best_of(question: CapacityQuestion, resolved: Resolved, layout: Layout, least: float) -> Iterator[Deployment]:
    """Yield the best of a layout, if it carries so much at least."""
    tried = deque(of_layout(question, resolved, layout, (True, 0, nextafter(least, 0.0))), maxlen=1)
    yield from tried


def _soonest(question: CapacityQuestion, roomiest: Deployment, others: Iterator[Deployment]) -> Deployment:
    """Return what carries most of the plainest of what ends the load sooner by a tenth, or what carries most of all."""
    seen = ((other, at_load(other, question)) for other in (roomiest, *others))
    ended = [(ends_s(times), other) for other, times in seen if times is not None]
    first_s = min((ends for ends, _ in ended), default=0.0)
    as_soon = [other for ends, other in ended if SOONER * ends <= first_s]

    def rank(other: Deployment) -> tuple[tuple[float, ...], float, tuple[float, ...]]:
        *split, copies, experts, gpus = simplicity(other.layout)
        return tuple(split), -merit_of(question, other)[2], (copies, experts, gpus)

    return roomiest if roomiest in as_soon else min(as_soon, key=rank, default=roomiest)
