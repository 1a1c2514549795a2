"""What can be told of a replica without simulating it: its pace, and the loads it may hope to carry."""

from typing import Final

from service.engine.inputs import Limits
from service.engine.time.batching import Serving

IN_FLIGHT_ROUNDS: Final = 12
# An estimate this many times beyond a limit, or this far below it, needs no simulation.
HOPELESS, SAFE = 1.6, 0.4


def pace_s(serving: Serving, users: int) -> float:
    """Return the mean time per output token of users in flight. [s].

        tpot = decode(n, context) + n / output x prompt

    n requests decode side by side; for each token they make, the engine also reads its share of the
    prompts that take their places.
    """
    traffic, settings, steps = serving.traffic, serving.settings, serving.timing.steps
    inputs, outputs = traffic.inputs.mean(), traffic.outputs.mean()
    decoding = users / serving.streams
    alone = steps.decode_s(decoding, inputs + outputs / 2)
    if traffic.arrives_read:
        return alone / settings.tokens_per_step
    new_tokens = max(inputs * (1 - traffic.prefix_cache_hit_fraction), 1.0)
    budget = settings.max_num_batched_tokens
    batch = min(max(new_tokens, min(decoding * new_tokens, budget) / 2), budget)
    prompt = steps.mixed_s(batch, inputs / 2, 0.0, 0.0) * new_tokens / batch
    return alone / settings.tokens_per_step + decoding / max(outputs, 1.0) * prompt


def throughput(serving: Serving, users: int) -> float:
    """Return the requests that so many users see answered. [1/s]."""
    return users / (max(serving.traffic.outputs.mean(), 1.0) * pace_s(serving, users))


def in_flight(serving: Serving, request_rate_per_s: float) -> int:
    """Return about how many requests of a rate one stream has in flight: n = rate x output x tpot(n)."""
    most = max(serving.slots, 1)
    users = 1
    for _ in range(IN_FLIGHT_ROUNDS):
        lives_s = serving.traffic.outputs.mean() * pace_s(serving, users)
        users = min(max(round(request_rate_per_s * lives_s), 1), most)
    return users // serving.streams


def hoped_users(serving: Serving, limits: Limits, hope: float) -> int:
    """Return users that a quickly timed replica would not exceed within limits, were it faster by a factor."""
    users = _hoped_at_pace(serving, limits, hope)
    traffic = serving.traffic
    alone_s = serving.timing.steps.mixed_s(traffic.inputs.mean(), traffic.inputs.mean() / 2, 0.0, 0.0)
    new_fraction = 0.0 if traffic.arrives_read else 1 - traffic.prefix_cache_hit_fraction
    is_too_slow = limits.ttft_s is not None and alone_s * new_fraction > hope * limits.ttft_s
    return 0 if is_too_slow else users


def _hoped_at_pace(serving: Serving, limits: Limits, hope: float) -> int:
    """Return the most users whose estimated time per output token is within its limit and a factor."""
    if limits.tpot_s is None:
        return serving.slots
    low, high = 0, serving.slots + 1
    while high - low > 1:
        middle = (low + high) // 2
        if pace_s(serving, middle) > hope * limits.tpot_s:
            high = middle
        else:
            low = middle
    return low
