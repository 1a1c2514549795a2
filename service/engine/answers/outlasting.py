"""Requests that take longer than was stated of them: then fewer come through than a rate and that time promise.

    concurrent_requests = request_rate_per_s x request_duration_s     carries the rate only where requests end in time

So many users wait for one another, and ask no faster than they are answered; arrivals come all the same.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from service.engine.arithmetic import three_digits
from service.engine.fleet.deployments import Deployment
from service.engine.inputs import Load
from service.engine.time.steps import StepTimers

NEARLY: Final = 0.95  # of a rate, that a sample of a load which carries it shows at least


def outlast(load: Load, answered_per_s: Callable[[], float | None]) -> bool:
    """Return whether requests take so much longer than stated that their rate is not carried.

    Args:
        load: with a rate and, if stated, the time that each request takes.
        answered_per_s: requests that are answered, of as many in flight as both say; None where nobody tells. [1/s]
    """
    if load.request_rate_per_s is None or load.request_duration_s is None:
        return False
    answered = answered_per_s()
    return answered is not None and answered < NEARLY * load.request_rate_per_s


def answered_per_s(deployment: Deployment, timers: StepTimers | None) -> float | None:
    """Return the requests that a deployment answers of the load it was asked for; None where nobody times it. [1/s]."""
    state = deployment.with_times(timers).state()
    return None if state is None else state.requests_per_s


def as_arrivals(load: Load) -> Load:
    """Return a load whose requests take as long as they take."""
    return replace(load, request_duration_s=None)


def left_out(load: Load, sized: Iterable[Load], answered_per_s: float | None = None) -> tuple[str, ...]:
    """Return the warning that a stated time is left out, where any load that was sized has none.

    Args:
        load: as it was asked.
        sized: as it was sized, once or for each of several deployments.
        answered_per_s: requests that would have been answered with it, if that is one number. [1/s]
    """
    if load.request_duration_s is None or all(each.request_duration_s is not None for each in sized):
        return ()
    told = "fewer" if answered_per_s is None else f"{three_digits(answered_per_s)}"
    carried = f"{told} of the {load.request_rate_per_s:g} requests a second would be carried"
    why = (
        f"requests take longer than request_duration_s={load.request_duration_s:g} on what it leads to, where {carried}"
    )
    return (f"{why}: it is left out, and they are sized as arrivals",)
