"""The three questions, with everything the engine needs to answer them as values."""

from dataclasses import dataclass
from math import inf
from typing import Final, Literal, NamedTuple

from service.engine.engines.rules import EngineRules
from service.engine.facts import ModelFacts
from service.engine.inputs import (
    All2AllBackend,
    Gpu,
    Headroom,
    KvCacheDtype,
    Limits,
    Load,
    LoadedFormat,
    SpeculativeMethod,
    StatedLayout,
    StateDtype,
    Tier,
    WeightFormat,
)
from service.engine.time.steps import StepTimers

Objective = Literal["cost", "cost_per_token", "gpus", "latency"]
ServiceClass = Literal["interactive", "batch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSettings:
    """The engine settings that the caller stated; None means the engine's own default."""

    weight_format: WeightFormat | None = None
    kv_cache_dtype: KvCacheDtype | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_memory_bytes: int | None = None
    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    block_size: int | None = None
    num_speculative_tokens: int = 0
    speculative_method: SpeculativeMethod | None = None
    max_loras: int = 0
    max_lora_rank: int = 16
    quantization: LoadedFormat | None = None  # made of the checkpoint in 16 bits while it loads
    enforce_eager: bool = False
    enable_prefix_caching: bool | None = None
    language_model_only: bool = False
    swa_full_tokens_ratio: float | None = None
    mamba_cache_dtype: StateDtype = "auto"
    mamba_ssm_cache_dtype: StateDtype = "auto"
    all2all_backend: All2AllBackend | None = None
    enable_two_batch_overlap: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What one provider asks for one instance type, or the caller pays for one GPU."""

    id: str
    provider: str
    instance_type: str
    region: str
    gpu: str
    gpu_count: int
    usd_per_hour: float  # with the caller's discount
    as_of: str  # ISO date
    tier: Tier = "secure"
    purchase: str = "on-demand"
    commitment_months: int | None = None  # of a reserved price
    source: str = ""
    discount_fraction: float = 0.0  # taken off the list price
    is_stale: bool = False  # too old to rely on
    is_callers: bool = False  # no offer: what the caller pays for a GPU, however many unless an instance was named


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a deployment may take at most."""

    gpus: float = inf
    usd_per_hour: float = inf  # finite: and somebody must offer it

    @property
    def is_free(self) -> bool:
        """Return whether anything goes."""
        return self.gpus == self.usd_per_hour == inf


FREE: Final = Budget()


class PriceTerm(NamedTuple):
    """One thing that decides which offers count, or what is paid: as stated, or else as usual."""

    name: str
    value: str | float
    is_stated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyQuestion:
    """What every question holds."""

    model: ModelFacts
    load: Load
    limits: Limits
    layout: StatedLayout
    settings: StatedSettings
    rules: EngineRules
    flags: frozenset[str] = frozenset()  # of the engine's version; empty where nobody knows
    offers: tuple[Offer, ...] = ()  # in question
    price_terms: tuple[PriceTerm, ...] = ()  # by which they are
    left_out_offers: tuple[Offer, ...] = ()  # that the caller did not ask for: they tell why there is no price
    timers: StepTimers | None = None  # None: memory alone
    confidence: float | None = None  # with which limits are kept; None: times are medians


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeQuestion(AnyQuestion):
    """This model, this load, this GPU type: how many?"""

    gpu: Gpu
    headroom: Headroom
    disaggregated: bool = False  # prefill and decode on GPUs of their own
    stays_in_server: bool = False  # no replica is spread over several servers
    budget: Budget = FREE

    @property
    def is_of_memory(self) -> bool:
        """Return whether memory alone decides, and nothing is simulated: users, or arrivals that stay a stated time."""
        load, limits = self.load, self.limits
        comes_and_stays = load.request_rate_per_s is None or load.request_duration_s is not None
        return comes_and_stays and not limits.are_stated


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityQuestion(AnyQuestion):
    """This model on these GPUs: how much load? Latency at its concurrency or rate, even beyond saturation."""

    gpu: Gpu
    gpu_count: int
    is_count_stated: bool = True
    input_tokens: int | None  # as in the load; both None: requests of the longest context served
    output_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendQuestion(AnyQuestion):
    """This model, this load: which GPU, layout and precision?"""

    gpus: tuple[Gpu, ...]  # after allow and deny lists
    headroom: Headroom
    weight_formats: tuple[WeightFormat, ...] = ()  # empty: the model's own checkpoint formats
    kv_cache_dtypes: tuple[KvCacheDtype, ...] = ()  # empty: auto
    is_shortlist: bool = False  # no GPUs are named: those of data centres, as they are run there
    left_out_gpus: tuple[Gpu, ...] = ()  # that somebody rents out, of lines that nobody asked for
    is_price_needed: bool = False  # what nobody in question rents out is not listed
    max_gpus: int | None = None
    max_usd_per_hour: float | None = None
    objective: Objective = "cost"
    service_class: ServiceClass = "interactive"
    is_floor_assumed: bool = False  # the limits are those of the service class
    limit: int = 10
