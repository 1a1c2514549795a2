"""What simulations return, in seconds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Mean and percentiles of one latency, in seconds."""

    mean: float
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latency at a stated load, and how far it may be off."""

    ttft_s: Distribution
    tpot_s: Distribution
    itl_s: Distribution  # between two tokens of a request; longer where prompts are read in between
    end_to_end_s: Distribution
    basis: str  # measured-kernels, roofline
    basis_note: str  # why the better basis does not speak; empty where it does
    expected_error_fraction: float  # of that basis, as the accuracy report measured it


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadState:
    """The whole deployment at the asked load."""

    concurrent_requests: float  # in flight, waiting or running
    requests_per_s: float  # answered
    output_tokens_per_s: float
    queue_growth_per_s: float  # requests that wait more, every second; about 0 when the load is carried
    kv_cache_fraction: float  # most blocks in use at once
    preemptions_per_request: float
