"""What is simulated: requests with lengths and arrivals, drawn from a seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from service.engine.inputs import Load
from service.engine.time.draws import Draws, arrivals_at_mean_one
from service.engine.time.kept import Kept
from service.engine.time.lengths import FixedLength, Length, LogNormalLength, UniformLength

MOST_KEPT: Final = 64  # lists of requests or arrivals, each of some hundred


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The lengths of one request."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0  # of the prompt, computed before the simulation starts


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedLoad:
    """Requests in order of arrival; those before and after the measured ones only keep the engine busy."""

    requests: tuple[Request, ...]
    concurrency: int | None  # users of a closed loop, who send the next request when the last is answered
    arrivals_s: tuple[float, ...] = ()  # of an open loop, one for each request
    request_rate_per_s: float | None = None  # of an open loop
    first_measured: int = 0
    measured: int | None = None  # None: all of the rest

    @property
    def last_measured(self) -> int:
        """Return the index behind the last measured request."""
        return len(self.requests) if self.measured is None else self.first_measured + self.measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What requests look like, whatever their number."""

    inputs: Length
    outputs: Length
    prefix_cache_hit_fraction: float = 0.0  # of a prompt, already computed
    burstiness: float = 1.0  # of arrivals: 1 is Poisson, below comes in bursts, above is more even
    speculative_acceptance_fraction: float = 0.0
    arrives_read: bool = False  # prompts come with their cache, from a prefill pool
    seed: int = 1


def traffic_of(load: Load) -> Traffic:
    """Return the requests of a load: both lengths spread alike around their means."""
    return Traffic(
        inputs=_spread(load, load.input_tokens),
        outputs=FixedLength(tokens=1) if load.phase == "prefill" else _spread(load, load.output_tokens),
        arrives_read=load.phase == "decode",
        prefix_cache_hit_fraction=load.prefix_cache_hit_fraction,
        burstiness=load.burstiness,
        speculative_acceptance_fraction=load.speculative_acceptance_fraction,
    )


def _spread(load: Load, mean_tokens: int) -> Length:
    """Return lengths around a mean, as the load states their distribution."""
    mean, variation = max(mean_tokens, 1), load.length_variation_fraction
    match load.length_distribution:
        case "fixed":
            return FixedLength(tokens=mean)
        case "uniform":
            width = int(mean * variation)
            return UniformLength(shortest_tokens=max(mean - width, 1), longest_tokens=mean + width)
        case "lognormal":
            return LogNormalLength(mean_tokens=float(mean), variation=variation)
        case _ as never:
            assert_never(never)


class Sender:
    """Sends requests as benchmarks, users or arrivals do; what a seed drew is kept for the next load."""

    def __init__(self) -> None:
        """Start with nothing drawn."""
        self._requests: Kept[tuple[Request, ...]] = Kept(MOST_KEPT)
        self._arrivals: Kept[tuple[float, ...]] = Kept(MOST_KEPT)

    def requests(self, traffic: Traffic, count: int) -> tuple[Request, ...]:
        """Return requests that come at once; the same seed draws the same lengths."""
        return self._requests.get_or((traffic, count), lambda: _drawn(traffic, count))

    def burst_of_users(self, traffic: Traffic, concurrency: int, count: int) -> SimulatedLoad:
        """Return what benchmarks send: users who all start at once, and every request measured."""
        return SimulatedLoad(requests=self.requests(traffic, count), concurrency=concurrency)

    def steady_users(self, traffic: Traffic, concurrency: int, measured: int, slots: int) -> SimulatedLoad:
        """Return users of a closed loop in its steady state.

        The first request of each user is not measured; nor are those that keep the engine busy until the
        last measured one is answered.

        Args:
            traffic: lengths.
            concurrency: users. [count]
            measured: requests that are measured. [count]
            slots: first requests that are under way, each at a random point, so that users meet by chance,
                as they do; those of further users wait. [count]
        """
        requests = self.requests(traffic, concurrency + measured + concurrency)
        running = min(slots, concurrency)
        return SimulatedLoad(
            requests=(*_under_way(traffic, requests[:running]), *requests[running:]),
            concurrency=concurrency,
            first_measured=concurrency,
            measured=measured,
        )

    def open_loop(
        self, traffic: Traffic, request_rate_per_s: float, warm_up: int, measured: int, under_way: int = 0
    ) -> SimulatedLoad:
        """Return requests that come on their own, whatever the engine does.

            gap = Gamma(shape = burstiness, mean = 1 / rate)

        Args:
            traffic: lengths, and burstiness as in vLLM's benchmark: 1 is Poisson.
            request_rate_per_s: mean arrivals. [1/s]
            warm_up: requests that come before the measured ones. [count]
            measured: requests that are measured. [count]
            under_way: requests in flight when the simulation begins, as in the steady state. [count]

        The same seed draws the same lengths and the same gaps, scaled, at every rate: curves over the
        rate are smooth.
        """
        count = warm_up + measured
        requests = self.requests(traffic, count + under_way)
        arrivals_s = self._arrivals.get_or(
            (traffic.seed, traffic.burstiness, count),
            lambda: arrivals_at_mean_one(traffic.seed + 2, traffic.burstiness, count),
        )
        return SimulatedLoad(
            requests=(*_under_way(traffic, requests[count:]), *requests[:count]),
            concurrency=None,
            arrivals_s=(*[0.0] * under_way, *(at / request_rate_per_s for at in arrivals_s)),
            request_rate_per_s=request_rate_per_s,
            first_measured=under_way + warm_up,
            measured=measured,
        )


def _drawn(traffic: Traffic, count: int) -> tuple[Request, ...]:
    draws = Draws(traffic.seed)
    return tuple(
        _request(traffic, traffic.inputs.at(draws.uniform()), traffic.outputs.at(draws.uniform())) for _ in range(count)
    )


def _request(traffic: Traffic, input_tokens: int, output_tokens: int) -> Request:
    return Request(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=input_tokens - 1 if traffic.arrives_read else 0,
    )


def _under_way(traffic: Traffic, whole: Sequence[Request]) -> list[Request]:
    """Return requests that began before the simulation, each at a random point of its answer."""
    draws = Draws(traffic.seed + 1)
    started = []
    for request in whole:
        left = max(round(request.output_tokens * draws.uniform()), 1)
        so_far = request.input_tokens + request.output_tokens - left
        started.append(Request(input_tokens=so_far, output_tokens=left, cached_tokens=so_far - 1))
    return started
