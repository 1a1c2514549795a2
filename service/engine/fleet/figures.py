"""What is told of a deployment under load: rates, latency, and the state at the asked load."""

from dataclasses import dataclass

from service.engine.fleet.deployments import Deployment
from service.engine.time.carried import Carried
from service.engine.time.demand import Users
from service.engine.time.results import Latency, LoadState
from service.engine.time.samples import ScheduleResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The highest rate within limits. [1/s]."""

    of_one: float
    of_all: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one replica carries, and what all of them do; None where nobody tells time."""

    of_one: Carried
    rates: Rates | None
    output_tokens_per_s: float | None  # of one replica at its highest rate
    queue_diverges_at_requests_per_s: float | None  # of all
    latency: Latency | None
    at_load: LoadState | None


def figures(deployment: Deployment, of_one: Carried, rates: Rates | None = None) -> Figures:
    """Return the figures of a deployment, at the asked load or else at the largest one it carries.

    Args:
        deployment: so many replicas, with their times where anybody tells them.
        of_one: what one of them carries.
        rates: the highest rates; None: those of what one replica carries.
    """
    replica, replicas = deployment.replica, deployment.replicas
    if replica is None:
        return Figures(
            of_one=of_one,
            rates=None,
            output_tokens_per_s=None,
            queue_diverges_at_requests_per_s=None,
            latency=None,
            at_load=None,
        )
    rate, users = of_one.max_request_rate_per_s, of_one.max_concurrent_requests
    by_users = users > 0 and (rate is None or not deployment.is_asked)
    most = Users(users)
    at_most = replica.seen(most, replica.measured_for(most, deployment.limits)) if by_users else None
    if rate is None:
        rate = at_most.requests_per_s if at_most else 0.0
    rates = rates or Rates(of_one=rate, of_all=replicas * rate)
    seen = deployment.seen() if deployment.is_asked else at_most
    at_load = _state(deployment, at_most)
    alone = replica.alone()
    return Figures(
        of_one=of_one,
        rates=rates,
        output_tokens_per_s=rates.of_one * (alone.output_tokens_per_s / alone.requests_per_s),
        queue_diverges_at_requests_per_s=replicas * max(replica.saturation_rate, rate),
        latency=seen.latency(replica.timing.basis, deployment.limits.percentile) if seen else None,
        at_load=at_load,
    )


def _state(deployment: Deployment, at_most: ScheduleResult | None) -> LoadState | None:
    """Return the state at the asked load, or else at the largest one."""
    if deployment.is_asked or at_most is None:
        return deployment.state()
    return at_most.state(deployment.replicas)
