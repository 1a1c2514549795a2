"""What ends requests sooner than the layout and settings that hold most of them, and holds at least half as many.

The layout with the most room, or the most users within limits, is the answer to how much fits. It may be slower by far
than one with a little less: weights cut thin over many ranks or stages leave the largest cache, and every token
crosses them all; steps of few tokens leave the most memory, and read prompts in many. Operators start copies within
servers as long as weights fit there, with settings that read prompts in few steps.
"""

from collections.abc import Iterator
from typing import Final

from service.engine.answers.plainer import is_usual, stated
from service.engine.arithmetic import three_digits
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.given_gpus import as_started, carried
from service.engine.fleet.planned import legal_layouts
from service.engine.fleet.questions import CapacityQuestion
from service.engine.fleet.settings import Resolved
from service.engine.fleet.soonest import SOONER, at_load, ends_s, held
from service.engine.time.demand import Arrivals, Users, kind_of
from service.engine.time.samples import ScheduleResult

ENOUGH: Final = 0.5  # of the most requests, where nobody says how many are asked for


def sooner(question: CapacityQuestion, resolved: Resolved, chosen: Deployment, most: Deployment) -> tuple[str, ...]:
    """Return what ends requests sooner on the same GPUs, within the limits that are stated.

    It carries the load that is asked for, where what was chosen does; else it holds half as many requests. What holds
    more than was chosen is told too.
    """
    seen = at_load(chosen, question) or _filled(chosen, question)
    if seen is None:
        return ()
    ended = ends_s(seen)
    more = tuple(_roomier(question, chosen, ended, most))
    others = ((ends_s(other), deployment, other) for deployment, other in _enough(question, resolved, chosen))
    ends, other, instead = min(others, key=lambda each: each[0], default=(ended, chosen, seen))
    if ends > SOONER * ended:
        return more
    rate, rate_instead = chosen.replicas * seen.requests_per_s, other.replicas * instead.requests_per_s
    which = "and those asked for" if at_load(chosen, question) else "and"
    here = f"{held(chosen)} requests run at once on" if more else f"most requests run at once, {held(chosen)}, on"
    told = (
        f"{here} {_named(chosen)}; on {_named(other)} with the engine's own "
        f"settings {held(other)} do, {which} end within {three_digits(ends)} s at the 95th percentile instead of "
        f"{three_digits(ended)} s, {three_digits(rate_instead)} of them per s instead of {three_digits(rate)}"
    )
    return (*more, told)


def _roomier(question: CapacityQuestion, chosen: Deployment, ended_s: float, most: Deployment) -> Iterator[str]:
    """Yield what carries more than was chosen, and when it ends the load asked for."""
    more, less = (carried(question, each) for each in (most, chosen))
    if more <= less:
        return
    is_rate = kind_of(question.load) is Arrivals
    amounts = [three_digits(each) if is_rate else f"{each:.0f}" for each in (more, less)]
    what = "requests are answered per s" if is_rate else "requests run at once"
    told = f"most {what}, {amounts[0]} instead of {amounts[1]}, on {_named(most)}"
    if (seen := at_load(most, question)) is None:
        yield told
        return
    yield (
        f"{told}, where those asked for end within {three_digits(ends_s(seen))} s at the 95th percentile instead of "
        f"{three_digits(ended_s)} s"
    )


def _enough(
    question: CapacityQuestion, resolved: Resolved, chosen: Deployment
) -> Iterator[tuple[Deployment, ScheduleResult]]:
    """Yield what the engine starts by itself within a server and carries enough, with its times."""
    is_at_load = at_load(chosen, question) is not None
    for layout in legal_layouts(resolved, question.layout).usual:
        is_within = layout.gpus_per_replica <= min(question.gpu_count, question.gpu.gpus_per_node)
        is_chosen = layout == chosen.layout and chosen.resolved == resolved
        if not is_within or not is_usual(layout, question.gpu) or is_chosen:
            continue
        other = as_started(question, resolved, layout)
        if other.plan.settings.max_model_len < chosen.plan.settings.max_model_len:
            continue
        holds_half = held(other) >= ENOUGH * held(chosen)
        seen = at_load(other, question) if is_at_load else _filled(other, question) if holds_half else None
        if seen is not None:
            yield other, seen


def _named(deployment: Deployment) -> str:
    copies = f"{deployment.replicas} replicas of " if deployment.replicas > 1 else ""
    return f"{copies}{stated(deployment.layout)}"


def _filled(deployment: Deployment, question: CapacityQuestion) -> ScheduleResult | None:
    """Return the times of as many users as one replica carries; None where it carries none, or nobody tells time."""
    replica, users = deployment.with_times(question.timers).replica, deployment.carries(Users).max_concurrent_requests
    return replica.seen(Users(users)) if replica is not None and users else None
