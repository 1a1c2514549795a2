"""Engine rules by version: a serving engine's own defaults, and the terms measured on its start-ups."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from service.engine.arithmetic import GIB
from service.engine.derived import Derived, derived
from service.engine.engines.base import Engine, MemoryShare
from service.engine.engines.measured_here import Measured
from service.engine.engines.plans import NEWEST, PlanRules
from service.engine.engines.registry import engine_named
from service.engine.engines.static_share import Served, StaticReserve, static_share
from service.engine.inputs import EngineName, Gpu

# Where CUDA graphs count: beside the budget, or as an estimate taken out of it before the pool is sized.
GraphAccounting = Literal["outside", "inside"]
UNIFIED_MEMORY = ("gb10",)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDefaults:
    """The scheduler's default limits on GPUs with at least this memory."""

    at_least_memory_bytes: int
    only_names: tuple[str, ...]  # of which one is part of the GPU's name
    except_names: tuple[str, ...]
    max_num_batched_tokens: int  # [tokens]
    max_num_seqs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphTerms:
    """What captured CUDA graphs take, or what the engine estimates they will. [bytes]."""

    base_bytes: int
    per_dense_layer_and_size: float
    per_expert_layer_and_size: float
    per_recurrent_layer_and_size: float
    per_selecting_layer_and_size: float  # beyond that of its kind, for layers that select tokens to attend to


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineRules:
    """One row of the engine-rules table. Constants are measured; the table states source and error of each."""

    engine: EngineName
    first_version: str  # lowest engine version the row speaks for
    rules_version: str
    default_gpu_memory_utilization: float  # [fraction]
    static_reserve: StaticReserve | None  # where the default depends on what runs; None: one number
    graph_accounting: GraphAccounting
    peak_includes_graphs: bool  # the log's "peak activation" contains the graph estimate
    batch_defaults: tuple[BatchDefaults, ...]  # first match wins
    sampler_bytes_per_logit: float  # working copies of the logits while sampling [bytes]
    sampler_state_bytes_per_logit: float  # tables the sampler keeps, for `max_num_seqs` rows [bytes]
    steps_planned_ahead: int  # iterations planned before the engine looks for new requests: asynchronous scheduling
    keeps_workspaces: bool  # buffers of experts and sparse attention stay, so they add to the sampler's peak
    bounds_encoder_cache: bool  # by the context, while the profiling run keeps encoder outputs
    long_sparse_workspace_factor: int  # sparse attention's buffer beyond 256 Ki tokens of context
    hidden_state_copies: float  # of the batch that stay alive beside the peak
    activation_base_bytes: int  # that stays alive beside the peak, whatever the model
    graphs_on_hopper: GraphTerms
    graphs_elsewhere: GraphTerms
    context_bytes: Mapping[str, int]  # context and libraries, by compute capability, its major number, or `other`
    connected_context_bytes: int | None  # the same where communication is set up before it is measured; None: as alone
    non_torch_bytes_with_peers: int  # communication buffers, once ranks talk to each other
    non_torch_bytes_with_slot_peers: int | None  # the same of GPUs that meet in PCIe slots alone; None: as of others
    fused_reduce_bytes: int  # buffers of all-reduce fused with norms; 0 where the version has none
    non_torch_bytes_unified: int  # the host's use of memory that it shares with the GPU
    margin_bytes: int  # by which four start-ups in five have at least the pool that is promised
    source: str
    measured_source: str
    plan: PlanRules = NEWEST
    states_per_request: int = 5  # of recurrent layers' pool, where it also keeps states of prefixes
    rescales_contexts: bool = True  # a context is what a rope scaling reaches, and not what a config states
    for_mixtures: "EngineRules | None" = None  # of models with experts or recurrent state
    is_version_stated: bool = True  # or the row that speaks where nobody states one
    planned_as: str | None = None  # whose rules plan caches and weights, where the stated version has none of its own
    release: str = ""  # as stated; empty where nobody states one
    unread: str | None = None  # the stated version, where it is newer than all whose source was read
    measured: tuple[Measured, ...] = ()  # by callers, under this version
    async_scheduling: bool | None = None  # as stated; None: the version's own
    derived: Derived = field(default_factory=Derived, init=False, repr=False, compare=False)

    @property
    def serving_engine(self) -> Engine:
        """Return what the engine does its own way in every version."""
        return engine_named(self.engine)

    @property
    def memory_share(self) -> MemoryShare:
        """Return what the utilization is a share of."""
        return self.serving_engine.memory_share


def as_measured(rules: EngineRules, measured: tuple[Measured, ...]) -> EngineRules:
    """Return the rules with what callers measured: the same object for the same measurements, themselves for none."""
    return _as_measured(rules, measured) if measured else rules


@derived(64)
def _as_measured(rules: EngineRules, measured: tuple[Measured, ...]) -> EngineRules:
    return replace(rules, measured=measured)


@derived(2)
def as_scheduled(rules: EngineRules, is_async: bool) -> EngineRules:  # noqa: FBT001 - a flag's own value
    """Return the rules with scheduling turned on or off: whether a step is planned while the one before runs.

    Source: vLLM 0.33 `config/scheduler.py` (`async_scheduling`), `config/vllm.py` (`max_in_flight_tokens`).
    """
    plan = replace(rules.plan, plans_ahead=is_async)
    return replace(rules, async_scheduling=is_async, steps_planned_ahead=int(is_async), plan=plan)


def has_unified_memory(gpu: Gpu) -> bool:
    """Return whether host and GPU draw on one memory: then what the host takes meanwhile is missing too."""
    return any(name in gpu.name.lower() for name in UNIFIED_MEMORY)


def batch_defaults(rules: EngineRules, gpu: Gpu) -> tuple[int, int]:
    """Return `max_num_batched_tokens` and `max_num_seqs` when nobody states them.

    Source:
        vLLM 0.33 `engine/arg_utils.py` (`get_batch_defaults`): by memory, except named parts; up to 0.8.4 by name.
    """
    name = gpu.name.lower()
    for tier in rules.batch_defaults:
        is_meant = any(part in name for part in tier.only_names) and not any(part in name for part in tier.except_names)
        if gpu.memory_bytes >= tier.at_least_memory_bytes and is_meant:
            return tier.max_num_batched_tokens, tier.max_num_seqs
    return 2_048, 256


def default_utilization(rules: EngineRules, gpu: Gpu, served: Served | None = None) -> float:
    """Return the share of memory the engine takes when nobody states it. [fraction].

        vLLM, TensorRT-LLM: one number per version
        SGLang: what `static_share.py` reserves, of what runs; without it of one rank of a model of text

    Sources:
        vLLM 0.33 `config/cache.py` (`gpu_memory_utilization`); TensorRT-LLM `KvCacheConfig`; SGLang `server_args.py`
        (`_handle_gpu_memory_settings`).

    vLLM's documentation of 0.19 says 0.9; by SGLang's pull request 10975 chunks of 8,192 tokens and 256 batch sizes
    leave (81559 - 13440) / 81559 MiB of an H100, and 58 captured lengths of prompts take 464 more since 0.5.10:

    >>> from service.catalog.engine_rules import rules_for
    >>> gpu = Gpu(
    ...     id="h100", name="NVIDIA H100 80GB HBM3", vendor="nvidia", architecture="hopper", compute_capability="9.0",
    ...     memory_bytes=81_559 * 2**20, memory_bandwidth_bytes_per_s=3.35e12, peak_flop_per_s={},
    ...     gpus_per_node=8, scale_up_domain_gpus=8, scale_up_bytes_per_s=4.5e11, scale_out_bytes_per_s=5e10)
    >>> asked = (("vllm", "0.19"), ("sglang", "0.5.4"), ("sglang", "0.5.10"))
    >>> [default_utilization(rules_for(engine, version), gpu) for engine, version in asked]
    [0.9, 0.835, 0.83]
    """
    default, reserve = rules.default_gpu_memory_utilization, rules.static_reserve
    if reserve is None:
        return default
    alone = served or Served(chunk_tokens=batch_defaults(rules, gpu)[0])
    return static_share(reserve, gpu.driver_memory_bytes or gpu.memory_bytes, default, alone)


def gib(value: float) -> int:
    """Return whole bytes of a figure printed in GiB."""
    return round(value * GIB)
