"""Response bodies: the engine's results under the contract's names, converted field by field."""

from pydantic import BaseModel, ConfigDict

from service.engine.answers.results import (
    Capacity,
    CapacityRow,
    CurvePoint,
    GpuStep,
    Option,
    PerReplica,
    Pools,
    Recommendation,
    Rejection,
    Saturation,
    Sizing,
)
from service.engine.fleet.results import Assumption, BindingConstraint, Cost, Scalar
from service.engine.inputs import EngineName, KvCacheDtype, Layout, WeightFormat
from service.engine.memory.results import KvCache, MemoryPerGpu, ModelWeights
from service.engine.time.results import Latency, LoadState


class Answer(BaseModel):
    """No field has a default, so that generated clients see every field as present."""

    model_config = ConfigDict(frozen=True, protected_namespaces=())


class LeverAnswer(Answer):
    """A change the caller could make, and the GPUs it would save."""

    change: dict[str, Scalar]
    gpus: int
    saves_gpus: int


class SizeAnswer(Answer):
    """How many GPUs, and why."""

    feasible: bool
    gpus: int
    replicas: int
    gpus_per_replica: int
    model: str
    gpu: str
    engine: EngineName
    weight_format: WeightFormat
    kv_cache_dtype: KvCacheDtype
    layout: Layout
    pools: Pools | None
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
    one_gpu_step_less: GpuStep | None
    one_gpu_step_more: GpuStep | None
    levers: tuple[LeverAnswer, ...]
    cost: Cost | None
    engine_args: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]
    catalog_revision: int
    rules_version: str

    @classmethod
    def from_engine(cls, sizing: Sizing, catalog_revision: int) -> "SizeAnswer":
        """Return the body of an answer computed from a catalog revision."""
        return cls(
            feasible=sizing.feasible,
            gpus=sizing.gpus,
            replicas=sizing.replicas,
            gpus_per_replica=sizing.gpus_per_replica,
            model=sizing.model,
            gpu=sizing.gpu,
            engine=sizing.engine,
            weight_format=sizing.weight_format,
            kv_cache_dtype=sizing.kv_cache_dtype,
            layout=sizing.layout,
            pools=sizing.pools,
            binding_constraint=sizing.binding_constraint,
            shortfall_bytes=sizing.shortfall_bytes,
            would_fit=sizing.would_fit,
            weights=sizing.weights,
            memory_per_gpu=sizing.memory_per_gpu,
            kv_cache=sizing.kv_cache,
            per_replica=sizing.per_replica,
            latency=sizing.latency,
            at_load=sizing.at_load,
            saturation=sizing.saturation,
            one_gpu_step_less=sizing.one_gpu_step_less,
            one_gpu_step_more=sizing.one_gpu_step_more,
            levers=tuple(
                LeverAnswer(change={it.change.name: it.change.value}, gpus=it.gpus, saves_gpus=it.saves_gpus)
                for it in sizing.levers
            ),
            cost=sizing.cost,
            engine_args=sizing.engine_args,
            assumptions=sizing.assumptions,
            warnings=sizing.warnings,
            catalog_revision=catalog_revision,
            rules_version=sizing.rules_version,
        )


class CapacityAnswer(Answer):
    """How much load the GPUs carry, and the engine's own start-up numbers."""

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
    curve: tuple[CurvePoint, ...]
    table: tuple[CapacityRow, ...]
    cost: Cost | None
    engine_args: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]
    catalog_revision: int
    rules_version: str

    @classmethod
    def from_engine(cls, capacity: Capacity, catalog_revision: int) -> "CapacityAnswer":
        """Return the body of an answer computed from a catalog revision."""
        return cls(
            feasible=capacity.feasible,
            max_concurrent_requests=capacity.max_concurrent_requests,
            requests_per_s=capacity.requests_per_s,
            max_model_len_fitting=capacity.max_model_len_fitting,
            gpus=capacity.gpus,
            replicas=capacity.replicas,
            gpus_per_replica=capacity.gpus_per_replica,
            model=capacity.model,
            gpu=capacity.gpu,
            engine=capacity.engine,
            weight_format=capacity.weight_format,
            kv_cache_dtype=capacity.kv_cache_dtype,
            layout=capacity.layout,
            binding_constraint=capacity.binding_constraint,
            shortfall_bytes=capacity.shortfall_bytes,
            would_fit=capacity.would_fit,
            weights=capacity.weights,
            memory_per_gpu=capacity.memory_per_gpu,
            kv_cache=capacity.kv_cache,
            per_replica=capacity.per_replica,
            latency=capacity.latency,
            at_load=capacity.at_load,
            saturation=capacity.saturation,
            curve=capacity.curve,
            table=capacity.table,
            cost=capacity.cost,
            engine_args=capacity.engine_args,
            assumptions=capacity.assumptions,
            warnings=capacity.warnings,
            catalog_revision=catalog_revision,
            rules_version=capacity.rules_version,
        )


class RecommendAnswer(Answer):
    """Ways to serve the load, best first, and what was left out."""

    feasible: bool
    model: str
    engine: EngineName
    options: tuple[Option, ...]
    rejected: tuple[Rejection, ...]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]
    catalog_revision: int
    rules_version: str

    @classmethod
    def from_engine(cls, recommendation: Recommendation, catalog_revision: int) -> "RecommendAnswer":
        """Return the body of an answer computed from a catalog revision."""
        return cls(
            feasible=recommendation.feasible,
            model=recommendation.model,
            engine=recommendation.engine,
            options=recommendation.options,
            rejected=recommendation.rejected,
            assumptions=recommendation.assumptions,
            warnings=recommendation.warnings,
            catalog_revision=catalog_revision,
            rules_version=recommendation.rules_version,
        )
