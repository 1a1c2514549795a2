"""What the engine returns: every block of an answer, in base units."""

from collections.abc import Mapping
from dataclasses import dataclass

from service.engine.answers.pools import Pools
from service.engine.answers.reuse import Reuse
from service.engine.fleet.results import Assumption, BindingConstraint, Cost, Scalar
from service.engine.inputs import EngineName, KvCacheDtype, Layout, Tier, WeightFormat
from service.engine.memory.results import KvCache, MemoryPerGpu, ModelWeights
from service.engine.time.results import Latency, LoadState


@dataclass(frozen=True, slots=True, kw_only=True)
class PerReplica:
    """What one replica carries."""

    max_concurrent_requests: int
    requests_per_s: float | None
    output_tokens_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """The load of the whole deployment at which a limit breaks, and at which the queue grows without end."""

    concurrent_requests: int
    request_rate_per_s: float | None
    queue_diverges_at_requests_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuStep:
    """What one step more or fewer GPUs would do."""

    gpus: int
    feasible: bool
    violates: BindingConstraint | None
    usd_per_hour: float | None  # None: no offer holds so many


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """A change the caller could make, and what it would save."""

    change: Mapping[str, Scalar]  # settings, by their own names
    gpus: int
    saves_gpus: int
    usd_per_hour: float | None  # None: no offer holds so many
    saves_usd_per_hour: float | None
    basis: str | None  # of its times; None: memory alone decides, or nobody times it


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidentCount:
    """The GPUs that keep the limits with a probability; 0 where none do."""

    probability: float
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """With which probability the count keeps the limits, given how far times were off where they were measured."""

    probability: float  # 0.5: sized by medians, as likely too few as too many
    slowdown: float  # what every time of the answer is longer than the median by
    sample_error_fraction: float | None  # None: nobody asked, or nobody tells time
    counts: tuple[ConfidentCount, ...]  # at 50, 80 and 95 %, and at the asked one; empty where nobody asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """The answer to: this model, this load, this GPU; how many?"""

    feasible: bool
    gpus: int  # 0 when infeasible
    replicas: int
    gpus_per_replica: int
    model: str
    gpu: str
    engine: EngineName
    weight_format: WeightFormat
    kv_cache_dtype: KvCacheDtype
    layout: Layout
    pools: Pools | None  # with `disaggregated`; every block but the pools' counts then speaks of the decode pool
    binding_constraint: BindingConstraint
    shortfall_bytes: int
    would_fit: tuple[str, ...]  # sentences: what would make it fit; empty when feasible
    weights: ModelWeights
    memory_per_gpu: MemoryPerGpu
    safe_margin_bytes: int  # by which the pool of one GPU may be smaller than predicted: commands leave it free
    kv_cache: KvCache
    per_replica: PerReplica
    latency: Latency | None
    at_load: LoadState | None
    saturation: Saturation
    confidence: Confidence
    one_gpu_step_less: GpuStep | None
    one_gpu_step_more: GpuStep | None
    levers: tuple[Lever, ...]
    reuse: Reuse | None  # None: nobody tells time
    cost: Cost | None
    command: str | None  # starts one replica, a line a node; None: nothing does, and warnings say why
    engine_args: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]
    rules_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """The load that one pod carries within limits: what an autoscaler scales on."""

    max_concurrent_requests: int
    max_requests_per_s: float | None  # None: the load is users


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """The answer to: pods of one shape; how many?"""

    feasible: bool
    replicas: int  # 0 when infeasible
    gpus: int
    gpus_per_replica: int
    model: str
    gpu: str
    engine: EngineName
    weight_format: WeightFormat
    kv_cache_dtype: KvCacheDtype
    layout: Layout
    weights: ModelWeights
    per_pod: Pod
    utilization_fraction: float | None  # of what all pods carry, headroom included
    binding_constraint: BindingConstraint
    would_fit: tuple[str, ...]
    cost: Cost | None
    command: str | None  # starts one pod, a line a node; None: nothing does, and warnings say why
    engine_args: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]
    rules_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRow:
    """What the GPUs carry at one context length, on the layout that holds most requests of it."""

    context_tokens: int
    input_tokens: int
    output_tokens: int
    layout: Layout
    replicas: int
    max_concurrent_requests: int
    ttft_s: float | None
    tpot_s: float | None
    requests_per_s: float | None
    output_tokens_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """What users of the GPUs see at one load."""

    concurrent_requests: int
    requests_per_s: float
    output_tokens_per_s: float
    ttft_mean_s: float
    ttft_p95_s: float
    tpot_mean_s: float
    tpot_p95_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The answer to: this model on these GPUs; how much load?"""

    feasible: bool
    max_concurrent_requests: int
    requests_per_s: float | None
    kv_read_s_per_token: float | None  # what one more stored token adds to a step of its request
    prefill_tokens_per_s: float | None  # of one replica that reads prompts alone, in full steps
    max_model_len_fitting: int
    gpus: int
    replicas: int
    gpus_per_replica: int
    model: str
    gpu: str
    engine: EngineName
    weight_format: WeightFormat
    kv_cache_dtype: KvCacheDtype
    layout: Layout
    binding_constraint: BindingConstraint
    shortfall_bytes: int
    would_fit: tuple[str, ...]
    weights: ModelWeights
    memory_per_gpu: MemoryPerGpu
    safe_margin_bytes: int  # by which the pool of one GPU may be smaller than predicted: commands leave it free
    kv_cache: KvCache
    per_replica: PerReplica
    latency: Latency | None
    at_load: LoadState | None
    saturation: Saturation
    curve: tuple[CurvePoint, ...]  # latency against load, from one user to past saturation
    table: tuple[CapacityRow, ...]
    cost: Cost | None
    command: str | None  # starts one replica, a line a node; None: nothing does, and warnings say why
    engine_args: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]
    rules_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another format on an option's GPU type that carries the load too."""

    weight_format: WeightFormat
    kv_cache_dtype: KvCacheDtype
    gpus: int
    usd_per_hour: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to serve the load."""

    rank: int
    gpu: str
    gpus: int
    replicas: int
    gpus_per_replica: int
    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    expert_parallel: bool
    decode_context_parallel_size: int
    weight_format: WeightFormat
    kv_cache_dtype: KvCacheDtype
    usd_per_hour: float | None
    usd_per_month: float | None
    usd_per_million_output_tokens: float | None
    ttft_p95_s: float | None
    tpot_p95_s: float | None
    requests_per_s: float | None
    utilization_fraction: float
    gpus_paid: int | None  # this and what follows: None where nobody rents it out
    provider: str | None
    instance_type: str | None
    instances: int | None
    region: str | None
    tier: Tier | None
    purchase: str | None
    as_of: str | None
    is_stale: bool | None
    on_pareto_front: bool  # nothing listed is as good in price, TTFT, TPOT and GPUs, and better in one
    basis: str | None  # of the latencies; None: nobody tells time
    expected_error_fraction: float | None
    command: str | None  # None: the warnings say why
    warnings: tuple[str, ...]
    alternatives: tuple[Alternative, ...]  # the same GPU type with other formats


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """What was left out of a recommendation, and why."""

    gpu: str
    weight_format: WeightFormat | None
    kv_cache_dtype: KvCacheDtype | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The answer to: this model, this load; which GPU, layout and precision?"""

    feasible: bool
    model: str
    engine: EngineName
    options: tuple[Option, ...]
    rejected: tuple[Rejection, ...]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]
    rules_version: str
