"""What is measured in a simulation, and the distributions made of it."""

from dataclasses import dataclass, replace
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.engine.inputs import Limits
from service.engine.time.records import Record, Records
from service.engine.time.results import Basis, Distribution, Latency, LoadState, Violation
from service.engine.time.shared import Reach, Told
from service.engine.time.traffic import SimulatedLoad

Floats = NDArray[np.float64]

# Means of so many stretches of a run tell how far its percentile may be off; neighbours in a queue wait alike.
BATCHES: Final = 20
FEWEST_IN_BATCH: Final = 5
# Nobody waits 5 values: MSER-5 looks for the end of a warm-up in means of so many.
MSER_BATCH: Final = 5


class Sample:
    """Measured values in the order in which requests came. [s]."""

    __slots__ = ("_known", "values")

    def __init__(self, values: Floats) -> None:
        """Keep values; their percentiles are found when asked for."""
        self.values = values
        self._known: dict[float, float] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        """Return whether both hold the same values in the same order."""
        return isinstance(other, Sample) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        """Return a hash of the values."""
        return hash(self.values.tobytes())

    @property
    def mean(self) -> float:
        """Return the mean; 0 of nothing."""
        return float(self.values.mean()) if len(self.values) else 0.0

    def percentile(self, percent: float) -> float:
        """Return a percentile by nearest rank; 0 of nothing.

        >>> Sample(np.array([0.4, 0.2, 0.1, 0.3])).percentile(50.0)
        0.3
        """
        known = self._known.get(percent)
        if known is None:
            known = self._known[percent] = _percentile(self.values, percent)
        return known

    def distribution(self) -> Distribution:
        """Return mean and the published percentiles."""
        return Distribution(
            mean=self.mean, p50=self.percentile(50.0), p95=self.percentile(95.0), p99=self.percentile(99.0)
        )

    def standard_error(self, percent: float) -> float:
        """Return how far a percentile of so many values may be off by chance: one standard error, by batches. [s].

            error = standard deviation of the batches' shares beyond the percentile / sqrt(batches)
                    x seconds per share around the percentile

        Shares are counted, and not percentiles of each batch, whose own tails are too short to tell.

        Source:
            P. W. Glynn, W. Whitt, Estimating the asymptotic variance with batch means (1991).
        """
        count = len(self.values)
        batches = min(BATCHES, count // FEWEST_IN_BATCH)
        if batches < 2:
            return 0.0
        beyond = self.values > self.percentile(percent)
        size = count // batches
        shares = beyond[: batches * size].reshape(batches, size).mean(axis=1)
        # Where neighbours are alike by chance alone, shares cannot vary less than coins do.
        fair = sqrt(percent / 100 * (1 - percent / 100) / count)
        error = max(float(shares.std(ddof=1)) / sqrt(batches), fair)
        return self._seconds_between(percent, 100 * error)

    def _seconds_between(self, percent: float, points: float) -> float:
        """Return half the distance between the percentiles so many points below and above one. [s]."""
        low, high = max(percent - points, 0.0), min(percent + points, 100.0)
        return (_percentile(self.values, high) - _percentile(self.values, low)) / 2

    def later(self, seconds: float) -> "Sample":
        """Return every value so many seconds larger."""
        return Sample(self.values + seconds)


def _percentile(values: Floats, percent: float) -> float:
    count = len(values)
    if not count:
        return 0.0
    rank = min(int(percent / 100 * count), count - 1)
    return float(np.partition(values, rank)[rank])


def warm_up_length(values: Floats) -> int:
    """Return how many values at the beginning tell of the warm-up and not of the steady state, at most half.

        d = argmin over d of (standard deviation of what is left)^2 / values left, in means of five values

    Source:
        K. P. White, An effective truncation heuristic for bias reduction in simulation output (1997): MSER-5.
    """
    means = values[: len(values) // MSER_BATCH * MSER_BATCH].reshape(-1, MSER_BATCH).mean(axis=1)
    if len(means) < 4:
        return 0
    left = np.arange(len(means), 0, -1)
    sums, squares = np.cumsum(means[::-1])[::-1], np.cumsum((means * means)[::-1])[::-1]
    statistic = (squares - sums * sums / left) / (left * left)
    return int(np.argmin(statistic[: len(means) // 2])) * MSER_BATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleResult:
    """What users of the simulated load see, and what the engine did."""

    ttft_s: Sample
    tpot_s: Sample
    gaps: tuple[Sample, Sample]  # between tokens, in bins: tokens, and tokens x seconds
    end_to_end_s: Sample
    requests_per_s: float
    output_tokens_per_s: float
    queue_growth_per_s: float  # requests that wait more, per second; about 0 when the load is carried
    mean_running: float
    max_kv_fraction: float  # most blocks in use at once / blocks
    preemptions: int
    duration_s: float
    reach: Reach

    @property
    def itl_s(self) -> Distribution:
        """Return the gaps between tokens. [s]."""
        tokens, time = self.gaps
        return gap_distribution(tokens.values, time.values)

    @property
    def nbytes(self) -> int:
        """Return about the memory it takes."""
        samples = (self.ttft_s, self.tpot_s, self.end_to_end_s, *self.gaps)
        return sum(sample.values.nbytes for sample in samples) + 2_000

    def violates(self, limits: Limits) -> Violation | None:
        """Return the limit that is broken at its percentile."""
        if limits.ttft_s is not None and self.ttft_s.percentile(limits.percentile) > limits.ttft_s:
            return "ttft"
        if limits.tpot_s is not None and self.tpot_s.percentile(limits.percentile) > limits.tpot_s:
            return "tpot"
        return None

    def latency(self, basis: Basis, percentile: float) -> Latency:
        """Return what users wait, and how far it may be off at a percentile."""
        return Latency(
            ttft_s=self.ttft_s.distribution(),
            tpot_s=self.tpot_s.distribution(),
            itl_s=self.itl_s,
            end_to_end_s=self.end_to_end_s.distribution(),
            requests_simulated=len(self.end_to_end_s),
            percentile=percentile,
            ttft_at_percentile_s=self.ttft_s.percentile(percentile),
            tpot_at_percentile_s=self.tpot_s.percentile(percentile),
            ttft_standard_error_s=self.ttft_s.standard_error(percentile),
            tpot_standard_error_s=self.tpot_s.standard_error(percentile),
            basis=basis.name,
            basis_note=basis.note,
            expected_error_fraction=basis.expected_error_fraction,
            pace_error_fraction=basis.pace_error_fraction,
        )

    def state(self, replicas: float) -> LoadState:
        """Return the state of so many equal replicas together."""
        return LoadState(
            concurrent_requests=replicas * self.requests_per_s * self.end_to_end_s.mean,
            requests_per_s=replicas * self.requests_per_s,
            output_tokens_per_s=replicas * self.output_tokens_per_s,
            queue_growth_per_s=replicas * self.queue_growth_per_s,
            kv_cache_fraction=self.max_kv_fraction,
            preemptions_per_request=self.preemptions / max(len(self.end_to_end_s), 1),
        )

    def waiting_longer(self, wait_s: float) -> "ScheduleResult":
        """Return the same schedule behind a queue that every request waits in. [s]."""
        return replace(self, ttft_s=self.ttft_s.later(wait_s), end_to_end_s=self.end_to_end_s.later(wait_s))

    def side_by_side(self, streams: float) -> "ScheduleResult":
        """Return what so many equal streams do together, of which one may be less full; each user sees the same."""
        if streams == 1:
            return self
        return replace(
            self,
            requests_per_s=streams * self.requests_per_s,
            output_tokens_per_s=streams * self.output_tokens_per_s,
            queue_growth_per_s=streams * self.queue_growth_per_s,
            mean_running=streams * self.mean_running,
            preemptions=round(streams * self.preemptions),
        )


def schedule_result(
    load: SimulatedLoad, state: Record, runs: Records, num_blocks: float, reach: Reach
) -> ScheduleResult:
    """Return what a simulation measured.

    Args:
        load: what was sent.
        state: where it ended.
        runs: its requests.
        num_blocks: the cache.
        reach: what it used of the engine's bounds.
    """
    measured = runs[load.first_measured : load.last_measured]
    end_to_end_s = Sample(measured["end_to_end_s"].copy())
    growth = 0.0 if load.concurrency is not None else _growth(measured, load.request_rate_per_s or 0.0)
    duration_s = float(measured["finished_s"].max() - measured["came_s"].min())
    rate = _rate(load, growth, end_to_end_s, duration_s)
    return ScheduleResult(
        ttft_s=Sample(measured["ttft_s"].copy()),
        tpot_s=Sample(measured["tpot_s"][measured["output_tokens"] > 1]),
        gaps=(Sample(state["gap_tokens"].copy()), Sample(state["gap_time"].copy())),
        end_to_end_s=end_to_end_s,
        requests_per_s=rate,
        output_tokens_per_s=rate * float(measured["output_tokens"].mean()),
        queue_growth_per_s=growth,
        mean_running=float(state["running_time"] / state["now_s"]),
        max_kv_fraction=min(float(state["most_blocks"]) / num_blocks, 1.0),
        preemptions=int(state["preemptions"]),
        duration_s=duration_s,
        reach=reach,
    )


def whole(outcome: ScheduleResult | Told) -> ScheduleResult:
    """Return what a simulation without limits measured: nothing stops it."""
    if not isinstance(outcome, ScheduleResult):
        raise TypeError(f"a simulation without limits broke {outcome.verdict}")
    return outcome


def _rate(load: SimulatedLoad, growth: float, end_to_end_s: Sample, duration_s: float) -> float:
    """Return requests answered per second.

    A benchmark that measures every request divides by its whole duration. In a steady closed loop
    users and mean duration tell it (Little's law); in an open one arrivals less those that pile up.
    """
    if load.first_measured and load.request_rate_per_s is not None:
        return max(load.request_rate_per_s - growth, 0.0)
    if load.first_measured and load.concurrency is not None:
        return load.concurrency / end_to_end_s.mean
    return len(end_to_end_s) / duration_s


def _growth(measured: Records, request_rate_per_s: float) -> float:
    """Return how many more requests wait every second: answers per second x the rise of the wait over time.

    Where not one more waits at the end than at the beginning, nothing grows: the rise is chance. Where most of what
    comes waits, all of it has come before much is answered, and what is answered tells.
    """
    quarter, came, wait = len(measured) // 4, measured["came_s"], measured["ttft_s"]
    answered_s = float(measured["finished_s"].max() - measured["finished_s"].min())
    if not quarter or came[-1] <= came[0] or answered_s <= 0:
        return 0.0
    rise_s = float(wait[-quarter:].mean() - wait[:quarter].mean())
    apart_s = float(came[-quarter:].mean() - came[:quarter].mean())
    answers_per_s = (len(measured) - 1) / answered_s
    growth = answers_per_s * rise_s / apart_s
    if growth > request_rate_per_s / 2:
        return request_rate_per_s - min(answers_per_s, request_rate_per_s / 2)
    return growth if growth * answered_s >= 1 else 0.0


def gap_distribution(tokens: Floats, time: Floats) -> Distribution:
    """Return mean and percentiles of the gaps between tokens, counted in bins: a bin's gap is the mean of its own.

    >>> gap_distribution(np.array([99.0, 0.0, 1.0]), np.array([0.99, 0.0, 0.5])).p50
    0.01
    """
    total = float(tokens.sum())
    if not total:
        return Distribution(mean=0.0, p50=0.0, p95=0.0, p99=0.0)
    passed = np.cumsum(tokens)
    places = [int(np.searchsorted(passed, share * total)) for share in (0.5, 0.95, 0.99)]
    p50, p95, p99 = (float(time[place] / tokens[place]) for place in places)
    return Distribution(mean=float(time.sum()) / total, p50=p50, p95=p95, p99=p99)
