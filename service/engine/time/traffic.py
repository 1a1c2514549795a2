"""What is simulated: requests with lengths and arrivals, drawn from a seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import exp, log, sqrt
from statistics import NormalDist
from typing import assert_never

from service.engine.inputs import Load
from service.engine.time.scheduler import Request, SimulatedLoad

_MULTIPLIER, _INCREMENT, _MODULUS = 6364136223846793005, 1442695040888963407, 1 << 64


class Samples:
    """Uniform numbers in (0, 1) of a linear congruential generator: the same for the same seed, everywhere.

    x = 6364136223846793005 x + 1442695040888963407 mod 2^64; the upper 53 bits are used.

    Sources:
        D. E. Knuth, The Art of Computer Programming 2, section 3.3.4 (MMIX).
    """

    def __init__(self, seed: int) -> None:
        self._state = (2 * seed + 1) * _MULTIPLIER % _MODULUS

    def uniform(self) -> float:
        """Return the next number in (0, 1)."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) % _MODULUS
        return ((self._state >> 11) + 0.5) / (1 << 53)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedLength:
    """Every request has the same length."""

    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformLength:
    """Every length between two bounds is as likely."""

    shortest_tokens: int
    longest_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNormalLength:
    """Many short and a few very long requests: log-normal with the given mean and coefficient of variation."""

    mean_tokens: float
    variation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EmpiricalLength:
    """Lengths drawn from a list, each entry as likely."""

    tokens: tuple[int, ...]


Length = FixedLength | UniformLength | LogNormalLength | EmpiricalLength


def length_at(length: Length, quantile: float) -> int:
    """Return the length at a quantile of its distribution, at least 1. [tokens]."""
    match length:
        case FixedLength(tokens=tokens):
            return max(tokens, 1)
        case UniformLength(shortest_tokens=low, longest_tokens=high):
            return max(low + int(quantile * (high - low + 1)), 1)
        case LogNormalLength(mean_tokens=mean, variation=variation):
            # variance of the logarithm: ln(1 + variation^2)
            spread = log(1 + variation * variation)
            if spread <= 0:
                return max(round(mean), 1)
            return max(round(mean * exp(NormalDist().inv_cdf(quantile) * spread**0.5 - spread / 2)), 1)
        case EmpiricalLength(tokens=tokens):
            ordered = sorted(tokens)
            return max(ordered[min(int(quantile * len(ordered)), len(ordered) - 1)], 1)


def mean_length(length: Length) -> float:
    """Return the mean of a distribution of lengths. [tokens]."""
    match length:
        case FixedLength(tokens=tokens):
            return float(tokens)
        case UniformLength(shortest_tokens=low, longest_tokens=high):
            return (low + high) / 2
        case LogNormalLength(mean_tokens=mean):
            return mean
        case EmpiricalLength(tokens=tokens):
            return sum(tokens) / len(tokens)


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
        inputs=_length(load, load.input_tokens),
        outputs=FixedLength(tokens=1) if load.phase == "prefill" else _length(load, load.output_tokens),
        arrives_read=load.phase == "decode",
        prefix_cache_hit_fraction=load.prefix_cache_hit_fraction,
        burstiness=load.burstiness,
        speculative_acceptance_fraction=load.speculative_acceptance_fraction,
    )


def _length(load: Load, mean_tokens: int) -> Length:
    mean, spread = max(mean_tokens, 1), load.length_variation_fraction
    match load.length_distribution:
        case "fixed":
            return FixedLength(tokens=mean)
        case "uniform":
            width = int(mean * spread)
            return UniformLength(shortest_tokens=max(mean - width, 1), longest_tokens=mean + width)
        case "lognormal":
            return LogNormalLength(mean_tokens=float(mean), variation=spread)
        case _ as never:
            assert_never(never)


@lru_cache(maxsize=64)
def drawn(traffic: Traffic, count: int) -> tuple[Request, ...]:
    """Return requests that come at once; the same seed draws the same lengths."""
    draws = Samples(traffic.seed)
    return tuple(
        _request(traffic, length_at(traffic.inputs, draws.uniform()), length_at(traffic.outputs, draws.uniform()))
        for _ in range(count)
    )


def _request(traffic: Traffic, input_tokens: int, output_tokens: int) -> Request:
    return Request(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=input_tokens - 1 if traffic.arrives_read else 0,
    )


def burst_of_users(traffic: Traffic, concurrency: int, count: int) -> SimulatedLoad:
    """Return what benchmarks send: users who all start at once, and every request measured."""
    return SimulatedLoad(requests=drawn(traffic, count), concurrency=concurrency)


def steady_users(traffic: Traffic, concurrency: int, measured: int, slots: int) -> SimulatedLoad:
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
    requests = drawn(traffic, concurrency + measured + concurrency)
    running = min(slots, concurrency)
    return SimulatedLoad(
        requests=(*_under_way(traffic, requests[:running]), *requests[running:]),
        concurrency=concurrency,
        first_measured=concurrency,
        measured=measured,
    )


def _under_way(traffic: Traffic, whole: Sequence[Request]) -> list[Request]:
    """Return requests that began before the simulation, each at a random point of its answer."""
    draws = Samples(traffic.seed + 1)
    started = []
    for request in whole:
        left = max(round(request.output_tokens * draws.uniform()), 1)
        so_far = request.input_tokens + request.output_tokens - left
        started.append(Request(input_tokens=so_far, output_tokens=left, cached_tokens=so_far - 1))
    return started


def open_loop(
    traffic: Traffic, request_rate_per_s: float, warm_up: int, measured: int, under_way: int = 0
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
    requests = drawn(traffic, count + under_way)
    return SimulatedLoad(
        requests=(*_under_way(traffic, requests[count:]), *requests[:count]),
        concurrency=None,
        arrivals_s=(*[0.0] * under_way, *(at / request_rate_per_s for at in _arrivals(traffic, count))),
        request_rate_per_s=request_rate_per_s,
        first_measured=under_way + warm_up,
        measured=measured,
    )


@lru_cache(maxsize=64)
def _arrivals(traffic: Traffic, count: int) -> tuple[float, ...]:
    """Return arrivals at a mean rate of one."""
    draws = Samples(traffic.seed + 2)
    return tuple(accumulate(_gap(draws, traffic.burstiness) for _ in range(count)))


def _gap(draws: Samples, shape: float) -> float:
    """Return a gap of mean 1: Gamma(shape) / shape.

    Sources:
        G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables (2000).
    """
    if shape == 1.0:
        return -log(draws.uniform())
    if shape > 1e6:
        return 1.0
    boost = float(draws.uniform() ** (1 / shape)) if shape < 1 else 1.0
    d: float = (shape if shape >= 1 else shape + 1) - 1 / 3
    c = 1 / sqrt(9 * d)
    normal = NormalDist()
    while True:
        x = normal.inv_cdf(draws.uniform())
        v = (1 + c * x) * (1 + c * x) * (1 + c * x)
        if v > 0 and log(draws.uniform()) < 0.5 * x * x + d - d * v + d * log(v):
            return boost * d * v / shape
