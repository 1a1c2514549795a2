"""What a cache that is kept for its next use saves: on the GPU, in the memory of its host, on a drive.

    read_again       time to compute the tokens of a request anew
    fetch            bytes on one GPU / bytes a second, every GPU fetching its own part at once
    saves            read_again - fetch, for each hit
    break_even_hits  fetch / saves                         storing every request takes as long as fetching one
    worth_keeping    read_again x pool / bytes             a cache that waits longer costs more room than reading anew
    room             requests a second x bytes             for each second between a use and the next

Sized by reuse: how long contexts wait for their next turn, not what a full pool throws out. Rates are those that
nothing exceeds, so that what does not pay by them does not pay.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Final, Literal

from service.engine.arithmetic import USD_DIGITS
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.figures import Figures
from service.engine.fleet.results import Cost
from service.engine.fleet.token_prices import SECONDS_PER_HOUR
from service.engine.inputs import Gpu
from service.engine.time.replica import Replica

THOUSAND: Final = 1_000
# 16 lanes, one direction (PCI-SIG): 3.0 16 GB/s, 4.0 32 GB/s, 5.0 64 GB/s. By generation of the GPU.
LANES_16: Final[Mapping[str, float]] = {
    "volta": 16e9, "turing": 16e9, "ampere": 32e9, "ada": 32e9, "hopper": 64e9, "blackwell": 64e9,
    "blackwell-ultra": 64e9, "cdna3": 64e9, "cdna4": 64e9,
}  # fmt: skip
OLDEST_LANES: Final = 32e9
# Chip to chip, one direction (NVIDIA, Grace Hopper and Grace Blackwell: 900 GB/s both ways).
GRACE: Final = ("GH200", "GB200", "GB300")
CHIP_TO_CHIP_BYTES_PER_S: Final = 450e9
# A drive has 4 lanes of PCIe 4.0 (PCI-SIG); none reads faster.
DRIVE_BYTES_PER_S: Final = 8e9

TierName = Literal["cpu", "nvme"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseTier:
    """Where caches may be kept beside the GPUs."""

    tier: TierName
    bytes_per_s: float
    fetch_s: float
    saves_s: float
    saves_usd_per_thousand_hits: float | None
    break_even_hit_fraction: float | None
    bytes_per_waiting_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """What a request's cache is worth that is used again."""

    request_bytes: int
    read_again_s: float
    usd_per_thousand_reads: float | None
    break_even_bytes_per_s: float
    worth_keeping_s: float
    tiers: tuple[ReuseTier, ...]


def reuse_of(deployment: Deployment, told: Figures, cost: Cost | None) -> Reuse | None:
    """Return what caches of requests of the asked lengths are worth; None where nobody tells time.

    Args:
        deployment: with its times.
        told: its figures under load.
        cost: of the whole deployment; None where it has no price.
    """
    plan, replica = deployment.plan, deployment.replica
    tokens = deployment.load.input_tokens + deployment.load.output_tokens
    if replica is None or not deployment.replicas or not plan.holds_one_request or tokens < 1:
        return None
    again_s = _read_again_s(replica, tokens)
    per_gpu, pool = plan.kv_cache.bytes_per_request_per_gpu, plan.memory.kv_cache_bytes
    if not per_gpu or not again_s:
        return None
    whole = plan.kv_cache.bytes_per_request
    usd_per_s = None if cost is None else cost.usd_per_hour / SECONDS_PER_HOUR / deployment.replicas
    arriving = told.at_load.requests_per_s if told.at_load is not None else None
    places: tuple[tuple[TierName, float], ...] = (("cpu", _host_bytes_per_s(plan.gpu)), ("nvme", DRIVE_BYTES_PER_S))
    return Reuse(
        request_bytes=whole,
        read_again_s=again_s,
        usd_per_thousand_reads=_usd_of_a_thousand(usd_per_s, again_s),
        break_even_bytes_per_s=per_gpu / again_s,
        worth_keeping_s=again_s * pool / per_gpu,
        tiers=tuple(
            _tier(name, rate, per_gpu, again_s, usd_per_s, None if arriving is None else arriving * whole)
            for name, rate in places
        ),
    )


def _tier(
    name: TierName, rate: float, per_gpu: int, again_s: float, usd_per_s: float | None, room: float | None
) -> ReuseTier:
    """Return what one place for caches does, by the bytes it reads a second."""
    fetch_s = per_gpu / rate
    saves_s = again_s - fetch_s
    hits = fetch_s / saves_s if saves_s > 0 else None
    return ReuseTier(
        tier=name,
        bytes_per_s=rate,
        fetch_s=fetch_s,
        saves_s=saves_s,
        saves_usd_per_thousand_hits=_usd_of_a_thousand(usd_per_s, saves_s),
        break_even_hit_fraction=hits if hits is not None and hits <= 1 else None,
        bytes_per_waiting_s=room,
    )


def _usd_of_a_thousand(usd_per_s: float | None, seconds: float) -> float | None:
    """Return what a thousand times so many seconds cost, to as many digits as other prices that rest on times."""
    return None if usd_per_s is None else float(f"{THOUSAND * usd_per_s * seconds:.{USD_DIGITS}g}")


def _read_again_s(replica: Replica, tokens: int) -> float:
    """Return the time in which one stream reads so many tokens alone, in steps of the token budget. [s]."""
    steps, budget = replica.timing.steps, replica.plan.settings.max_num_batched_tokens
    chunks = ceil(tokens / budget)
    return chunks * steps.mixed_s(tokens / chunks, tokens / 2, 0.0, 0.0)


def _host_bytes_per_s(gpu: Gpu) -> float:
    """Return what a GPU reads a second from the memory of its host, at most. [bytes/s]."""
    if any(word in gpu.name for word in GRACE):
        return CHIP_TO_CHIP_BYTES_PER_S
    return LANES_16.get(gpu.architecture, OLDEST_LANES)
