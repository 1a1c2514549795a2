"""What the engine is told to do its own way, by the names of its flags; what an engine has no flag for is refused."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, get_args

from pydantic import Field, ValidationInfo, field_validator

from service.catalog.names.formats import stated_format
from service.catalog.names.words import words_of
from service.engine.engines.base import Switch
from service.engine.engines.registry import DEFAULT_ENGINE, ENGINES
from service.engine.inputs import All2AllBackend, EngineName, LoadedFormat, StateDtype
from service.questions.parts.part import Part, contradiction
from service.questions.values import NUMBER

# Engines that can be told each of them, and have a rule for what it changes.
KNOWN_TO: Final[Mapping[str, tuple[EngineName, ...]]] = MappingProxyType(
    {
        switch: tuple(engine.name for engine in ENGINES.values() if switch in engine.switches)
        for switch in get_args(Switch)
    }
)
MOST_READ: Final = 60  # characters of a format's name
# What `--quantization` of an engine may say too, and a checkpoint says of itself: several formats each.
# Source: vLLM 0.33 `layers/quantization/__init__.py` (`QuantizationMethods`).
OF_CHECKPOINTS: Final = (
    "auto-round", "compressed-tensors", "fbgemm_fp8", "gguf", "inc", "modelopt", "modelopt_fp4", "modelopt_mixed",
    "modelopt_mxfp8", "moe_wna16", "petit_nvfp4", "quark", "torchao",
)  # fmt: skip


class WithSwitches(Part):
    """Quantization while loading, CUDA graphs, kept prefixes, towers, sliding windows, states, exchanges."""

    quantization: LoadedFormat | None = Field(
        default=None,
        description="what the engine makes of a checkpoint in 16 bits while it loads; default: nothing",
        examples=["fp8"],
    )
    enforce_eager: bool = Field(
        default=False,
        description="no CUDA graphs, and no memory for them; times are those with them, with a wider expected error",
        examples=[True],
    )
    enable_prefix_caching: bool | None = Field(
        default=None,
        description="caches of shared prefixes are kept; default: the engine's own for the model",
        examples=[False],
    )
    language_model_only: bool = Field(
        default=False, description="text alone is sent, and towers for images and sound are not loaded", examples=[True]
    )
    swa_full_tokens_ratio: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False), NUMBER] | None = Field(
        default=None,
        description="cache slots of sliding windows to those of full attention; default: 0.8 [fraction]",
        examples=[0.5],
    )

    mamba_cache_dtype: StateDtype = Field(
        default="auto",
        description="dtype of the states of recurrent layers, whole; default: the engine's own for the model",
        examples=["float32"],
    )
    mamba_ssm_cache_dtype: StateDtype = Field(
        default="auto",
        description="dtype of the matrices of those states alone; default: the engine's own for the model",
        examples=["bfloat16"],
    )

    all2all_backend: All2AllBackend | None = Field(
        default=None,
        description="through which GPUs send the tokens of whole experts to each other; deepep: SGLang's pools of "
        "DeepSeek-V3 and its like on whole servers of Hopper, GB200 or GB300; default: the engine's own way",
        examples=["deepep"],
    )

    enable_two_batch_overlap: bool = Field(
        default=False,
        description="with all2all_backend: one of two batches computes while the other's tokens are on their way",
        examples=[True],
    )

    @field_validator(*KNOWN_TO)
    @classmethod
    def _known_to_the_engine(cls, value: object, info: ValidationInfo) -> object:
        field, engine = str(info.field_name), info.data.get("engine", DEFAULT_ENGINE)
        if value != cls.model_fields[field].default and engine not in KNOWN_TO[field]:
            engines = " or ".join(KNOWN_TO[field])
            raise contradiction(field, f"{field} has no rule for {engine}", f"no {field}, or engine={engines}")
        return value

    @field_validator("enable_two_batch_overlap")
    @classmethod
    def _of_an_exchange(cls, value: bool, info: ValidationInfo) -> bool:  # noqa: FBT001 - a field
        if value and "all2all_backend" in info.data and info.data["all2all_backend"] is None:
            sentence = "enable_two_batch_overlap goes with all2all_backend"
            raise contradiction("enable_two_batch_overlap", sentence, "both, or neither")
        return value

    @field_validator("quantization", mode="before")
    @classmethod
    def _not_of_a_published_checkpoint(cls, value: object) -> object:
        said = stated_format(words_of(value[:MOST_READ])) if isinstance(value, str) else None
        if isinstance(value, str) and value.strip().lower() in OF_CHECKPOINTS:
            sentence = f"quantization is what the engine makes while it loads, and {value} is said of a checkpoint"
            accepted = "fp8, or nothing: the checkpoint that model names says its own"
            raise contradiction("quantization", sentence, accepted)
        if said is not None and said.weight_format not in (None, *get_args(LoadedFormat)):
            sentence = f"quantization is what the engine makes while it loads, and {said.weight_format} is none of it"
            raise contradiction("quantization", sentence, f"fp8, or weight_format={said.weight_format}")
        return value

    @field_validator("quantization")
    @classmethod
    def _of_that_format(cls, value: LoadedFormat | None, info: ValidationInfo) -> LoadedFormat | None:
        stated = info.data.get("weight_format")
        if value is not None and stated not in (None, value):
            sentence = f"quantization={value} while loading leaves no weights in {stated}"
            raise contradiction("quantization", sentence, f"weight_format={value}, or one of the two")
        return value

    @field_validator("enable_prefix_caching")
    @classmethod
    def _hits_of_kept_prefixes(cls, value: bool | None, info: ValidationInfo) -> bool | None:  # noqa: FBT001 - a field
        if value is False and info.data.get("prefix_cache_hit_fraction"):
            sentence = "prefix_cache_hit_fraction is of prefixes that are kept"
            raise contradiction("enable_prefix_caching", sentence, "true, or a hit fraction of 0")
        return value
