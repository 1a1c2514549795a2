"""What the scheduler asks of step times."""

from dataclasses import dataclass
from typing import Protocol

from service.engine.engines.rules import EngineRules
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.inputs import Gpu, KvCacheDtype, Layout
from service.engine.memory.plan import MemoryPlan


class StepTimer(Protocol):
    """Times the iterations of one model on one layout of one GPU type."""

    def __hash__(self) -> int:
        """Return a hash by identity: what is found about a timer is kept."""
        ...

    @property
    def basis(self) -> str:
        """Return where the times come from: measured-kernels or roofline."""
        ...

    @property
    def basis_note(self) -> str:
        """Return why the better basis does not speak; empty where it does."""
        ...

    @property
    def expected_error_fraction(self) -> float:
        """Return the error that the accuracy report measured for this basis. [fraction]."""
        ...

    @property
    def steps_planned_ahead(self) -> int:
        """Return the iterations a new request sits out because they were planned before it came. [count]."""
        ...

    def request_overhead_s(self, prompt_tokens: int) -> float:
        """Return what a request waits before the scheduler knows it: HTTP, and its tokenizer. [s]."""
        ...

    def decode_s(self, requests: float, context_tokens: float) -> float:
        """Return the seconds of an iteration in which so many requests each make one token.

        Args:
            requests: requests that decode. [count]
            context_tokens: mean tokens each of them attends to. [tokens]
        """
        ...

    def mixed_s(self, prefill_tokens: float, attended_tokens: float, requests: float, context_tokens: float) -> float:
        """Return the seconds of an iteration that also reads prompts.

        Args:
            prefill_tokens: prompt tokens computed, over all requests. [tokens]
            attended_tokens: mean tokens that each prompt token attends to: half the prompt when a
                whole prompt is computed at once. [tokens]
            requests: requests that decode beside them. [count]
            context_tokens: mean tokens each of those attends to. [tokens]
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """Everything a step's time depends on. Models, checkpoints, GPUs and rules are compared by identity."""

    model: ModelFacts
    checkpoint: Checkpoint
    gpu: Gpu
    layout: Layout
    kv_cache_dtype: KvCacheDtype
    rules: EngineRules


def deployed(plan: MemoryPlan) -> Deployed:
    """Return what a plan's step times depend on."""
    return Deployed(
        model=plan.model,
        checkpoint=plan.checkpoint,
        gpu=plan.gpu,
        layout=plan.layout,
        kv_cache_dtype=plan.settings.kv_cache_dtype,
        rules=plan.rules,
    )


class StepTimers(Protocol):
    """Finds the timer of a deployment."""

    def __hash__(self) -> int:
        """Return a hash by identity."""
        ...

    def timer(self, key: Deployed) -> StepTimer | None:
        """Return the timer of one replica's ranks; None where the GPU states too little to time anything."""
        ...

    def quick(self, key: Deployed) -> StepTimer | None:
        """Return a timer that is ready at once, and right within a factor of two; None as above."""
        ...
