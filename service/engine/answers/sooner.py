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
from service.engine.fleet.given_gpus import as_started
from service.engine.fleet.planned import legal_layouts
from service.engine.fleet.questions import CapacityQuestion
from service.engine.fleet.settings import Resolved
from service.engine.time.demand import Users
from service.engine.time.samples import ScheduleResult

ENOUGH: Final = 0.5  # of the most requests, where nobody says how many are asked for
KEPT_UP: Final = 0.05  # of the answers a second, by which a queue may seem to grow
SOONER: Final = 0.9  # of the time to the last token


def sooner(question: CapacityQuestion, resolved: Resolved, chosen: Deployment) -> tuple[str, ...]:
    """Return what ends requests sooner on the same GPUs, within the limits that are stated.

    It carries the load that is asked for, where what was chosen does; else it holds half as many requests.
    """
    seen = _at_load(chosen, question) or _filled(chosen, question)
    if seen is None:
        return ()
    ended = _ends_s(seen)
    others = ((_ends_s(other), deployment, other) for deployment, other in _enough(question, resolved, chosen))
    ends_s, other, instead = min(others, key=lambda each: each[0], default=(ended, chosen, seen))
    if ends_s > SOONER * ended:
        return ()
    rate, rate_instead = chosen.replicas * seen.requests_per_s, other.replicas * instead.requests_per_s
    which = "and those asked for" if _at_load(chosen, question) else "and"
    told = (
        f"most requests run at once, {_held(chosen)}, on {_named(chosen)}; on {_named(other)} with the engine's own "
        f"settings {_held(other)} do, {which} end within {three_digits(ends_s)} s at the 95th percentile instead of "
        f"{three_digits(ended)} s, {three_digits(rate_instead)} of them per s instead of {three_digits(rate)}"
    )
    return (told,)


def _enough(
    question: CapacityQuestion, resolved: Resolved, chosen: Deployment
) -> Iterator[tuple[Deployment, ScheduleResult]]:
    """Yield what the engine starts by itself within a server and carries enough, with its times."""
    is_at_load = _at_load(chosen, question) is not None
    for layout in legal_layouts(resolved, question.layout).usual:
        is_within = layout.gpus_per_replica <= min(question.gpu_count, question.gpu.gpus_per_node)
        is_chosen = layout == chosen.layout and chosen.resolved == resolved
        if not is_within or not is_usual(layout, question.gpu) or is_chosen:
            continue
        other = as_started(question, resolved, layout)
        if other.plan.settings.max_model_len < chosen.plan.settings.max_model_len:
            continue
        holds_half = _held(other) >= ENOUGH * _held(chosen)
        seen = _at_load(other, question) if is_at_load else _filled(other, question) if holds_half else None
        if seen is not None:
            yield other, seen


def _named(deployment: Deployment) -> str:
    copies = f"{deployment.replicas} replicas of " if deployment.replicas > 1 else ""
    return f"{copies}{stated(deployment.layout)}"


def _held(deployment: Deployment) -> int:
    return deployment.replicas * deployment.carries(Users).max_concurrent_requests


def _ends_s(seen: ScheduleResult) -> float:
    return seen.end_to_end_s.percentile(95.0)


def _filled(deployment: Deployment, question: CapacityQuestion) -> ScheduleResult | None:
    """Return the times of as many users as one replica carries; None where it carries none, or nobody tells time."""
    replica, users = deployment.with_times(question.timers).replica, deployment.carries(Users).max_concurrent_requests
    return replica.seen(Users(users)) if replica is not None and users else None


def _at_load(deployment: Deployment, question: CapacityQuestion) -> ScheduleResult | None:
    """Return the times of the load asked for; None where it is not carried, nobody asked, or nobody tells time."""
    timed, asked = deployment.with_times(question.timers), deployment.load.concurrent_requests or 0
    seen = timed.seen() if timed.is_asked and asked <= _held(timed) else None
    return seen if seen is not None and seen.queue_growth_per_s <= KEPT_UP * seen.requests_per_s else None
