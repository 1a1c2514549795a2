"""Times of an engine that runs without graphs: those with them, told apart and trusted less.

Without a graph the host launches every kernel of a step, and a step of few requests waits for it. By how much turns on
the host and the number of kernels, which nobody states; what was published of the same server with and without, in
times per output token of 1 to 3 requests:

    Qwen2.5-Omni 7B    A800         1.7       Qwen2.5-Omni 3B   H200      4.3
    DeepSeek V4        8 x RTX PRO  2.4       a 7B              Gaudi 2   3.6 (mean of loads)

Sources: vllm-project/vllm-omni issue 7960 (September 2026); sgl-project/sglang pull request 24047 (May 2026);
opea-project/GenAIExamples pull request 1210 (November 2024).
"""

from dataclasses import dataclass, replace
from typing import Final

from service.engine.engines.measured_here import MEASURED_HERE
from service.engine.time.results import Basis
from service.engine.time.simulations import Simulations
from service.engine.time.steps import Deployed, StepTimers, Timing

PUBLISHED: Final = (1.7, 2.4, 3.6, 4.3)  # times with graphs
ERROR_FRACTION: Final = (PUBLISHED[1] + PUBLISHED[2]) / 2 - 1  # the middle of them
NOTE: Final = (
    "times are those with graphs, which enforce_eager leaves out: published servers took "
    f"{PUBLISHED[0]} to {PUBLISHED[-1]} times as long a token without them, of few requests at once"
)


@dataclass(frozen=True, slots=True)
class EagerTimers:
    """The times of others, that say what they lack; implements `StepTimers`."""

    timers: StepTimers

    @property
    def simulations(self) -> Simulations:
        """Return what was simulated."""
        return self.timers.simulations

    def timer(self, key: Deployed) -> Timing | None:
        """Return the times of one replica's ranks."""
        return _without_graphs(self.timers.timer(key))

    def quick(self, key: Deployed) -> Timing | None:
        """Return times that are ready at once."""
        return _without_graphs(self.timers.quick(key))


def eager(timers: StepTimers | None) -> StepTimers | None:
    """Return times as of an engine without graphs; none where nobody tells time."""
    return None if timers is None else EagerTimers(timers)


def _without_graphs(timing: Timing | None) -> Timing | None:
    if timing is None or timing.basis.name == MEASURED_HERE:  # by callers, of their own servers
        return timing
    return replace(timing, basis=_vaguer(timing.basis))


def _vaguer(basis: Basis) -> Basis:
    return replace(
        basis,
        note="; ".join(filter(None, (basis.note, NOTE))),
        expected_error_fraction=max(basis.expected_error_fraction, ERROR_FRACTION),
        stated_pace_error_fraction=max(basis.pace_error_fraction, ERROR_FRACTION),
    )
