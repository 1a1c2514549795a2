"""What simulations and searches return, in seconds and requests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

Violation = Literal["ttft", "tpot", "throughput"]
Binding = Literal["weights", "kv_cache", "max_num_seqs", "ttft", "tpot", "throughput"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Mean and percentiles of one latency, in seconds."""

    mean: float
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """Where times come from, and how far they may be off."""

    name: str  # measured-kernels, roofline
    is_measured: bool
    source: str  # who measured the steps, or why nobody did
    note: str  # why the better basis does not speak; empty where it does
    overhead_source: str  # who says what a request waits outside iterations
    expected_error_fraction: float  # as the accuracy report measured it
    stated_pace_error_fraction: float | None = None  # of step times alone, without the queues that they make

    @property
    def pace_error_fraction(self) -> float:
        """Return how far step times may be off: as measured, else as far as any latency."""
        stated = self.stated_pace_error_fraction
        return self.expected_error_fraction if stated is None else stated


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latency at a stated load, and how far it may be off."""

    ttft_s: Distribution
    tpot_s: Distribution
    itl_s: Distribution  # between two tokens of a request; longer where prompts are read in between
    end_to_end_s: Distribution
    requests_simulated: int
    percentile: float  # asked for, of which one more sample of as many requests may differ by a standard error
    ttft_at_percentile_s: float
    tpot_at_percentile_s: float
    ttft_standard_error_s: float
    tpot_standard_error_s: float
    basis: str  # measured-kernels, roofline
    basis_note: str  # why the better basis does not speak; empty where it does
    expected_error_fraction: float  # of that basis, as the accuracy report measured it
    pace_error_fraction: float  # of its step times alone, without the queues that they make


# A queue that grows by more than this share of arrivals never empties.
GROWING: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadState:
    """The whole deployment at the asked load."""

    concurrent_requests: float  # in flight, waiting or running
    requests_per_s: float  # answered
    output_tokens_per_s: float
    queue_growth_per_s: float  # requests that wait more, every second; about 0 when the load is carried
    kv_cache_fraction: float  # most blocks in use at once
    preemptions_per_request: float

    @classmethod
    def of_all(cls, parts: Sequence["LoadState"]) -> "LoadState":
        """Return the state of parts that run side by side: sums, the fullest cache, the mean request."""
        answered = sum(part.requests_per_s for part in parts)
        preempted = sum(part.requests_per_s * part.preemptions_per_request for part in parts)
        return cls(
            concurrent_requests=sum(part.concurrent_requests for part in parts),
            requests_per_s=answered,
            output_tokens_per_s=sum(part.output_tokens_per_s for part in parts),
            queue_growth_per_s=sum(part.queue_growth_per_s for part in parts),
            kv_cache_fraction=max(part.kv_cache_fraction for part in parts),
            preemptions_per_request=preempted / answered if answered else 0.0,
        )

    def of_arrivals(self, request_rate_per_s: float, diverges_at_per_s: float) -> "LoadState":
        """Return the state under arrivals, whose queue grows beyond a rate, and not below it but by chance.

        A sample of a few thousand arrivals tells a hundredth more from a hundredth less of what is answered no better
        than by chance: 45 or 43 s of waiting at its end.

        Args:
            request_rate_per_s: that is asked for. [1/s]
            diverges_at_per_s: beyond which more come than are answered. [1/s]
        """
        if request_rate_per_s > diverges_at_per_s:
            growth = max(self.queue_growth_per_s, request_rate_per_s - diverges_at_per_s)
        else:
            growth = self.queue_growth_per_s if self.queue_growth_per_s > GROWING * request_rate_per_s else 0.0
        answered = request_rate_per_s - growth
        tokens = self.output_tokens_per_s / self.requests_per_s if self.requests_per_s else 0.0
        return replace(self, requests_per_s=answered, output_tokens_per_s=answered * tokens, queue_growth_per_s=growth)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """How far a search for the largest load has come; at its end `load` is that load."""

    load: float  # carried for certain: users, or requests per second; 0 when not even the smallest one is
    fails_at: float  # the smallest load known to fail
    violates: Violation | None  # what it fails by; None: nothing was seen to fail
