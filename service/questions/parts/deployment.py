"""How the model is deployed: precision, engine, layout and engine settings; None leaves the choice to us."""

from typing import Annotated

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from service.catalog.engine_flags import flags_of
from service.catalog.engine_rules import rules_for
from service.engine.engines.registry import DEFAULT_ENGINE, ENGINES, engine_named
from service.engine.engines.rules import EngineRules, as_scheduled
from service.engine.engines.versions import says_more
from service.engine.errors import InvalidQuestionError
from service.engine.facts import ModelFacts
from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import EngineName, KvCacheDtype, SpeculativeMethod, StatedLayout, WeightFormat
from service.engine.time.eager import eager
from service.engine.time.steps import StepTimers
from service.questions.parts.part import Part, contradiction
from service.questions.parts.switches import WithSwitches
from service.questions.sources import Sources
from service.questions.values import NUMBER, WHOLE, BlockSize, Bytes, LoraRank, Parallel, Share, Tokens


class Precision(Part):
    """What weights and caches are stored in."""

    weight_format: WeightFormat | None = Field(
        default=None, description="default: the model's own checkpoint", examples=["fp8"]
    )
    kv_cache_dtype: KvCacheDtype | None = Field(default=None, description="default: auto", examples=["fp8"])


class OnEngine(Part):
    """Whose rules apply."""

    engine: EngineName = Field(
        default=DEFAULT_ENGINE, description="serving engine whose rules apply", examples=["sglang"]
    )
    engine_version: Annotated[str, StringConstraints(max_length=40)] | None = Field(
        default=None, description="engine version, such as 0.33.0; default: the newest known", examples=["0.33.0"]
    )

    async_scheduling: bool | None = Field(
        default=None,
        description="vLLM: a step is planned while the one before runs; default: the version's own, true since 0.14",
        examples=[False],
    )

    use_measurements: bool = Field(
        default=True,
        description="what callers stored of this model, GPU and engine corrects the answer; false: ignored",
        examples=[False],
    )

    @field_validator("engine_version")
    @classmethod
    def _one_version(cls, stated: str | None) -> str | None:
        if stated is not None and says_more(stated):
            raise ValueError("no version; accepted: one alone, such as 0.33.0, 0.11.0rc2 or 0.10.2+cu128")
        return stated

    def rules_of(self, sources: Sources, model: ModelFacts) -> EngineRules:
        """Return the rules of the engine's version, with what callers measured of a model.

        Raises:
            EngineError: no rules are known for the version.
        """
        return sources.as_measured(self.rules(), model.id) if self.use_measurements else self.rules()

    def rules(self) -> EngineRules:
        """Return the rules of the engine's version.

        Raises:
            EngineError: no rules are known for the version, or it cannot be told how to schedule.
        """
        rules = rules_for(self.engine, self.engine_version)
        if self.async_scheduling is None:
            return rules
        if "--async-scheduling" not in self.flags():
            version = f" {self.engine_version}" if self.engine_version else ""
            raise InvalidQuestionError(
                f"{self.engine}{version} has no flag for async_scheduling",
                field="async_scheduling",
                accepted="no async_scheduling, or engine=vllm of 0.10.2 or newer",
            )
        return as_scheduled(rules, self.async_scheduling)

    def flags(self) -> frozenset[str]:
        """Return the flags that the engine's version has."""
        return flags_of(self.engine, self.engine_version)


class InLayout(OnEngine):
    """How a replica is spread over GPUs."""

    tensor_parallel_size: Parallel | None = Field(
        default=None,
        description="GPUs that share every layer; default: chosen, as assumptions says [count]",
        examples=[2],
    )
    pipeline_parallel_size: Parallel | None = Field(
        default=None,
        description="groups of GPUs that share the layers out; default: chosen, as assumptions says [count]",
        examples=[2],
    )
    data_parallel_size: Parallel | None = Field(
        default=None,
        description="copies of the attention layers in one replica; default: chosen, 1 of a dense model [count]",
        examples=[8],
    )
    expert_parallel: bool | None = Field(
        default=None,
        description="whole experts on each GPU, not a part of every expert; default: chosen, false of a dense model",
        examples=[True],
    )
    decode_context_parallel_size: Parallel | None = Field(
        default=None,
        description="tensor-parallel ranks that vLLM spreads the tokens of a cache over; default: as few as do [count]",
        examples=[8],
    )

    @field_validator("decode_context_parallel_size")
    @classmethod
    def _spread_by_the_engine(cls, value: int | None, info: ValidationInfo) -> int | None:
        name = info.data.get("engine", DEFAULT_ENGINE)
        if not engine_named(name).spreads_caches and (value or 1) > 1:
            sentence = f"decode_context_parallel_size has no rule for {name}"
            able = " or ".join(engine.name for engine in ENGINES.values() if engine.spreads_caches)
            raise contradiction("decode_context_parallel_size", sentence, f"1, or engine={able}")
        return value

    def layout_wish(self) -> StatedLayout:
        """Return the parts of the layout that were fixed."""
        return StatedLayout(
            tensor_parallel_size=self.tensor_parallel_size,
            pipeline_parallel_size=self.pipeline_parallel_size,
            data_parallel_size=self.data_parallel_size,
            expert_parallel=self.expert_parallel,
            decode_context_parallel_size=self.decode_context_parallel_size,
        )


class WithSettings(WithSwitches, Precision):
    """The engine's own settings, by the names it gives them."""

    max_model_len: Tokens | None = Field(
        default=None, description="longest context the engine serves [tokens]", examples=[32_768]
    )
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False), NUMBER] | None = Field(
        default=None, description="share of GPU memory the engine may take [fraction]", examples=[0.9]
    )
    kv_cache_memory_bytes: Bytes | None = Field(
        default=None,
        description="the cache pool of one GPU, given instead of derived [bytes]",
        examples=[20_000_000_000],
    )
    max_num_batched_tokens: Annotated[int, Field(ge=1, le=10_000_000), WHOLE] | None = Field(
        default=None,
        description="most tokens of one step; default: the engine's own for the GPU [tokens]",
        examples=[8192],
    )
    max_num_seqs: Annotated[int, Field(ge=1, le=1_000_000), WHOLE] | None = Field(
        default=None,
        description="most requests of one step; default: the engine's own for the GPU, or fewer where arrivals need "
        "fewer GPUs within tpot_s so [count]",
        examples=[256],
    )
    block_size: BlockSize | None = Field(
        default=None,
        description="tokens of one cache block; default: the engine's own for the model [tokens]",
        examples=[16],
    )
    max_loras: Annotated[int, Field(ge=0, le=1024), WHOLE] = Field(
        default=0, description="LoRA adapters in one batch, whose buffers take memory; 0: none [count]", examples=[4]
    )
    max_lora_rank: LoraRank = Field(default=16, description="highest rank of an adapter [count]", examples=[32])
    num_speculative_tokens: Annotated[int, Field(ge=0, le=16), WHOLE] = Field(
        default=0, description="tokens drafted per step; 0: none [tokens]", examples=[3]
    )
    speculative_method: SpeculativeMethod | None = Field(
        default=None,
        description="who drafts; default: mtp where the model has prediction modules, else eagle3",
        examples=["eagle3"],
    )
    speculative_acceptance_fraction: Share | None = Field(
        default=None,
        validate_default=True,
        description="chance that a drafted token is accepted; stated with num_speculative_tokens [fraction]",
        examples=[0.6],
    )

    @field_validator("max_lora_rank")
    @classmethod
    def _rank_of_adapters(cls, value: int, info: ValidationInfo) -> int:
        if value != cls.model_fields["max_lora_rank"].default and info.data.get("max_loras") == 0:
            raise contradiction("max_lora_rank", "max_lora_rank goes with max_loras", "both, or neither")
        return value

    @field_validator("speculative_method")
    @classmethod
    def _method_of_drafts(cls, value: SpeculativeMethod | None, info: ValidationInfo) -> SpeculativeMethod | None:
        if value is not None and info.data.get("num_speculative_tokens") == 0:
            sentence = "speculative_method goes with num_speculative_tokens"
            raise contradiction("speculative_method", sentence, "both, or neither")
        return value

    @field_validator("speculative_acceptance_fraction")
    @classmethod
    def _acceptance_of_drafts(cls, value: float | None, info: ValidationInfo) -> float | None:
        drafted = info.data.get("num_speculative_tokens")
        if drafted is not None and (drafted > 0) != (value is not None):
            sentence = "num_speculative_tokens and speculative_acceptance_fraction go together"
            raise contradiction("num_speculative_tokens", sentence, "both, or neither")
        return value

    def timed(self, timers: StepTimers | None) -> StepTimers | None:
        """Return times as they are known of an engine with these settings."""
        return eager(timers) if self.enforce_eager else timers

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
            quantization=self.quantization,
            enforce_eager=self.enforce_eager,
            enable_prefix_caching=self.enable_prefix_caching,
            language_model_only=self.language_model_only,
            swa_full_tokens_ratio=self.swa_full_tokens_ratio,
            mamba_cache_dtype=self.mamba_cache_dtype,
            mamba_ssm_cache_dtype=self.mamba_ssm_cache_dtype,
            all2all_backend=self.all2all_backend,
            enable_two_batch_overlap=self.enable_two_batch_overlap,
        )
