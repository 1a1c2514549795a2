"""What is measured on the way of a simulation, and the distributions made of it."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from service.engine.inputs import Limits
from service.engine.time.results import Basis, Distribution, Latency, LoadState, Violation
from service.engine.time.traffic import SimulatedLoad


@dataclass(frozen=True, slots=True)
class Sample:
    """Measured values, in order. [s]."""

    ordered: "array[float]"

    @property
    def mean(self) -> float:
        """Return the mean; 0 of nothing."""
        return sum(self.ordered) / len(self.ordered) if self.ordered else 0.0

    def percentile(self, percent: float) -> float:
        """Return a percentile by nearest rank; 0 of nothing.

        >>> Sample(array("d", [0.1, 0.2, 0.3, 0.4])).percentile(50.0)
        0.3
        """
        count = len(self.ordered)
        return self.ordered[min(int(percent / 100 * count), count - 1)] if count else 0.0

    def distribution(self) -> Distribution:
        """Return mean and the published percentiles."""
        return Distribution(
            mean=self.mean, p50=self.percentile(50.0), p95=self.percentile(95.0), p99=self.percentile(99.0)
        )

    def later(self, seconds: float) -> "Sample":
        """Return every value so many seconds larger."""
        return Sample(array("d", [value + seconds for value in self.ordered]))


def sample_of(values: Sequence[float]) -> Sample:
    """Return values in order."""
    return Sample(array("d", sorted(values)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleResult:
    """What users of the simulated load see, and what the engine did."""

    ttft_s: Sample
    tpot_s: Sample
    itl_s: Distribution
    end_to_end_s: Sample
    requests_per_s: float
    output_tokens_per_s: float
    queue_growth_per_s: float  # requests that wait more, per second; about 0 when the load is carried
    mean_running: float
    max_kv_fraction: float  # most blocks in use at once / blocks
    preemptions: int
    duration_s: float

    def violates(self, limits: Limits) -> Violation | None:
        """Return the limit that is broken at its percentile."""
        if limits.ttft_s is not None and self.ttft_s.percentile(limits.percentile) > limits.ttft_s:
            return "ttft"
        if limits.tpot_s is not None and self.tpot_s.percentile(limits.percentile) > limits.tpot_s:
            return "tpot"
        return None

    def latency(self, basis: Basis) -> Latency:
        """Return what users wait, and how far it may be off."""
        return Latency(
            ttft_s=self.ttft_s.distribution(),
            tpot_s=self.tpot_s.distribution(),
            itl_s=self.itl_s,
            end_to_end_s=self.end_to_end_s.distribution(),
            basis=basis.name,
            basis_note=basis.note,
            expected_error_fraction=basis.expected_error_fraction,
        )

    def state(self, replicas: int) -> LoadState:
        """Return the state of so many equal replicas together."""
        return LoadState(
            concurrent_requests=replicas * self.requests_per_s * self.end_to_end_s.mean,
            requests_per_s=replicas * self.requests_per_s,
            output_tokens_per_s=replicas * self.output_tokens_per_s,
            queue_growth_per_s=replicas * self.queue_growth_per_s,
            kv_cache_fraction=self.max_kv_fraction,
            preemptions_per_request=self.preemptions / max(len(self.end_to_end_s.ordered), 1),
        )

    def waiting_longer(self, wait_s: float) -> "ScheduleResult":
        """Return the same schedule behind a queue that every request waits in. [s]."""
        return replace(self, ttft_s=self.ttft_s.later(wait_s), end_to_end_s=self.end_to_end_s.later(wait_s))

    def side_by_side(self, streams: int) -> "ScheduleResult":
        """Return what so many equal streams do together; each user sees the same."""
        if streams == 1:
            return self
        return replace(
            self,
            requests_per_s=streams * self.requests_per_s,
            output_tokens_per_s=streams * self.output_tokens_per_s,
            queue_growth_per_s=streams * self.queue_growth_per_s,
            mean_running=streams * self.mean_running,
            preemptions=streams * self.preemptions,
        )


@dataclass(slots=True)
class Measurements:
    """What is measured of the requests that count, in the order in which they are answered."""

    ttft_s: list[float] = field(default_factory=list)
    tpot_s: list[float] = field(default_factory=list)
    end_to_end_s: list[float] = field(default_factory=list)
    intervals: list[tuple[float, float]] = field(default_factory=list)  # seconds, tokens made after them
    arrived: list[float] = field(default_factory=list)
    finished: list[float] = field(default_factory=list)
    output_tokens: int = 0

    def answered(self, arrival_s: float, first_token_s: float, now_s: float, output_tokens: int) -> tuple[float, float]:
        """Note an answered request; return its time to first token and its time per token after that. [s]."""
        ttft_s, tpot_s = first_token_s - arrival_s, 0.0
        self.output_tokens += output_tokens
        self.arrived.append(arrival_s)
        self.finished.append(now_s)
        self.ttft_s.append(ttft_s)
        self.end_to_end_s.append(now_s - arrival_s)
        if output_tokens > 1:
            tpot_s = (now_s - first_token_s) / (output_tokens - 1)
            self.tpot_s.append(tpot_s)
        return ttft_s, tpot_s

    def requests_per_s(self, load: SimulatedLoad) -> float:
        """Return requests answered per second.

        A benchmark that measures every request divides by its whole duration. In a steady closed loop
        users and mean duration tell it (Little's law); in an open one arrivals less those that pile up.
        """
        count = len(self.finished)
        if load.request_rate_per_s is not None:
            return max(load.request_rate_per_s - self.queue_growth_per_s(), 0.0)
        if load.first_measured and load.concurrency is not None:
            return load.concurrency * count / sum(self.end_to_end_s)
        return count / self.duration_s

    def queue_growth_per_s(self) -> float:
        """Return how many more requests wait every second: answers per second x the rise of the wait over time."""
        by_arrival = sorted(zip(self.arrived, self.ttft_s, strict=True))
        quarter = len(by_arrival) // 4
        first_s, last_s = min(self.finished), max(self.finished)
        if not quarter or by_arrival[-1][0] <= by_arrival[0][0] or last_s <= first_s:
            return 0.0
        early, late = by_arrival[:quarter], by_arrival[-quarter:]
        rise_s = sum(wait for _, wait in late) / quarter - sum(wait for _, wait in early) / quarter
        apart_s = sum(at for at, _ in late) / quarter - sum(at for at, _ in early) / quarter
        answered_per_s = (len(by_arrival) - 1) / (last_s - first_s)
        return max(answered_per_s * rise_s / apart_s, 0.0)

    @property
    def duration_s(self) -> float:
        """Return the time from the first arrival to the last answer. [s]."""
        return max(self.finished) - min(self.arrived)


def weighted_distribution(values: Sequence[tuple[float, float]]) -> Distribution:
    """Return mean and percentiles of (value, weight) pairs.

    >>> weighted_distribution([(0.01, 99.0), (0.5, 1.0)]).p50
    0.01
    """
    total = sum(weight for _, weight in values)
    if not total:
        return Distribution(mean=0.0, p50=0.0, p95=0.0, p99=0.0)
    ordered = sorted(values)
    marks = []
    passed = 0.0
    targets = [0.5 * total, 0.95 * total, 0.99 * total]
    for value, weight in ordered:
        passed += weight
        while targets and passed >= targets[0]:
            marks.append(value)
            targets.pop(0)
    marks += [ordered[-1][0]] * (3 - len(marks))
    mean = sum(value * weight for value, weight in values) / total
    return Distribution(mean=mean, p50=marks[0], p95=marks[1], p99=marks[2])
