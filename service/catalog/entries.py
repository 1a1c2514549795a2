"""One catalog entry of each kind: validated on the way in, and the shape it is shown in."""

import math
import re
from datetime import date
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
)

from service.catalog.figures import check_figures
from service.engine.inputs import DeclaredCacheDtype, Tier, WeightFormat

MAX_NAME = 200
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
LETTERS_OF_PURCHASES: Final = re.compile(r"[a-z0-9-]+")
PURCHASES: Final = ("on-demand", "reserved", "spot")  # that questions name; rows written before may have others


def _no_stand_in(value: Any) -> Any:
    """Refuse what Pydantic would take for a number."""
    if isinstance(value, bool | str | bytes):
        raise ValueError("not a number; accepted: a number, neither in quotes nor true or false")  # noqa: TRY004
    return value


def _no_time_stamp(value: Any) -> Any:
    """Refuse what Pydantic would take for seconds since 1970."""
    if isinstance(value, bool | int | float) or (isinstance(value, str) and not DAY.match(value)):
        raise ValueError("not a date; accepted: a date such as 2026-11-01")
    return value


def _no_other_letters(value: Any) -> Any:
    """Refuse `On-Demand` by what purchases there are, not by the letters of their names."""
    if isinstance(value, str) and not LETTERS_OF_PURCHASES.fullmatch(value):
        raise ValueError(f"no way to buy GPUs; accepted: {', '.join(PURCHASES)}")
    return value


def _short_in_lower_case(value: str) -> str:
    """Refuse a name that grows beyond its column where it is kept in lower case."""
    if len(value.lower()) > MAX_NAME:
        raise ValueError(f"too long; accepted: at most {MAX_NAME} characters, in lower case too")
    return value


CatalogId = Annotated[str, StringConstraints(max_length=128, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
Words = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$")]
Name = Annotated[Words, StringConstraints(min_length=1, max_length=MAX_NAME), AfterValidator(_short_in_lower_case)]
HubId = Annotated[
    str, StringConstraints(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$")
]
Url = Annotated[str, StringConstraints(max_length=2048, pattern=r"^https?://[^\s\x00-\x1f]+$")]
Number = BeforeValidator(_no_stand_in)
Day = Annotated[date, BeforeValidator(_no_time_stamp)]
Bytes = Annotated[int, Field(gt=0, le=1 << 62), Number]
Count = Annotated[int, Field(gt=0, le=100_000), Number]
Aliases = Annotated[tuple[Name, ...], Field(max_length=100)]
MAX_CONFIG_DEPTH = 32  # published configs nest below 10 levels


def _storable(value: Any, depth: int = 0) -> Any:
    if depth > MAX_CONFIG_DEPTH:
        raise ValueError(f"nested too deep; accepted: at most {MAX_CONFIG_DEPTH} levels")
    if isinstance(value, dict):
        return {_storable(key): _storable(part, depth + 1) for key, part in value.items()}
    if isinstance(value, list):
        return [_storable(each, depth + 1) for each in value]
    # Neither JSON nor PostgreSQL has them; this is how transformers writes them.
    if isinstance(value, float) and not math.isfinite(value):
        return {"__float__": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, str) and not _is_text(value):
        raise ValueError("a text holds a NUL or half a surrogate pair; accepted: Unicode text")
    return value


def _is_text(value: str) -> bool:
    return "\0" not in value and (value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value))


# A config.json as it is published, in what every database and every client can hold.
PublishedConfig = Annotated[dict[str, Any], AfterValidator(_storable)]


class Entry(BaseModel):
    """Reject unknown fields, so that a misspelt one is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)


class Source(Entry):
    """Where a figure is published, and when that was looked at."""

    url: Url
    checked_on: Day


def _plain_limits(shape: dict[str, Any]) -> None:
    """Write limits of a union as JSON schema names them."""
    for own, name in (("gt", "exclusiveMinimum"), ("le", "maximum")):
        if own in shape:
            shape[name] = shape.pop(own)


class Figure(Entry):
    """One number, as it is stored and as its source prints it."""

    value: Annotated[float | int, Field(gt=0, le=1 << 62, json_schema_extra=_plain_limits), Number]
    printed_as: Words | None = Field(default=None, max_length=300)
    source: Source


class Checkpoint(Entry):
    """One published weight format of a model."""

    weight_format: WeightFormat
    hf_id: HubId
    is_default: bool = False
    quantization_config: PublishedConfig | None = None
    config: PublishedConfig | None = None  # what its own config.json states otherwise than the model's
    kv_cache_dtype: DeclaredCacheDtype | None = None
    weight_bytes: Bytes | None = None
    source: Source


class ModelEntry(Entry):
    """A model: its published config, and the weight formats it comes in."""

    model_config = ConfigDict(protected_namespaces=())

    id: CatalogId
    name: Name
    hf_id: HubId | None = None
    aliases: Aliases = ()
    publisher: Name | None = None
    config: PublishedConfig
    num_parameters: Bytes | None = None
    checkpoints: Annotated[tuple[Checkpoint, ...], Field(min_length=1, max_length=64)]
    source: Source

    @field_validator("checkpoints")
    @classmethod
    def _one_default(cls, checkpoints: tuple[Checkpoint, ...]) -> tuple[Checkpoint, ...]:
        defaults = sum(each.is_default for each in checkpoints)
        if defaults != 1:
            raise ValueError(f"{defaults} checkpoints are the default; accepted: is_default: true of exactly one")
        keys = [(checkpoint.weight_format, checkpoint.hf_id) for checkpoint in checkpoints]
        if len(set(keys)) != len(keys):
            raise ValueError("a checkpoint is listed twice; accepted: each weight_format and hf_id once")
        return checkpoints


class GpuEntry(Entry):
    """A GPU type."""

    id: CatalogId
    name: Name
    vendor: Literal["nvidia", "amd", "intel", "google", "aws", "other"]
    architecture: Annotated[str, StringConstraints(max_length=32, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    compute_capability: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,2}\.[0-9]$")] | None = None
    aliases: Aliases = ()
    gpus_per_node: Annotated[int, Field(gt=0, le=1024), Number]
    scale_up_domain_gpus: Annotated[int, Field(gt=0, le=10_000), Number]
    scale_up_kind: Annotated[Words, StringConstraints(max_length=32)]
    measured_as: Annotated[str, StringConstraints(max_length=32, pattern=r"^[a-z0-9_]+$")] | None = Field(
        default=None, description="what aiconfigurator-core calls the system whose measured kernels it has"
    )
    figures: dict[str, Figure]

    @field_validator("figures")
    @classmethod
    def _sensible(cls, figures: dict[str, Figure]) -> dict[str, Figure]:
        check_figures({name: figure.value for name, figure in figures.items()})
        return figures


class OfferEntry(Entry):
    """What a provider asks for an instance type, on a date."""

    id: CatalogId
    provider: Annotated[str, StringConstraints(max_length=64, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    instance_type: Annotated[Words, StringConstraints(min_length=1, max_length=128)]
    region: Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    gpu: CatalogId
    gpu_count: Count
    usd_per_hour: Annotated[float, Field(ge=1e-4, le=1e6, allow_inf_nan=False), Number]
    purchase: Annotated[
        str, StringConstraints(max_length=32, pattern=r"^[a-z0-9-]+$"), BeforeValidator(_no_other_letters)
    ] = Field(
        default="on-demand", description="on-demand; reserved, for so many months; or spot, which may be taken away"
    )
    tier: Tier = Field(default="secure", description="secure: the provider's own servers; community: anybody's")
    commitment_months: Annotated[int, Field(ge=1, le=120), Number] | None = Field(
        default=None, description="for how long a reserved price binds [months]"
    )
    as_of: Day
    source: Source
