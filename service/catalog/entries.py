"""One catalog entry of each kind: validated on the way in, and the shape it is shown in."""

import math
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from service.engine.inputs import KvCacheDtype, WeightFormat

CatalogId = Annotated[str, StringConstraints(max_length=128, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
HubId = Annotated[
    str, StringConstraints(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$")
]
Url = Annotated[str, StringConstraints(max_length=2048, pattern=r"^https?://[^\s\x00-\x1f]+$")]
Bytes = Annotated[int, Field(gt=0, le=1 << 62)]
Count = Annotated[int, Field(gt=0, le=100_000)]
MAX_CONFIG_DEPTH = 32  # published configs nest below 10 levels


def _storable(value: Any, depth: int = 0) -> Any:
    if depth > MAX_CONFIG_DEPTH:
        raise ValueError(f"nested too deep; accepted: at most {MAX_CONFIG_DEPTH} levels")
    if isinstance(value, dict):
        return {_storable(key): _storable(it, depth + 1) for key, it in value.items()}
    if isinstance(value, list):
        return [_storable(it, depth + 1) for it in value]
    # Neither JSON nor PostgreSQL has them; this is how transformers writes them.
    if isinstance(value, float) and not math.isfinite(value):
        return {"__float__": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, str) and ("\0" in value or any("\ud800" <= it <= "\udfff" for it in value)):
        raise ValueError("a text holds a NUL or half a surrogate pair; accepted: Unicode text")
    return value


# A config.json as it is published, in what every database and every client can hold.
PublishedConfig = Annotated[dict[str, Any], AfterValidator(_storable)]


class Entry(BaseModel):
    """Reject unknown fields, so that a misspelt one is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(Entry):
    """Where a figure is published, and when that was looked at."""

    url: Url
    checked_on: date


class Figure(Entry):
    """One number, as it is stored and as its source prints it."""

    value: Annotated[float | int, Field(gt=0, le=1 << 62)]
    printed_as: str | None = Field(default=None, max_length=300)
    source: Source


class Checkpoint(Entry):
    """One published weight format of a model."""

    weight_format: WeightFormat
    hf_id: HubId
    is_default: bool = False
    quantization_config: PublishedConfig | None = None
    kv_cache_dtype: KvCacheDtype | None = None
    weight_bytes: Bytes | None = None
    source: Source


class ModelEntry(Entry):
    """A model: its published config, and the weight formats it comes in."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    id: CatalogId
    name: Name
    hf_id: HubId | None = None
    aliases: tuple[Name, ...] = ()
    publisher: Name | None = None
    config: PublishedConfig
    num_parameters: Bytes | None = None
    checkpoints: Annotated[tuple[Checkpoint, ...], Field(min_length=1, max_length=64)]
    source: Source

    @model_validator(mode="after")
    def _one_default(self) -> "ModelEntry":
        if sum(it.is_default for it in self.checkpoints) != 1:
            raise ValueError("exactly one checkpoint is the default (is_default: true)")
        keys = [(it.weight_format, it.hf_id) for it in self.checkpoints]
        if len(set(keys)) != len(keys):
            raise ValueError("a checkpoint is listed twice")
        return self


FIGURES = frozenset(
    {
        "memory_bytes",
        "usable_memory_bytes",
        "marketed_memory_bytes",
        "memory_bandwidth_bytes_per_s",
        "scale_up_bytes_per_s",
        "scale_out_bytes_per_s",
        "power_watts",
        "peak_fp32_flop_per_s",
        "peak_bf16_flop_per_s",
        "peak_fp16_flop_per_s",
        "peak_fp8_flop_per_s",
        "peak_int8_op_per_s",
        "peak_int4_op_per_s",
        "peak_fp4_flop_per_s",
    }
)
NEEDED_FIGURES = frozenset({"memory_bytes", "memory_bandwidth_bytes_per_s"})


class GpuEntry(Entry):
    """A GPU type."""

    id: CatalogId
    name: Name
    vendor: Literal["nvidia", "amd", "intel", "google", "aws", "other"]
    architecture: Annotated[str, StringConstraints(max_length=32, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    compute_capability: Annotated[str, StringConstraints(pattern=r"^\d{1,2}\.\d$")] | None = None
    aliases: tuple[Name, ...] = ()
    gpus_per_node: Annotated[int, Field(gt=0, le=1024)]
    scale_up_domain_gpus: Annotated[int, Field(gt=0, le=10_000)]
    scale_up_kind: Annotated[str, StringConstraints(max_length=32)]
    figures: dict[str, Figure]

    @field_validator("figures")
    @classmethod
    def _known_figures(cls, figures: dict[str, Figure]) -> dict[str, Figure]:
        if unknown := set(figures) - FIGURES:
            raise ValueError(f"unknown figures {sorted(unknown)}; accepted: {sorted(FIGURES)}")
        if missing := NEEDED_FIGURES - set(figures):
            raise ValueError(f"figures lack {sorted(missing)}")
        return figures


class OfferEntry(Entry):
    """What a provider asks for an instance type, on a date."""

    id: CatalogId
    provider: Annotated[str, StringConstraints(max_length=64, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    instance_type: Name
    region: Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    gpu: CatalogId
    gpu_count: Count
    usd_per_hour: Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]
    purchase: Annotated[str, StringConstraints(max_length=32, pattern=r"^[a-z0-9-]+$")] = "on-demand"
    as_of: date
    source: Source
