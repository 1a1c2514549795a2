"""Requests longer than a served context: their mean fits, and of lengths that spread around it some do not."""

from bisect import bisect_right
from typing import Final

from service.engine.arithmetic import three_digits
from service.engine.fleet.deployments import Deployment
from service.engine.time.lengths import Length

POINTS: Final = 256  # of each distribution, as likely as one another
LEAST_SHARE: Final = 0.005


def overlong(deployment: Deployment) -> tuple[str, ...]:
    """Return the share of requests that an engine refuses as longer than `max_model_len`, where any to speak of are.

    Args:
        deployment: with times, of a load whose lengths were stated.
    """
    if deployment.replica is None:
        return ()
    traffic, most = deployment.replica.serving.traffic, deployment.plan.settings.max_model_len
    share = share_beyond(traffic.inputs, traffic.outputs, most)
    if share < LEAST_SHARE:
        return ()
    longer = f"{three_digits(100 * share)} % of the requests are longer than max_model_len={most}"
    return (f"{longer}, and the engine refuses those: lengths spread as length_variation_fraction says",)


def share_beyond(inputs: Length, outputs: Length, most_tokens: int) -> float:
    """Return the share of requests of which prompt and completion together are longer than so many tokens.

    Both are drawn apart from each other: uniform lengths exceed their mean half of the time.

    >>> from service.engine.time.lengths import UniformLength
    >>> length = UniformLength(shortest_tokens=90, longest_tokens=110)
    >>> round(share_beyond(length, length, 200), 2), share_beyond(length, length, 220)
    (0.5, 0.0)
    """
    middles = [(place + 0.5) / POINTS for place in range(POINTS)]
    if inputs.quantile(middles[-1]) + outputs.quantile(middles[-1]) <= most_tokens:  # as for most questions
        return 0.0
    read, written = ([length.quantile(share) for share in middles] for length in (inputs, outputs))
    return sum(POINTS - bisect_right(written, most_tokens - each) for each in read) / POINTS**2
