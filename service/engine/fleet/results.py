"""What deployments rest on: assumptions and prices."""

from dataclasses import dataclass
from typing import Literal

from service.engine.inputs import Tier

# "read as": the request, understood other than literally.
Origin = Literal["request", "read as", "catalog", "default", "measured", "chosen"]

BindingConstraint = Literal["weights", "kv_cache", "ttft", "tpot", "throughput", "max_num_seqs", "layout"]
PriceOrigin = Literal["catalog", "request"]
Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One value the answer rests on, where it came from, and who says so."""

    name: str
    value: Scalar
    origin: Origin
    source: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrices:
    """What a million tokens cost at one rate of requests: the whole price over prompts, over completions, over both."""

    requests_per_s: float  # of the whole deployment
    usd_per_million_input_tokens: float | None  # None: requests have no such tokens
    usd_per_million_output_tokens: float | None
    usd_per_million_tokens: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the whole deployment costs: at the cheapest offer in question, or at the caller's own price."""

    usd_per_hour: float
    usd_per_month: float  # 730 hours
    usd_per_gpu_hour: float  # of a GPU paid for
    gpus: int  # used
    gpus_paid: int  # all of the instances, idle ones included
    origin: PriceOrigin
    offer: str | None  # this and what follows: None at the caller's own price
    provider: str | None
    instance_type: str | None
    gpus_per_instance: int | None
    instances: int | None
    region: str | None
    tier: Tier | None
    purchase: str | None  # on-demand, reserved or spot
    commitment_months: int | None  # of a reserved price
    discount_fraction: float  # taken off the list price
    as_of: str | None  # ISO date of the price
    is_stale: bool  # older than 60 days
    source: str | None  # where the price is published
    at_load: TokenPrices | None  # None: nobody tells time
    at_saturation: TokenPrices | None  # at the highest rate within limits
