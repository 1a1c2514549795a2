"""Compiled code, made ready before anybody asks: compiled once a machine, and loaded from disk after that."""

from dataclasses import dataclass
from typing import Final

from service.engine.inputs import Limits
from service.engine.time.batching import BlockPool, SchedulerSettings, Serving
from service.engine.time.demand import Arrivals
from service.engine.time.estimate import HOPELESS, fewest_at_best, hoped_users, in_flight, pace_s
from service.engine.time.lengths import FixedLength
from service.engine.time.records import ATTENDED, CONTEXTS, REQUESTS, TOKENS, Records
from service.engine.time.results import Basis
from service.engine.time.simulation import Machine
from service.engine.time.steps import RequestOverhead, Timing
from service.engine.time.traffic import Sender, Traffic

STEP_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class _EvenSteps:
    """Iterations that all take the same time; implements `StepTimer`."""

    def decode_s(self, requests: float, context_tokens: float) -> float:  # noqa: ARG002 - the protocol's
        return STEP_S

    def mixed_s(self, prefill_tokens: float, attended_tokens: float, requests: float, context_tokens: float) -> float:  # noqa: ARG002 - the protocol's
        return STEP_S

    def alone(self) -> "_EvenSteps":
        return self

    def write(self, records: Records) -> None:
        records["requests"], records["contexts"], records["batch_tokens"] = REQUESTS, CONTEXTS, TOKENS
        records["attended"], records["step_overhead_s"] = ATTENDED, STEP_S


def make_ready() -> None:
    """Call everything that is compiled once, on a load of one request."""
    basis = Basis(name="", is_measured=False, source="", note="", overhead_source="", expected_error_fraction=0.0)
    timing = Timing(
        steps=_EvenSteps(), request_overhead=RequestOverhead(base_s=0.0, s_per_prompt_token=0.0), basis=basis
    )
    settings = SchedulerSettings(max_num_batched_tokens=1, max_num_seqs=1)
    traffic = Traffic(inputs=FixedLength(tokens=1), outputs=FixedLength(tokens=1))
    serving = Serving(timing=timing, traffic=traffic, settings=settings, streams=1, slots=1)
    pool = BlockPool(num_blocks=2.0, tokens=(1.0, 2.0), blocks=(1.0, 2.0))
    Machine(timing, pool, settings).simulated(Sender().burst_of_users(traffic, 1, 1))
    pace_s(serving, 1)
    in_flight(serving, 1.0)
    hoped_users(serving, Limits(tpot_s=HOPELESS), 1.0)
    fewest_at_best(serving, (1,), Arrivals(1.0), Limits(ttft_s=STEP_S), 1)
