"""What the engine returns: every block of an answer, in base units."""

from dataclasses import dataclass
from typing import Literal

from service.engine.inputs import EngineName, KvCacheDtype, Layout, WeightFormat

Origin = Literal["request", "catalog", "default", "measured"]
Scalar = str | int | float | bool | None
BindingConstraint = Literal["weights", "kv_cache", "ttft", "tpot", "throughput", "max_num_seqs", "layout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One value the answer rests on, where it came from, and who says so."""

    name: str
    value: Scalar
    origin: Origin
    source: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCacheGroup:
    """Layers of one kind that share block tables."""

    kind: str  # full_attention, sliding_window, chunked_local_attention, mla_attention, mamba, ...
    num_layers: int
    block_size: int  # [tokens]
    page_size_bytes: int  # one layer's page on one GPU
    blocks_per_request: int  # for a request of max_model_len
    window_tokens: int | None  # where the layers stop growing


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCache:
    """The pool of one GPU and what it holds; `tokens` and `max_concurrency` are the engine's start-up line."""

    bytes_per_token: int  # one more token in the layers that keep growing, whole model before sharding
    bytes_per_token_within_windows: int  # the same while every window is still filling
    bytes_per_token_per_gpu: int  # one more token on one rank, in the layers that keep growing
    state_bytes_per_request: int  # fixed recurrent state, whole model before sharding
    bytes_per_request: int  # one request of input + output tokens on one GPU, in whole blocks
    block_size: int  # [tokens]
    bytes_per_block: int
    num_gpu_blocks: int
    tokens: int
    max_concurrency: float  # requests of max_model_len
    estimated_max_model_len: int  # longest single request the pool holds, at most max_model_len [tokens]
    groups: tuple[KvCacheGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPerGpu:
    """The ledger of one GPU: the seven terms add up to `total_bytes` exactly when `shortfall_bytes` is 0.

    total_bytes = reserved + weight + activation + cuda_graph + non_torch + kv_cache - shortfall
    """

    total_bytes: int
    reserved_bytes: int  # outside the engine's budget
    weight_bytes: int
    activation_bytes: int
    cuda_graph_bytes: int
    non_torch_bytes: int
    kv_cache_bytes: int
    shortfall_bytes: int  # what is missing before any cache fits; 0 when the weights fit


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWeights:
    """The weights of one whole replica, in the loaded format."""

    weight_bytes: int  # as one GPU alone would load them
    num_parameters: int
    num_active_parameters: int  # that one token passes through


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Mean and percentiles of one latency, in seconds."""

    mean: float
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latency at a stated load, and how far it may be off."""

    ttft_s: Distribution
    tpot_s: Distribution
    itl_s: Distribution  # between two tokens of a request; longer where prompts are read in between
    end_to_end_s: Distribution
    basis: str  # measured-kernels, roofline
    basis_note: str  # why the better basis does not speak; empty where it does
    expected_error_fraction: float  # of that basis, as the accuracy report measured it


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadState:
    """The whole deployment at the asked load."""

    concurrent_requests: float  # in flight, waiting or running
    requests_per_s: float  # answered
    output_tokens_per_s: float
    queue_growth_per_s: float  # requests that wait more, every second; about 0 when the load is carried
    kv_cache_fraction: float  # most blocks in use at once
    preemptions_per_request: float


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One setting to change, by its own name."""

    name: str
    value: Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """A change the caller could make, and the GPUs it would save."""

    change: Change
    gpus: int
    saves_gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cheapest known offer for the answer, in USD per hour."""

    usd_per_hour: float
    offer: str
    provider: str
    instance_type: str
    instances: int
    as_of: str  # ISO date of the price


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """Prefill and decode on GPUs of their own."""

    prefill_replicas: int
    prefill_gpus_per_replica: int
    prefill_tensor_parallel_size: int
    decode_replicas: int
    decode_gpus_per_replica: int
    decode_tensor_parallel_size: int
    kv_transfer_bytes_per_gpu: int  # of one mean prompt
    interconnect_bytes_per_s: float  # one direction, per GPU
    kv_transfer_s: float


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
    kv_cache: KvCache
    per_replica: PerReplica
    latency: Latency | None
    at_load: LoadState | None
    saturation: Saturation
    one_gpu_step_less: GpuStep | None
    one_gpu_step_more: GpuStep | None
    levers: tuple[Lever, ...]
    cost: Cost | None
    engine_args: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]
    rules_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRow:
    """What the GPUs carry at one context length."""

    context_tokens: int
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
    kv_cache: KvCache
    per_replica: PerReplica
    latency: Latency | None
    at_load: LoadState | None
    saturation: Saturation
    curve: tuple[CurvePoint, ...]  # latency against load, from one user to past saturation
    table: tuple[CapacityRow, ...]
    cost: Cost | None
    engine_args: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]
    rules_version: str


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
    weight_format: WeightFormat
    kv_cache_dtype: KvCacheDtype
    usd_per_hour: float | None
    usd_per_million_output_tokens: float | None
    ttft_p95_s: float | None
    tpot_p95_s: float | None
    requests_per_s: float | None
    utilization_fraction: float
    provider: str | None
    instance_type: str | None
    on_pareto_front: bool


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
