"""What deployments rest on: assumptions and prices."""

from dataclasses import dataclass
from typing import Literal

Origin = Literal["request", "catalog", "default", "measured", "chosen"]

BindingConstraint = Literal["weights", "kv_cache", "ttft", "tpot", "throughput", "max_num_seqs", "layout"]
Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One value the answer rests on, where it came from, and who says so."""

    name: str
    value: Scalar
    origin: Origin
    source: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cheapest known offer for the answer, in USD per hour."""

    usd_per_hour: float
    offer: str
    provider: str
    instance_type: str
    instances: int
    as_of: str  # ISO date of the price
