"""What can be told of a replica without simulating it: its pace, and the loads it may hope to carry."""

from service.engine.inputs import Limits
from service.engine.time.batching import Serving

# An estimate this many times beyond a limit, or this far below it, needs no simulation.
HOPELESS, SAFE = 1.6, 0.4


def pace_s(serving: Serving, users: int) -> float:
    """Return the mean time per output token of users in flight. [s].

        tpot = decode(n, context) + (n - 1) / output x prompt

    n requests decode side by side; for each token that one of them makes, the engine also reads its
    share of the prompts that take the others' places.
    """
    from service.engine.time import pace  # noqa: PLC0415 - loading the compiler takes half a second

    return float(pace.pace_s(*serving.estimated, users))


def throughput(serving: Serving, users: int) -> float:
    """Return the requests that so many users see answered. [1/s]."""
    return users / (max(serving.traffic.outputs.mean(), 1.0) * pace_s(serving, users))


def in_flight(serving: Serving, request_rate_per_s: float) -> int:
    """Return about how many requests of a rate one stream has in flight: n = rate x output x tpot(n)."""
    from service.engine.time import pace  # noqa: PLC0415 - as above

    return int(pace.users_in_flight(*serving.estimated, request_rate_per_s)) // serving.streams


def hoped_users(serving: Serving, limits: Limits, hope: float) -> int:
    """Return users that a quickly timed replica would not exceed within limits, were it faster by a factor."""
    from service.engine.time import pace  # noqa: PLC0415 - as above

    traffic = serving.traffic
    alone_s = serving.timing.steps.mixed_s(traffic.inputs.mean(), traffic.inputs.mean() / 2, 0.0, 0.0)
    new_fraction = 0.0 if traffic.arrives_read else 1 - traffic.prefix_cache_hit_fraction
    if limits.ttft_s is not None and alone_s * new_fraction > hope * limits.ttft_s:
        return 0
    if limits.tpot_s is None:
        return serving.slots
    return int(pace.users_at_pace(*serving.estimated, hope * limits.tpot_s))
