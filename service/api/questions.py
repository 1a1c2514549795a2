"""Request bodies: the fields of a question, their ranges, and their way into engine inputs."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from service.engine.fleet.questions import Objective, StatedSettings
from service.engine.inputs import (
    EngineName,
    Headroom,
    KvCacheDtype,
    LengthDistribution,
    Limits,
    Load,
    SpeculativeMethod,
    StatedLayout,
    WeightFormat,
)

MAX_TOKENS = 100_000_000
MAX_REQUESTS = 10_000_000

Text = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$", strip_whitespace=True)
]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
Parallel = Annotated[int, Field(ge=1, le=1024)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Format = Literal["json", "text", "csv", "yaml", "prometheus"]


def _split(value: object) -> object:
    """Accept lists as lists, repeated query parameters, or one text with commas."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return [piece.strip() for part in value for piece in part.split(",") if piece.strip()]
    return value


def _number(value: object) -> object:
    """Accept a number of a list of choices as a query string writes it."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


BlockSize = Annotated[Literal[1, 2, 4, 8, 16, 32, 64, 128, 256], BeforeValidator(_number)]
LoraRank = Annotated[Literal[1, 8, 16, 32, 64, 128, 256, 320, 512], BeforeValidator(_number)]
Texts = Annotated[list[Text], BeforeValidator(_split), Field(max_length=200)]
Formats = Annotated[list[WeightFormat], BeforeValidator(_split), Field(max_length=7)]
CacheDtypes = Annotated[list[KvCacheDtype], BeforeValidator(_split), Field(max_length=4)]


class Question(BaseModel):
    """What every question shares. Unknown fields are refused, so that a misspelt one is never a default."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model: Text | None = Field(default=None, description="catalog id, Hugging Face id or alias, in any case")
    concurrent_requests: Annotated[int, Field(ge=1, le=MAX_REQUESTS)] | None = Field(
        default=None,
        description="requests in flight at once, of users who send the next one when one is answered: the faster the "
        "service, the more they ask of it; where demand is given, state request_rate_per_s instead",
    )
    request_rate_per_s: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = Field(
        default=None, description="arrivals per second; or state concurrent_requests"
    )
    request_duration_s: Seconds | None = Field(
        default=None, description="seconds a request lives; default: as simulated at the asked rate"
    )
    max_model_len: Tokens | None = Field(default=None, description="longest context the engine serves [tokens]")
    ttft_s: Seconds | None = Field(default=None, description="limit on the time to first token [s]")
    tpot_s: Seconds | None = Field(default=None, description="limit on the time per output token [s]")
    percentile: Annotated[float, Field(ge=50, lt=100, allow_inf_nan=False)] = Field(
        default=95, description="share of requests that must meet the limits [per cent]"
    )
    weight_format: WeightFormat | None = Field(default=None, description="default: the model's own checkpoint")
    kv_cache_dtype: KvCacheDtype | None = Field(default=None, description="default: auto")
    engine: EngineName = Field(default="vllm", description="serving engine whose rules apply")
    engine_version: Annotated[str, StringConstraints(max_length=40)] | None = Field(
        default=None, description="engine version, such as 0.33.0; default: the newest known"
    )
    tensor_parallel_size: Parallel | None = Field(
        default=None, description="GPUs that share every layer; default: as few as carry the load"
    )
    pipeline_parallel_size: Parallel | None = Field(
        default=None, description="groups of GPUs that share the layers out; default: 1, more across nodes"
    )
    data_parallel_size: Parallel | None = Field(
        default=None, description="copies of the attention layers in one replica; default: 1"
    )
    expert_parallel: bool | None = Field(
        default=None, description="whole experts on each GPU, not a part of every expert; default: false"
    )
    decode_context_parallel_size: Parallel | None = Field(
        default=None, description="tensor-parallel ranks over which vLLM spreads the tokens of one cache; default: 1"
    )
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = Field(
        default=None, description="share of GPU memory the engine may take [fraction]"
    )
    kv_cache_memory_bytes: Annotated[int, Field(ge=1, le=1 << 50)] | None = Field(
        default=None, description="the cache pool of one GPU, given instead of derived [bytes]"
    )
    max_num_batched_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = Field(
        default=None, description="most tokens of one step; default: the engine's own for the GPU [tokens]"
    )
    max_num_seqs: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None,
        description="most requests of one step; default: the engine's own for the GPU, or fewer where arrivals need "
        "fewer GPUs within tpot_s so",
    )
    block_size: BlockSize | None = Field(
        default=None, description="tokens of one cache block; default: the engine's own for the model [tokens]"
    )
    max_loras: Annotated[int, Field(ge=0, le=1024)] = Field(
        default=0, description="LoRA adapters in one batch, whose buffers take memory; 0: none"
    )
    max_lora_rank: LoraRank = Field(default=16, description="highest rank of an adapter")
    num_speculative_tokens: Annotated[int, Field(ge=0, le=16)] = Field(
        default=0, description="tokens drafted per step; 0: none"
    )
    speculative_method: SpeculativeMethod | None = Field(
        default=None, description="who drafts; default: mtp where the model has prediction modules, else eagle3"
    )
    speculative_acceptance_fraction: Share | None = Field(
        default=None, description="chance that a drafted token is accepted; stated with num_speculative_tokens"
    )
    prefix_cache_hit_fraction: Share = Field(default=0.0, description="share of input tokens already cached")
    length_distribution: LengthDistribution = Field(
        default="uniform", description="how prompt and completion lengths spread around their means"
    )
    length_variation_fraction: Annotated[float, Field(ge=0, le=5, allow_inf_nan=False)] = Field(
        default=0.1, description="uniform: half width over mean, at most 1; lognormal: standard deviation over mean"
    )
    burstiness: Annotated[float, Field(ge=0.05, le=1000, allow_inf_nan=False)] = Field(
        default=1.0, description="of arrivals at a rate: 1 is Poisson, below 1 bursts, above 1 is more even"
    )
    catalog_revision: Annotated[int, Field(ge=0, le=1 << 62)] | None = Field(
        default=None, description="answer only from this catalog revision"
    )
    format: Format = Field(default="json", description="how the answer is written")
    field: Annotated[str, StringConstraints(max_length=100, pattern=r"^[a-z0-9_.]+$")] | None = Field(
        default=None, description="one number of the answer as plain text, such as gpus or kv_cache.tokens"
    )

    def limits(self) -> Limits:
        """Return the latency limits."""
        return Limits(ttft_s=self.ttft_s, tpot_s=self.tpot_s, percentile=self.percentile)

    def layout_wish(self) -> StatedLayout:
        """Return the parts of the layout that were fixed."""
        return StatedLayout(
            tensor_parallel_size=self.tensor_parallel_size,
            pipeline_parallel_size=self.pipeline_parallel_size,
            data_parallel_size=self.data_parallel_size,
            expert_parallel=self.expert_parallel,
            decode_context_parallel_size=self.decode_context_parallel_size,
        )

    def settings_wish(self) -> StatedSettings:
        """Return the engine settings that were stated."""
        return StatedSettings(
            weight_format=self.weight_format,
            kv_cache_dtype=self.kv_cache_dtype,
            gpu_memory_utilization=self.gpu_memory_utilization,
            kv_cache_memory_bytes=self.kv_cache_memory_bytes,
            max_model_len=self.max_model_len,
            max_num_batched_tokens=self.max_num_batched_tokens,
            max_num_seqs=self.max_num_seqs,
            block_size=self.block_size,
            num_speculative_tokens=self.num_speculative_tokens,
            speculative_method=self.speculative_method,
            max_loras=self.max_loras,
            max_lora_rank=self.max_lora_rank,
        )

    def load(self, input_tokens: int, output_tokens: int) -> Load:
        """Return the load."""
        return Load(
            concurrent_requests=self.concurrent_requests,
            request_rate_per_s=self.request_rate_per_s,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            request_duration_s=self.request_duration_s,
            prefix_cache_hit_fraction=self.prefix_cache_hit_fraction,
            length_distribution=self.length_distribution,
            length_variation_fraction=self.length_variation_fraction,
            burstiness=self.burstiness,
            speculative_acceptance_fraction=self.speculative_acceptance_fraction or 0.0,
        )

    @model_validator(mode="after")
    def _one_load(self) -> Self:
        if self.concurrent_requests is not None and self.request_rate_per_s is not None:
            raise ValueError("concurrent_requests and request_rate_per_s were both stated; accepted: one of them")
        if (self.num_speculative_tokens > 0) != (self.speculative_acceptance_fraction is not None):
            raise ValueError(
                "num_speculative_tokens and speculative_acceptance_fraction go together; accepted: both, or neither"
            )
        if self.speculative_method is not None and not self.num_speculative_tokens:
            raise ValueError("speculative_method goes with num_speculative_tokens; accepted: both, or neither")
        if self.request_duration_s is not None and self.request_rate_per_s is None:
            raise ValueError("request_duration_s goes with request_rate_per_s; accepted: both, or neither")
        if self.engine != "vllm" and (self.decode_context_parallel_size or 1) > 1:
            raise ValueError(f"decode_context_parallel_size has no rule for {self.engine}; accepted: 1, or engine=vllm")
        if self.length_distribution == "uniform" and self.length_variation_fraction > 1:
            raise ValueError("length_variation_fraction of a uniform distribution is at most 1; accepted: 0 to 1")
        return self


class Pasted(BaseModel):
    """A model that is not in the catalog, in POST bodies only."""

    pasted_config: dict[str, Any] | None = Field(
        default=None, alias="model_config", description="a Hugging Face config.json, instead of model"
    )
    weight_bytes: Annotated[int, Field(ge=1, le=1 << 50)] | None = Field(
        default=None, description="bytes of all weights, where the config cannot tell [bytes]"
    )
    num_parameters: Annotated[int, Field(ge=1, le=1 << 50)] | None = Field(
        default=None, description="parameters, where the config cannot tell"
    )


class _Loaded(Question):
    """A question about a load."""

    input_tokens: Tokens = Field(description="mean prompt length [tokens]")
    output_tokens: Tokens = Field(description="mean completion length [tokens]")
    spare_replicas: Annotated[int, Field(ge=0, le=1000)] = Field(default=0, description="replicas on top (N+1: 1)")
    headroom_fraction: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = Field(
        default=0.0, description="load kept free on top of the asked one [fraction]"
    )

    def headroom(self) -> Headroom:
        """Return what is kept free."""
        return Headroom(spare_replicas=self.spare_replicas, headroom_fraction=self.headroom_fraction)

    @model_validator(mode="after")
    def _some_load(self) -> Self:
        if self.concurrent_requests is None and self.request_rate_per_s is None:
            raise ValueError("no load was stated; accepted: concurrent_requests, or request_rate_per_s")
        if self.request_rate_per_s is None and self.burstiness != 1.0:
            raise ValueError("burstiness is of arrivals at request_rate_per_s; accepted: 1 without a rate")
        return self


class SizeQuery(_Loaded):
    """This model, this load, this GPU type: how many?"""

    gpu: Text = Field(description="GPU id or alias, such as h100")
    disaggregated: bool = Field(
        default=False, description="prefill and decode on GPUs of their own; needs request_rate_per_s"
    )


class CapacityQuery(Question):
    """This model on these GPUs: how much load?"""

    gpu: Text = Field(description="GPU id or alias, such as h100")
    gpu_count: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="GPUs at hand; default: one replica of the layout, or 1"
    )
    input_tokens: Tokens | None = Field(default=None, description="mean prompt length [tokens]")
    output_tokens: Tokens | None = Field(default=None, description="mean completion length [tokens]")


class RecommendQuery(_Loaded):
    """This model, this load: which GPU, layout and precision?"""

    gpus: Texts | None = Field(default=None, description="consider only these GPUs")
    exclude_gpus: Texts | None = Field(default=None, description="leave these GPUs out")
    providers: Texts | None = Field(default=None, description="consider only offers of these providers")
    regions: Texts | None = Field(default=None, description="consider only offers in these regions")
    max_gpus: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="leave out what needs more GPUs"
    )
    max_usd_per_hour: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None = Field(
        default=None, description="leave out what costs more [USD per hour]"
    )
    weight_formats: Formats | None = Field(default=None, description="default: the formats the model is published in")
    kv_cache_dtypes: CacheDtypes | None = Field(default=None, description="default: kv_cache_dtype")
    objective: Objective = Field(
        default="cost", description="what comes first: the lowest price, the fewest GPUs, or the lowest latency"
    )
    limit: Annotated[int, Field(ge=1, le=1000)] = Field(default=10, description="options to return at most")


class SizeBody(SizeQuery, Pasted):
    """`SizeQuery`, or the same with a pasted config."""


class CapacityBody(CapacityQuery, Pasted):
    """`CapacityQuery`, or the same with a pasted config."""


class RecommendBody(RecommendQuery, Pasted):
    """`RecommendQuery`, or the same with a pasted config."""
