"""Step times whose answers can be worked out by hand, and replicas that run at them."""

from dataclasses import dataclass
from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.fleet.planned import planned
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import resolve
from service.engine.inputs import Layout
from service.engine.memory.plan import MemoryPlan
from service.engine.time.batching import BlockPool, SchedulerSettings
from service.engine.time.lengths import FixedLength
from service.engine.time.records import ATTENDED, CONTEXTS, REQUESTS, TOKENS, Records
from service.engine.time.replica import Replica, replica_of
from service.engine.time.results import Basis
from service.engine.time.simulations import Simulations
from service.engine.time.steps import Deployed, RequestOverhead, StepTimer, Timing
from service.engine.time.traffic import Traffic

BY_HAND = Basis(
    name="by hand", is_measured=False, source="algebra", note="", overhead_source="algebra", expected_error_fraction=0.0
)
ROOMY = BlockPool(num_blocks=1e9, tokens=(16.0, 1_048_576.0), blocks=(1.0, 65_536.0))
SETTINGS = SchedulerSettings(max_num_batched_tokens=8_192, max_num_seqs=1_024)


@dataclass(frozen=True, kw_only=True)
class LinearSteps:
    """Iterations that take a fixed time and so much for each token: answers can be worked out by hand."""

    step_s: float = 0.010
    prefill_token_s: float = 0.0001
    decode_request_s: float = 0.0

    def decode_s(self, requests: float, context_tokens: float) -> float:  # noqa: ARG002 - the protocol's
        return self.step_s + requests * self.decode_request_s

    def mixed_s(
        self,
        prefill_tokens: float,
        attended_tokens: float,  # noqa: ARG002 - the protocol's
        requests: float,
        context_tokens: float,  # noqa: ARG002 - the protocol's
    ) -> float:
        return self.step_s + prefill_tokens * self.prefill_token_s + requests * self.decode_request_s

    def alone(self) -> "LinearSteps":
        return self

    def write(self, records: Records) -> None:
        records["requests"], records["contexts"], records["batch_tokens"] = REQUESTS, CONTEXTS, TOKENS
        records["attended"], records["attention_s"] = ATTENDED, self.prefill_token_s
        records["step_overhead_s"], records["sequence_overhead_s"] = self.step_s, self.decode_request_s


def timing(
    steps: StepTimer | None = None, *, http_s: float = 0.0, tokenizer_s_per_token: float = 0.0, let_in_s: float = 0.0
) -> Timing:
    overhead = RequestOverhead(base_s=http_s, s_per_prompt_token=tokenizer_s_per_token, let_in_s=let_in_s)
    return Timing(steps=steps or LinearSteps(), request_overhead=overhead, basis=BY_HAND)


def traffic(input_tokens: int = 1_000, output_tokens: int = 101) -> Traffic:
    return Traffic(inputs=FixedLength(tokens=input_tokens), outputs=FixedLength(tokens=output_tokens))


class HandTimers:
    """Times every deployment by the same algebra; implements `StepTimers`."""

    def __init__(self, steps: StepTimer | None = None) -> None:
        self.simulations = Simulations()
        self._timing = timing(steps)

    def timer(self, key: Deployed) -> Timing:  # noqa: ARG002 - the same for all
        return self._timing

    def quick(self, key: Deployed) -> Timing:  # noqa: ARG002 - the same for all
        return self._timing


def plan_of(
    catalog: Snapshot, layout: Layout | None = None, lengths: tuple[int, int] = (1_000, 101), **stated: Any
) -> MemoryPlan:
    """Return the memory of an 8B model on one H100: 1,000 tokens in, 101 out, or others."""
    model, gpu, rules = catalog.model("llama-3.1-8b"), catalog.gpu("h100"), rules_for("vllm")
    resolved = resolve(model, gpu, StatedSettings(**stated), rules)
    return planned(resolved, layout or Layout(), *lengths)


def replica_on(plan: MemoryPlan, steps: StepTimer | None = None, asked: Traffic | None = None) -> Replica:
    return replica_of(plan, timing(steps), asked or traffic(), Simulations())


@pytest.fixture
def replica(catalog: Snapshot) -> Replica:
    """A replica of 64 slots whose every step takes 10 ms, and 0.1 ms more for each token of a prompt."""
    return replica_on(plan_of(catalog, max_num_seqs=64))
