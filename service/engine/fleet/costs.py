"""What an answer costs at published list prices."""

from collections.abc import Iterable
from dataclasses import dataclass

from service.engine.arithmetic import ceil_div
from service.engine.fleet.questions import Offer
from service.engine.fleet.results import Cost
from service.engine.memory.plan import MemoryPlan

SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """GPUs to rent: so many replicas of so many GPUs each."""

    gpu: str
    replicas: int
    gpus_per_replica: int
    gpus_per_node: int


def fleet_of(plan: MemoryPlan, replicas: int) -> Fleet:
    """Return the GPUs of so many replicas of a plan."""
    return Fleet(
        gpu=plan.gpu.id,
        replicas=replicas,
        gpus_per_replica=plan.layout.gpus_per_replica,
        gpus_per_node=plan.gpu.gpus_per_node,
    )


def instances_needed(fleet: Fleet, offer: Offer) -> int:
    """Return how many instances of the offer hold the fleet.

    A replica no larger than an instance stays inside one; a larger one fills whole instances,
    which must then be whole servers, because slices of a server do not share its fabric.

        instances = ceil(replicas / floor(offer_gpus / replica_gpus))      replica fits
        instances = replicas x ceil(replica_gpus / offer_gpus)             it does not

    Returns:
        The count, or 0 when the offer cannot hold the fleet. [instances]
    """
    if offer.gpu_count >= fleet.gpus_per_replica:
        return ceil_div(fleet.replicas, offer.gpu_count // fleet.gpus_per_replica)
    if offer.gpu_count >= fleet.gpus_per_node:
        return fleet.replicas * ceil_div(fleet.gpus_per_replica, offer.gpu_count)
    return 0


def cheapest(fleet: Fleet, offers: Iterable[Offer]) -> Cost | None:
    """Return the cheapest published way to rent the fleet; None when no offer holds it.

    Ties go to the offer id, so that the same catalog gives the same answer.
    """
    priced = [
        (instances_needed(fleet, offer) * offer.usd_per_hour, offer.id, offer)
        for offer in offers
        if offer.gpu == fleet.gpu and instances_needed(fleet, offer)
    ]
    if not priced:
        return None
    usd_per_hour, _, offer = min(priced)
    return Cost(
        usd_per_hour=usd_per_hour,
        offer=offer.id,
        provider=offer.provider,
        instance_type=offer.instance_type,
        instances=instances_needed(fleet, offer),
        as_of=offer.as_of,
    )


def usd_per_million_tokens(usd_per_hour: float, tokens_per_s: float) -> float:
    """Return the price of a million tokens at a steady rate.

    usd_per_million = usd_per_hour x 1e6 / (tokens_per_s x 3600)
    """
    return usd_per_hour * 1_000_000 / (tokens_per_s * SECONDS_PER_HOUR)
