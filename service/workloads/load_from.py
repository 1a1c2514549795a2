"""The load of a workload as a Prometheus measures it: what is asked, and how much load its samples call for.

    load = max over the cool-down window of max(sample, sample + growth x loading time)

where growth is the slope of a line through the samples before, as Prometheus' own `deriv` draws it, and never below 0.
A pod takes its loading time to help, so that it must be asked for that much earlier; and what the window needed is not
taken away before the window ends, however the load falls.

Source: prometheus/prometheus, `promql/functions.go`, `linearRegression`: least squares over the samples of a range.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service.questions.values import MAX_REQUESTS, MAX_REQUESTS_PER_S

# Meta-Llama-3-8B, 16,060,522,496 bytes, by vLLM's own loader from a gp3 volume in 47.99 s:
# run.ai/blog/run-ai-model-streamer-performance-benchmarks, 2024-10-29, seen 2026-11-22.
DEFAULT_LOADING_BYTES_PER_S: Final = 334_000_000.0
LOADING_SOURCE: Final = (
    "16.06 GB by the default loader from a gp3 volume in 47.99 s (run.ai model streamer benchmark, 2024-10-29)"
)
SMALLEST_LOAD: Final = {"request_rate_per_s": 4e-07, "concurrent_requests": 1.0}  # nobody asks: one pod stays
LARGEST_LOAD: Final = {"request_rate_per_s": MAX_REQUESTS_PER_S, "concurrent_requests": MAX_REQUESTS}  # that is sized
LEAST_GROWTH_S: Final = 60.0  # a slope over less is noise
MOST_SAMPLES: Final = 200
DIGITS: Final = 3
MOST_SUMMED: Final = 1e290  # of a sample: sums of more are no numbers

LoadField = Literal["request_rate_per_s", "concurrent_requests"]


class LoadFrom(BaseModel):
    """Where a workload's load is read, and what is made of it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    prometheus_url: Annotated[str, StringConstraints(max_length=300)] = Field(
        description="one of those that the service was told to ask (SIZER_PROMETHEUS_URLS)",
        examples=["http://prometheus.monitoring.svc:9090"],
    )
    query: Annotated[str, StringConstraints(min_length=1, max_length=2000)] = Field(
        description="PromQL that answers with one series",
        examples=['sum(rate(vllm:request_success_total{model="chat"}[2m]))'],
    )
    field: LoadField = Field(default="request_rate_per_s", description="what the query measures")
    cooldown_s: float = Field(default=600, ge=0, le=86_400, description="for how long what was needed is kept [s]")
    max_age_s: float = Field(
        default=300, ge=1, le=86_400, description="how old the last good sample may be while the Prometheus is away [s]"
    )
    loading_s: float | None = Field(
        default=None, ge=0, le=7_200, description="until a new pod answers; default: its weights at the bandwidth [s]"
    )
    loading_bytes_per_s: float = Field(
        default=DEFAULT_LOADING_BYTES_PER_S, gt=0, le=1e13, description="at which weights reach a pod [bytes/s]"
    )

    def growth_s(self, loading_s: float) -> float:
        """Return over how long a slope is drawn. [s]."""
        return max(loading_s, LEAST_GROWTH_S)

    def window_s(self, loading_s: float) -> float:
        """Return how far back samples are needed. [s]."""
        return self.cooldown_s + self.growth_s(loading_s)

    def step_s(self, loading_s: float) -> int:
        """Return the time between samples: whole seconds, so that there are not too many. [s]."""
        return max(ceil(self.window_s(loading_s) / MOST_SAMPLES), 1)


@dataclass(frozen=True, slots=True)
class Sample:
    """What was measured when."""

    at_s: float
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load that samples call for."""

    field: LoadField
    now: float  # as last measured
    at_s: float
    most: float  # measured within the cool-down window
    expected: float  # when a pod that starts now has loaded
    needed: float  # of what was expected within the window the most
    amount: float  # to be carried: that, raised


def load_of(samples: Sequence[Sample], load_from: LoadFrom, loading_s: float, now_s: float) -> Load:
    """Return the load to carry, of samples in the order of their time, at least one.

    >>> steady = [Sample(at_s, 10.0) for at_s in range(0, 660, 10)]
    >>> asked = LoadFrom(prometheus_url="http://p", query="q")
    >>> load_of(steady, asked, 48.0, 650.0).amount
    10.0
    >>> growing = [Sample(at_s, at_s / 10) for at_s in range(0, 660, 10)]
    >>> load_of(growing, asked, 48.0, 650.0).expected
    69.8
    """
    growth_s, last = load_from.growth_s(loading_s), samples[-1]
    kept = [index for index, sample in enumerate(samples) if sample.at_s >= now_s - load_from.cooldown_s]
    window = kept or [len(samples) - 1]
    expected = [_expected(samples, index, growth_s, loading_s) for index in window]
    amount = max(*expected, SMALLEST_LOAD[load_from.field])
    return Load(
        field=load_from.field,
        now=last.value,
        at_s=last.at_s,
        most=max(samples[index].value for index in window),
        expected=round(expected[-1], 6),
        needed=round(max(expected), 6),
        amount=ceil(amount - 1e-9) if load_from.field == "concurrent_requests" else raised(amount),
    )


def _expected(samples: Sequence[Sample], index: int, growth_s: float, loading_s: float) -> float:
    """Return a sample, and by how much it grows until a pod has loaded."""
    at = samples[index]
    before = [sample for sample in samples[: index + 1] if sample.at_s >= at.at_s - growth_s]
    return at.value + max(_slope(before), 0.0) * loading_s


def _slope(samples: Sequence[Sample]) -> float:
    """Return the slope of the line of least squares. [1/s]."""
    count = len(samples)
    mean_s = sum(sample.at_s for sample in samples) / count
    mean = sum(sample.value for sample in samples) / count
    spread = sum((sample.at_s - mean_s) ** 2 for sample in samples)
    return sum((sample.at_s - mean_s) * (sample.value - mean) for sample in samples) / spread if spread else 0.0


def raised(amount: float) -> float:
    """Return an amount with three digits, never less, so that the same answer serves loads that hardly differ.

    >>> raised(41.234), raised(0.0009999), raised(1000.0)
    (41.3, 0.001, 1000.0)
    """
    digits = DIGITS - 1 - floor(log10(amount))
    scaled = ceil(round(amount * 10**digits, 6))
    return float(f"{scaled}e{-digits}")


def finite_samples(values: Sequence[tuple[float, str]]) -> tuple[Sample, ...]:
    """Return what Prometheus sends of a series; what is no load (NaN, infinite, negative) was not measured."""
    read = (Sample(float(at_s), float(value)) for at_s, value in values)
    return tuple(sample for sample in read if isfinite(sample.value) and 0 <= sample.value <= MOST_SUMMED)
