"""What the scheduler asks of step times, and how the times of a deployment are found."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

from service.engine.engines.rules import EngineRules
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.inputs import EngineSettings, Gpu, KvCacheDtype, Layout
from service.engine.memory.plan import MemoryPlan
from service.engine.time.records import STEPS, Records, new_records
from service.engine.time.results import Basis
from service.engine.time.simulations import Simulations


class StepTimer(Protocol):
    """Times the iterations of one model on one layout of one GPU type."""

    def __hash__(self) -> int:
        """Return a hash by value: what was simulated with equal times is kept."""
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

    def alone(self) -> "StepTimer":
        """Return what tells the same of a single request, to the last bit, and is small to keep."""
        ...

    def write(self, records: Records) -> None:
        """Write the tables and constants into an array of one record of `records.STEPS`, as simulations read them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOverhead:
    """What a request waits before the scheduler knows it: HTTP, and its tokenizer.

    Requests that come at the same time are let in together, by one process: none is known before that has worked for
    each of them.

        wait of each of n who come at once = base + tokenizer x prompt + n x let in

    Source:
        asyncio's loop runs all that is ready once before it runs any of it again (`base_events.py`, `_run_once`), and
        a request takes several turns: its connection, its body, its tokenizer, its message to the engine. vLLM 0.17
        `entrypoints/openai/api_server.py` and SGLang 0.5.10 `srt/managers/tokenizer_manager.py` are one process each.
    """

    base_s: float
    s_per_prompt_token: float
    let_in_s: float = 0.0

    def of_prompt(self, tokens: int) -> float:
        """Return the wait of a request with so long a prompt. [s]."""
        return self.base_s + self.s_per_prompt_token * tokens

    def longer(self, wait_s: float) -> "RequestOverhead":
        """Return the same with so much more of every request's time outside iterations."""
        return replace(self, base_s=self.base_s + wait_s)


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The times of one deployment: of its steps, of what a request waits outside them, and where both come from.

    What was simulated is kept under them, by value; their hundreds of numbers are hashed once.
    """

    steps: StepTimer
    request_overhead: RequestOverhead
    basis: Basis
    own_share: float = 1.0  # of a step, that goes by a copy's own tokens; the rest by those of all
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Hash all parts."""
        object.__setattr__(self, "_hash", hash((self.steps, self.request_overhead, self.basis, self.own_share)))

    def __hash__(self) -> int:
        """Return the hash of all parts."""
        return self._hash

    @cached_property
    def records(self) -> Records:
        """Return the times as compiled code reads them, in an array of one record."""
        records = new_records(1, STEPS)
        self.steps.write(records)
        records["request_overhead_s"] = self.request_overhead.base_s
        records["tokenizer_s_per_token"] = self.request_overhead.s_per_prompt_token
        records["let_in_s"] = self.request_overhead.let_in_s
        return records


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """Everything a step's time depends on. What is kept is kept under its key."""

    model: ModelFacts
    checkpoint: Checkpoint
    gpu: Gpu
    layout: Layout
    kv_cache_dtype: KvCacheDtype
    rules: EngineRules
    keeps_states: bool = False  # of recurrent layers, for prefixes

    @property
    def key(self) -> Hashable:
        """Return what stands for it, by value, and keeps no model alive that its owner has let go."""
        stated = self.model.key, self.checkpoint.key, self.gpu.key
        return *stated, self.layout, self.kv_cache_dtype, self.rules, self.keeps_states


def deployed(plan: MemoryPlan) -> Deployed:
    """Return what a plan's step times depend on."""
    return Deployed(
        model=plan.model,
        checkpoint=plan.checkpoint,
        gpu=plan.gpu,
        layout=plan.layout,
        kv_cache_dtype=plan.settings.kv_cache_dtype,
        rules=plan.rules,
        keeps_states=keeps_states(plan.model, plan.settings),
    )


def keeps_states(model: ModelFacts, settings: EngineSettings) -> bool:
    """Return whether a model has recurrent layers whose states are kept for prefixes."""
    return settings.enable_prefix_caching and any(mixer.is_recurrent for mixer in model.architecture.mixers)


class StepTimers(Protocol):
    """Finds the times of a deployment, and keeps what was simulated with them."""

    def __hash__(self) -> int:
        """Return a hash by identity."""
        ...

    @property
    def simulations(self) -> Simulations:
        """Return what was simulated with these times."""
        ...

    def timer(self, key: Deployed) -> Timing | None:
        """Return the times of one replica's ranks; None where the GPU states too little to time anything."""
        ...

    def quick(self, key: Deployed) -> Timing | None:
        """Return times that are ready at once, and right within a factor of two; None as above."""
        ...
