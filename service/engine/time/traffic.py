"""What is simulated: requests with lengths and arrivals, drawn from a seed."""

from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Final, assert_never

import numpy as np

from service.engine.inputs import Load
from service.engine.kept import Kept
from service.engine.time.draws import COMPLETIONS, DRAFTS, PROMPTS, UNDER_WAY, Draws
from service.engine.time.lengths import FixedLength, Length, LogNormalLength, UniformLength
from service.engine.time.records import REQUEST, Records, new_records

ROUNDING: Final = 1e-9
SHARES_PER_OCTAVE: Final = 4  # of a stream: rates that are near draw the same gaps, so that curves over them are smooth
MOST_KEPT_BYTES: Final = 8_000_000  # of requests drawn, 100 kB for a few thousand


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedLoad:
    """Requests in order of arrival; those before and after the measured ones only keep the engine busy."""

    requests: Records  # of `records.REQUEST`; shared, and never written to
    concurrency: int | None  # users of a closed loop, who send the next request when the last is answered
    request_rate_per_s: float | None = None  # of an open loop
    first_measured: int = 0
    measured: int | None = None  # None: all of the rest
    under_way: int = 0  # requests that had begun before
    together: int = 0  # that come at once when users begin, those of other streams among them
    cache_share: float = 1.0  # of the cache that streams have in equal parts, in such parts

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
    spread_rate_per_s: float | None = None  # of all arrivals in bursts, where a stream gets its share of them
    speculative_acceptance_fraction: float = 0.0
    arrives_read: bool = False  # prompts come with their cache, from a prefill pool
    seed: int = 1

    def share(self, request_rate_per_s: float) -> "Traffic":
        """Return the traffic of one stream among those that the arrivals are spread over.

            burstiness(share) = 1 / (1 + (1 / burstiness - 1) x share)

        Of arrivals each of which goes to a stream with chance `share`, the squared variation of gaps is
        share x squared variation + 1 - share: W. Whitt, The Queueing Network Analyzer (1983), on splitting. That of
        Gamma gaps is 1 / burstiness. A share counts as the next larger one of a grid, as burstier. Arrivals that are
        more even than Poisson stay so: routers deal them out in turn.

        >>> bursts = Traffic(inputs=FixedLength(tokens=1), outputs=FixedLength(tokens=1), burstiness=0.25)
        >>> replace(bursts, spread_rate_per_s=8.0).share(2.0).burstiness
        0.5714285714285714
        """
        if self.spread_rate_per_s is None:
            return self
        steps = ceil(SHARES_PER_OCTAVE * log2(request_rate_per_s / self.spread_rate_per_s) - ROUNDING)
        share = 2.0 ** (min(steps, 0) / SHARES_PER_OCTAVE)
        return replace(self, burstiness=1 / (1 + (1 / self.burstiness - 1) * share), spread_rate_per_s=None)


def traffic_of(load: Load) -> Traffic:
    """Return the requests of a load: both lengths spread alike around their means."""
    return Traffic(
        inputs=_spread(load, load.input_tokens),
        outputs=FixedLength(tokens=1) if load.phase == "prefill" else _spread(load, load.output_tokens),
        arrives_read=load.phase == "decode",
        prefix_cache_hit_fraction=load.prefix_cache_hit_fraction,
        burstiness=load.burstiness,
        spread_rate_per_s=load.request_rate_per_s if load.burstiness < 1 and load.is_spread else None,
        speculative_acceptance_fraction=load.speculative_acceptance_fraction or 0.0,
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
        self._draws = Draws()
        self._requests: Kept[Records] = Kept(MOST_KEPT_BYTES, lambda requests: int(requests.nbytes))

    def burst_of_users(
        self, traffic: Traffic, concurrency: int, count: int, others: int = 0, cache_share: float = 1.0
    ) -> SimulatedLoad:
        """Return what benchmarks send: users who all start at once, and every request measured.

        Args:
            traffic: lengths.
            concurrency: users of one stream. [count]
            count: requests. [count]
            others: users of the server's other streams, who start with them. [count]
            cache_share: what they have of the cache, in equal parts of a stream. [parts]
        """
        return SimulatedLoad(
            requests=self._drawn(traffic, count),
            concurrency=concurrency,
            together=concurrency + others,
            cache_share=cache_share,
        )

    def burst(self, traffic: Traffic, request_rate_per_s: float, count: int) -> SimulatedLoad:
        """Return what benchmarks send at a rate: an idle engine to begin with, and every request measured.

        The last is sent after count / rate: vLLM scales the gaps it drew (`vllm/benchmarks/serve.py`, `get_request`).
        """
        asked = traffic.share(request_rate_per_s)

        def made() -> Records:
            requests = self._arriving(asked, 0, count, 0).copy()
            requests["arrival"] *= count / requests["arrival"][-1]
            return requests

        requests = self._requests.get_or((asked, "benchmark", count), made)
        return SimulatedLoad(requests=requests, concurrency=None, request_rate_per_s=request_rate_per_s)

    def steady_users(
        self, traffic: Traffic, concurrency: int, measured: int, slots: int, cache_share: float = 1.0
    ) -> SimulatedLoad:
        """Return users of a closed loop in its steady state.

        The first request of each user is not measured; nor are those that keep the engine busy until the
        last measured one is answered.

        Args:
            traffic: lengths.
            concurrency: users. [count]
            measured: requests that are measured. [count]
            slots: first requests that are under way, each at a random point, so that users meet by chance,
                as they do; those of further users wait. [count]
            cache_share: what they have of the cache, in equal parts of a stream. [parts]
        """
        running = min(slots, concurrency)

        def made() -> Records:
            requests = self._made(traffic, concurrency + measured + concurrency)
            self._put_under_way(traffic, requests[:running])
            return requests

        return SimulatedLoad(
            requests=self._requests.get_or((traffic, "users", concurrency, measured, running), made),
            concurrency=concurrency,
            first_measured=concurrency,
            measured=measured,
            under_way=running,
            cache_share=cache_share,
        )

    def open_loop(
        self, traffic: Traffic, request_rate_per_s: float, warm_up: int, measured: int, under_way: int = 0
    ) -> SimulatedLoad:
        """Return requests that come on their own, whatever the engine does.

            gap = Gamma(shape = burstiness of this share of all arrivals, mean = 1 / rate)

        Args:
            traffic: lengths, and burstiness as in vLLM's benchmark: 1 is Poisson.
            request_rate_per_s: mean arrivals. [1/s]
            warm_up: requests that come before the measured ones. [count]
            measured: requests that are measured. [count]
            under_way: requests in flight when the simulation begins, as in the steady state. [count]

        The same seed draws the same lengths and the same gaps, scaled, at every rate: curves over the
        rate are smooth.
        """
        return SimulatedLoad(
            requests=self._arriving(traffic.share(request_rate_per_s), under_way, warm_up + measured, under_way),
            concurrency=None,
            request_rate_per_s=request_rate_per_s,
            first_measured=under_way + warm_up,
            measured=measured,
            under_way=under_way,
        )

    def _drawn(self, traffic: Traffic, count: int) -> Records:
        """Return requests that come at once."""
        return self._requests.get_or((traffic, count), lambda: self._made(traffic, count))

    def _arriving(self, traffic: Traffic, before: int, count: int, under_way: int) -> Records:
        """Return requests that arrive at a mean rate of one per second, behind some that are under way."""

        def made() -> Records:
            drawn = self._made(traffic, count + before)
            requests = np.concatenate((drawn[count:], drawn[:count]))
            self._put_under_way(traffic, requests[:under_way])
            requests["arrival"][before:] = self._draws.arrivals(traffic.seed, traffic.burstiness, count)
            return requests

        return self._requests.get_or((traffic, "arrivals", before, count), made)

    def _made(self, traffic: Traffic, count: int) -> Records:
        requests = new_records(count, REQUEST)
        requests["input_tokens"] = traffic.inputs.drawn(self._draws, traffic.seed, PROMPTS, count)
        requests["output_tokens"] = traffic.outputs.drawn(self._draws, traffic.seed, COMPLETIONS, count)
        if traffic.speculative_acceptance_fraction:
            requests["drafts_missed"] = self._draws.normal(traffic.seed, DRAFTS, count)
        if traffic.arrives_read:
            requests["cached_tokens"] = requests["input_tokens"] - 1
        return requests

    def _put_under_way(self, traffic: Traffic, requests: Records) -> None:
        """Let requests have begun before the simulation, each at a random point of its answer."""
        shares = self._draws.uniform(traffic.seed, UNDER_WAY, len(requests)) if len(requests) else 0.0
        left = np.maximum(np.rint(requests["output_tokens"] * shares), 1).astype(np.int64)
        so_far = requests["input_tokens"] + requests["output_tokens"] - left
        requests["input_tokens"], requests["output_tokens"], requests["cached_tokens"] = so_far, left, so_far - 1
