"""The three questions, with everything the engine needs to answer them as values."""

from dataclasses import dataclass
from typing import Literal

from service.engine.architecture import Architecture
from service.engine.config.quantization import Quantization
from service.engine.inputs import (
    Gpu,
    Headroom,
    KvCacheDtype,
    LayoutWish,
    Limits,
    Load,
    WeightFormat,
)
from service.engine.rules import EngineRules

Objective = Literal["cost", "gpus", "latency"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checkpoint:
    """One published weight format of a model."""

    weight_format: WeightFormat
    quantization: Quantization
    hf_id: str | None
    is_default: bool
    kv_cache_dtype: KvCacheDtype | None  # what the checkpoint itself declares
    source: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelFacts:
    """A model as the catalog or a pasted config states it; exactly one checkpoint is the default."""

    id: str
    architecture: Architecture
    checkpoints: tuple[Checkpoint, ...]
    source: str | None
    config_json: str = ""  # the published config, for step timers that read it
    weight_bytes: int | None = None  # stated by the caller where the config cannot tell


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsWish:
    """The engine settings that the caller stated; None means the engine's own default."""

    weight_format: WeightFormat | None = None
    kv_cache_dtype: KvCacheDtype | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_memory_bytes: int | None = None
    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    block_size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What one provider asks for one instance type."""

    id: str
    provider: str
    instance_type: str
    region: str
    gpu: str
    gpu_count: int
    usd_per_hour: float
    as_of: str  # ISO date


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeQuestion:
    """This model, this load, this GPU type: how many?"""

    model: ModelFacts
    gpu: Gpu
    load: Load
    limits: Limits
    layout: LayoutWish
    headroom: Headroom
    settings: SettingsWish
    rules: EngineRules
    offers: tuple[Offer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityQuestion:
    """This model on these GPUs: how much load?"""

    model: ModelFacts
    gpu: Gpu
    gpu_count: int
    load: Load | None  # latency at this load, even beyond saturation
    input_tokens: int | None  # both None: requests of the longest context served
    output_tokens: int | None
    limits: Limits
    layout: LayoutWish
    settings: SettingsWish
    rules: EngineRules
    offers: tuple[Offer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendQuestion:
    """This model, this load: which GPU, layout and precision?"""

    model: ModelFacts
    gpus: tuple[Gpu, ...]  # after allow and deny lists
    load: Load
    limits: Limits
    headroom: Headroom
    settings: SettingsWish
    layout: LayoutWish
    rules: EngineRules
    offers: tuple[Offer, ...]
    weight_formats: tuple[WeightFormat, ...] = ()  # empty: the model's own checkpoint formats
    kv_cache_dtypes: tuple[KvCacheDtype, ...] = ()  # empty: auto
    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    max_gpus: int | None = None
    max_usd_per_hour: float | None = None
    objective: Objective = "cost"
    limit: int = 10
