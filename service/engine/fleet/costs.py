"""What a fleet costs: the price function that deployments are ranked by, and the cost that an answer shows."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Protocol

from service.engine.arithmetic import ceil_div
from service.engine.fleet.questions import Offer
from service.engine.fleet.results import Cost
from service.engine.inputs import Layout
from service.engine.memory.plan import MemoryPlan

HOURS_PER_MONTH: Final = 730  # as cloud providers count it: 8760 / 12
MOST_KINDS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """GPUs to rent: so many replicas of so many GPUs each."""

    gpu: str
    replicas: int
    gpus_per_replica: int
    gpus_per_node: int
    copies: int = 1  # of the attention in a replica over several servers, none of which divides one evenly

    @property
    def gpus(self) -> int:
        """Return the GPUs used."""
        return self.replicas * self.gpus_per_replica


class WithOffers(Protocol):
    """A question with prices: the offers that count, and those that the caller did not ask for."""

    @property
    def offers(self) -> tuple[Offer, ...]:
        """Return the offers in question."""

    @property
    def left_out_offers(self) -> tuple[Offer, ...]:
        """Return the others."""


def fleet_of(plan: MemoryPlan, replicas: int) -> Fleet:
    """Return the GPUs of so many replicas of a plan."""
    return Fleet(
        gpu=plan.gpu.id,
        replicas=replicas,
        gpus_per_replica=plan.layout.gpus_per_replica,
        gpus_per_node=plan.gpu.gpus_per_node,
        copies=copies_apart(plan.layout, plan.gpu.gpus_per_node),
    )


def copies_apart(layout: Layout, gpus_per_node: int) -> int:
    """Return the copies of the attention that are started server by server, where their GPUs do not fill servers.

    Four copies of three GPUs stand on four servers of four GPUs, with one of each left over; copies of two fill theirs:

    >>> [copies_apart(Layout(pipeline_parallel_size=gpus, data_parallel_size=4), 4) for gpus in (3, 2)]
    [4, 1]
    """
    copies, gpus = layout.data_parallel_size, layout.gpus_per_replica
    if copies == 1 or gpus <= gpus_per_node:
        return 1
    of_one = gpus // copies
    return copies if of_one <= gpus_per_node and gpus_per_node % of_one else 1


def instances_needed(fleet: Fleet, offer: Offer) -> int:
    """Return how many instances of the offer hold the fleet.

    A replica no larger than an instance stays inside one; a larger one fills whole instances,
    which must then be whole servers, because slices of a server do not share its fabric. Copies of the attention
    stay inside one as well.
    GPUs at the caller's own price are counted one by one, but in an instance type that was named: how they stand is
    the caller's affair.

        instances = ceil(replicas / floor(offer_gpus / replica_gpus))      replica fits
        instances = replicas x ceil(replica_gpus / offer_gpus)             it does not
        instances = replicas x ceil(copies / floor(offer_gpus / copy_gpus))    nor do copies fill instances

    DeepSeek-V3 is read on 32 GPUs, "4 nodes", and decoded on 320, "40 nodes" (arXiv:2412.19437, section 3.4):

    >>> node = Offer(
    ...     id="node", provider="own", instance_type="8 x H800", region="", gpu="h800", gpu_count=8, usd_per_hour=16.0,
    ...     as_of="2024-12-27")
    >>> [instances_needed(Fleet(gpu="h800", replicas=1, gpus_per_replica=gpus, gpus_per_node=8), node)
    ...  for gpus in (32, 320)]
    [4, 40]

    Returns:
        The count, or 0 when the offer cannot hold the fleet. [instances]
    """
    if offer.is_callers and not offer.instance_type:
        return fleet.gpus
    if offer.gpu_count >= fleet.gpus_per_replica:
        return ceil_div(fleet.replicas, offer.gpu_count // fleet.gpus_per_replica)
    if offer.gpu_count >= fleet.gpus_per_node and fleet.copies > 1:
        together = offer.gpu_count // (fleet.gpus_per_replica // fleet.copies)
        return fleet.replicas * ceil_div(fleet.copies, together)
    if offer.gpu_count >= fleet.gpus_per_node:
        return fleet.replicas * ceil_div(fleet.gpus_per_replica, offer.gpu_count)
    return 0


def paid_usd(times: int, usd: float) -> float:
    """Return a price so many times, to a millionth: no price list is finer, and a budget of 9.60 holds six of 1.60.

    >>> 6 * 1.6, paid_usd(6, 1.6)
    (9.600000000000001, 9.6)
    """
    return round(times * usd, 6)


def least_paid(fleet: Fleet, offers: Iterable[Offer]) -> tuple[float, int]:
    """Return what the fleet costs at least an hour, and the GPUs paid for it; infinite and 0 when no offer holds it.

    It never falls as replicas are added to the same layout, and never rises as offers are added.
    """
    least = inf, 0
    for offer in offers:
        instances = instances_needed(fleet, offer) if offer.gpu == fleet.gpu else 0
        if instances:
            least = min(least, (paid_usd(instances, offer.usd_per_hour), instances * offer.gpu_count))
    return least


def _cheapest_offer(fleets: Sequence[Fleet], offers: Iterable[Offer]) -> Offer | None:
    """Return the offer that holds all fleets for least; None when none does.

    Ties go to fewer GPUs paid, then to the offer id, so that the same catalog gives the same answer.
    """
    gpus = {fleet.gpu for fleet in fleets}
    holding = [
        offer for offer in offers if gpus == {offer.gpu} and all(instances_needed(each, offer) for each in fleets)
    ]

    def paid(offer: Offer) -> tuple[float, int, str]:
        instances = _instances(fleets, offer)
        return paid_usd(instances, offer.usd_per_hour), instances * offer.gpu_count, offer.id

    return min(holding, key=paid, default=None)


def _instances(fleets: Sequence[Fleet], offer: Offer) -> int:
    """Return how many instances hold all fleets: what one leaves idle of an instance is room for a smaller one."""
    if len(fleets) == 1 or (offer.is_callers and not offer.instance_type):
        return sum(instances_needed(fleet, offer) for fleet in fleets)
    started, idle = 0, Counter[int]()  # instances by their idle GPUs
    for fleet in sorted(fleets, key=lambda each: each.gpus_per_replica, reverse=True):
        size, left = fleet.gpus_per_replica, fleet.replicas
        if size > offer.gpu_count:
            started += instances_needed(fleet, offer)
            continue
        for room in sorted(room for room in idle if room >= size):
            used = min(idle[room], ceil_div(left, room // size))
            idle[room] -= used
            left = max(left - used * (room // size), 0)
        together = offer.gpu_count // size
        started += ceil_div(left, together)
        idle[offer.gpu_count % size] += left // together
        idle[offer.gpu_count - left % together * size] += 1 if left % together else 0
    return started


def cheapest_of_each_size(gpu: str, offers: Iterable[Offer]) -> tuple[Offer, ...]:
    """Return the offers of a GPU that may be the cheapest of any fleet: of instances of one size the cheapest one.

    Ties go to the offer id. How many instances a fleet takes depends on their size alone.
    """
    by_size: dict[tuple[int, bool], Offer] = {}
    for offer in offers:
        if offer.gpu == gpu:
            other = by_size.setdefault((offer.gpu_count, offer.is_callers), offer)
            if (offer.usd_per_hour, offer.id) < (other.usd_per_hour, other.id):
                by_size[offer.gpu_count, offer.is_callers] = offer
    return tuple(by_size.values())


def cheapest(fleet: Fleet, offers: Iterable[Offer]) -> Cost | None:
    """Return the cheapest way to rent the fleet; None when no offer holds it."""
    return cheapest_of((fleet,), offers)


def cheapest_of(fleets: Sequence[Fleet], offers: Iterable[Offer]) -> Cost | None:
    """Return the cheapest way to rent the fleets of a deployment from one offer; None when none holds them all."""
    offer = _cheapest_offer(fleets, offers)
    if offer is None:
        return None
    instances = _instances(fleets, offer)
    total, is_listed = paid_usd(instances, offer.usd_per_hour), not offer.is_callers
    is_named = bool(offer.instance_type)
    return Cost(
        usd_per_hour=total,
        usd_per_month=paid_usd(HOURS_PER_MONTH, total),
        usd_per_gpu_hour=paid_usd(1, offer.usd_per_hour / offer.gpu_count),
        gpus=sum(each.gpus for each in fleets),
        gpus_paid=instances * offer.gpu_count,
        origin="catalog" if is_listed else "request",
        offer=offer.id if is_listed else None,
        provider=offer.provider if is_listed else None,
        instance_type=offer.instance_type if is_named else None,
        gpus_per_instance=offer.gpu_count if is_named else None,
        instances=instances if is_named else None,
        region=offer.region if is_listed else None,
        tier=offer.tier if is_listed else None,
        purchase=offer.purchase if is_listed else None,
        commitment_months=offer.commitment_months,
        discount_fraction=offer.discount_fraction,
        as_of=offer.as_of if is_listed else None,
        is_stale=offer.is_stale,
        source=offer.source if is_listed else None,
        at_load=None,
        at_saturation=None,
    )


def price_notes(cost: Cost | None, fleets: Sequence[Fleet], asked: WithOffers) -> tuple[str, ...]:
    """Return why there is no price, or what a reader of it must know."""
    if cost is None:
        largest = max(fleets, key=lambda fleet: fleet.gpus_per_replica)
        return (why_unpriced(largest, asked.offers, asked.left_out_offers),)
    notes = []
    if cost.is_stale:
        notes.append(f"the price is of {cost.as_of}, more than 60 days ago: ask {cost.provider} again")
    if cost.commitment_months is not None:
        notes.append(f"the price is for a commitment of {cost.commitment_months} months")
    if cost.gpus_paid > cost.gpus:
        notes.append(f"{cost.gpus_paid} GPUs are paid for and {cost.gpus} used: {cost.instance_type} has no fewer")
    return tuple(notes)


def cheaper_apart(cost: Cost | None, fleets: Sequence[Fleet], offers: Iterable[Offer]) -> tuple[str, ...]:
    """Return what fleets cost in instances of several sizes, where one provider has them for less in one region."""
    by_place: dict[tuple[str, str], list[Offer]] = {}
    for offer in offers:
        by_place.setdefault((offer.provider, offer.region), []).append(offer)
    rented = ([cheapest(fleet, listed) for fleet in fleets] for listed in by_place.values())
    priced = [[each for each in costs if each is not None] for costs in rented]
    whole = [costs for costs in priced if len(costs) == len(fleets)]
    least = min(whole, key=lambda costs: sum(each.usd_per_hour for each in costs), default=[])
    total = paid_usd(1, sum(each.usd_per_hour for each in least))
    if cost is None or not least or total >= cost.usd_per_hour:
        return ()
    held = " and ".join(f"{each.instances} x {each.provider} {each.instance_type}" for each in least)
    return (f"in instances of other sizes both pools cost {total:.2f} USD/h: {held}",)


def why_unpriced(fleet: Fleet, offers: Sequence[Offer], left_out: Sequence[Offer]) -> str:
    """Return why no offer in question holds a fleet, and what the caller may state instead."""
    return f"no price: {why_unheld(fleet, offers, left_out)}; usd_per_gpu_hour states your own"


def why_unheld(fleet: Fleet, offers: Sequence[Offer], left_out: Sequence[Offer]) -> str:
    """Return why no offer in question holds a fleet, and which others would.

    Args:
        fleet: what nobody rents out.
        offers: those in question.
        left_out: those that the caller did not ask for.
    """
    sizes = sorted({offer.gpu_count for offer in offers if offer.gpu == fleet.gpu})
    others = [offer for offer in left_out if offer.gpu == fleet.gpu and instances_needed(fleet, offer)]
    if sizes:
        held = ", ".join(map(str, sizes))
        reason = f"a replica takes {fleet.gpus_per_replica} GPUs that share a fabric, and offers of {fleet.gpu} in "
        reason += f"question hold {held}"
    elif others:
        kinds = "instance types, providers, regions, tiers and purchases"
        reason = f"no offer of {fleet.gpu} is within the {kinds} in question"
    else:
        reason = f"the catalog has no offer of {fleet.gpu}"
    return f"{reason}{_instead(others)}"


def _instead(others: Sequence[Offer]) -> str:
    """Return what would have a price."""
    if not others:
        return ""
    kinds = sorted({f"{offer.provider} in {offer.region} ({offer.tier}, {offer.purchase})" for offer in others})
    more = f" and {len(kinds) - MOST_KINDS} more" if len(kinds) > MOST_KINDS else ""
    return f"; others are {', '.join(kinds[:MOST_KINDS])}{more}"
