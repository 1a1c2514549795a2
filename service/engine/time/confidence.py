"""Times that hold with a stated probability: those of the basis, slowed by as much as it errs.

    sigma  = sqrt((ln(1 + error of pace) / z(0.9))^2 + sample^2)
    slower = exp(z(probability) x sigma)

The error of pace is what 80 % of measurements that a basis was not fitted on stay within, to either side; errors of
times multiply, so that their logarithms are taken for normal.
"""

from dataclasses import dataclass, replace
from math import exp, hypot, log
from statistics import NormalDist
from typing import Final

from service.engine.time.records import Records
from service.engine.time.results import Latency
from service.engine.time.simulations import Simulations
from service.engine.time.steps import Deployed, RequestOverhead, StepTimer, StepTimers, Timing

MEDIAN: Final = 0.5
# The error of pace covers this share of what was left out of a fit.
COVERED_FRACTION: Final = 0.8
SECONDS: Final = (
    "decode_s", "tokens_s", "attention_s", "step_overhead_s", "sequence_overhead_s", "mixed_overhead_s",
    "mixed_sequence_overhead_s",
)  # fmt: skip


def slowdown(pace_error_fraction: float, sample_error_fraction: float, probability: float) -> float:
    """Return how many times slower than predicted nothing is, with a probability.

    Args:
        pace_error_fraction: of the basis, which 80 % of what was left out stay within. [fraction]
        sample_error_fraction: one standard error of the simulated percentile. [fraction]
        probability: 0.5 for the median.

    >>> round(slowdown(0.2, 0.0, 0.9), 3)
    1.2
    >>> slowdown(0.2, 0.05, 0.5)
    1.0
    """
    normal = NormalDist()
    basis = log(1 + pace_error_fraction) / normal.inv_cdf((1 + COVERED_FRACTION) / 2)
    return exp(normal.inv_cdf(probability) * hypot(basis, sample_error_fraction))


def sample_error(latency: Latency | None) -> float:
    """Return one standard error of the simulated time per output token, as a share of it.

    A queue makes much of little: close to saturation the first token's percentile moves by half where steps take
    a hundredth longer, so that its error says nothing of how far times are off.
    """
    if latency is None or not latency.tpot_s.p95:
        return 0.0
    return latency.tpot_standard_error_s / latency.tpot_s.p95


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowerSteps:
    """Step times that all take longer by one factor; implements `StepTimer`."""

    steps: StepTimer
    factor: float

    def decode_s(self, requests: float, context_tokens: float) -> float:
        """Return the seconds of an iteration that only decodes. [s]."""
        return self.factor * self.steps.decode_s(requests, context_tokens)

    def mixed_s(self, prefill_tokens: float, attended_tokens: float, requests: float, context_tokens: float) -> float:
        """Return the seconds of an iteration that reads prompts and decodes. [s]."""
        return self.factor * self.steps.mixed_s(prefill_tokens, attended_tokens, requests, context_tokens)

    def alone(self) -> "SlowerSteps":
        """Return the same of a single request."""
        return SlowerSteps(steps=self.steps.alone(), factor=self.factor)

    def write(self, records: Records) -> None:
        """Write the times, and multiply each of them."""
        self.steps.write(records)
        for name in SECONDS:
            records[name] *= self.factor


class SlowerTimers:
    """The times of a deployment that hold with a probability; implements `StepTimers`."""

    def __init__(self, timers: StepTimers, probability: float, sample_error_fraction: float) -> None:
        """Slow the times of others; what is simulated with them is kept where theirs is."""
        self._timers, self._probability, self._sample = timers, probability, sample_error_fraction

    def __eq__(self, other: object) -> bool:
        """Return whether both slow the same times by as much."""
        return isinstance(other, SlowerTimers) and self._key == other._key

    def __hash__(self) -> int:
        """Return a hash by value: what was found of a question is found again."""
        return hash(self._key)

    @property
    def _key(self) -> tuple[StepTimers, float, float]:
        return self._timers, self._probability, self._sample

    @property
    def simulations(self) -> Simulations:
        """Return what was simulated."""
        return self._timers.simulations

    def timer(self, key: Deployed) -> Timing | None:
        """Return the times of one replica's ranks."""
        return self._slower(self._timers.timer(key))

    def quick(self, key: Deployed) -> Timing | None:
        """Return times that are ready at once."""
        return self._slower(self._timers.quick(key))

    def _slower(self, timing: Timing | None) -> Timing | None:
        return None if timing is None else slower_timing(timing, self._probability, self._sample)


def slower_timing(timing: Timing, probability: float, sample_error_fraction: float) -> Timing:
    """Return times that hold with a probability."""
    factor = slowdown(timing.basis.pace_error_fraction, sample_error_fraction, probability)
    overhead = timing.request_overhead
    return replace(
        timing,
        steps=SlowerSteps(steps=timing.steps, factor=factor),
        request_overhead=RequestOverhead(
            base_s=factor * overhead.base_s,
            s_per_prompt_token=factor * overhead.s_per_prompt_token,
            let_in_s=factor * overhead.let_in_s,
        ),
    )


def slower(timers: StepTimers | None, probability: float, sample_error_fraction: float) -> StepTimers | None:
    """Return times that hold with a probability; the same ones for the median, none where nobody tells time."""
    if timers is None or probability == MEDIAN:
        return timers
    return SlowerTimers(timers, probability, sample_error_fraction)
