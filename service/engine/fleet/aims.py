"""What makes one deployment better than another.

    gpus      GPUs used, then the price
    cost      the price, then GPUs paid: those of an instance that would stand idle are no saving
    latency   told elsewhere, because replicas do not tell
    budget    what takes more GPUs, or a higher price, is as good as nothing

Among equals the lower latency tells, and among those that are as fast the plainer layout.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from service.engine.derived import derived
from service.engine.fleet.costs import Fleet, cheapest, cheapest_of_each_size, copies_apart, least_paid
from service.engine.fleet.questions import FREE, Budget, Objective, Offer, SizeQuestion
from service.engine.fleet.results import Cost
from service.engine.inputs import Gpu, Layout
from service.engine.time.estimate import MOST_REPLICAS

Merit = tuple[float, float]  # less is better
NOTHING: Final[Merit] = (inf, inf)
Told = tuple[int, float, int]  # GPUs of a replica, replicas, copies that stand server by server
MOST_TOLD: Final = 4096  # fleets whose merit an aim remembers


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What is looked for on one GPU type, at the prices of some offers."""

    objective: Objective
    gpu: Gpu
    offers: tuple[Offer, ...]  # of this GPU
    budget: Budget = FREE
    least: Merit = (0.0, 0.0)  # nothing is better, as was found before
    merits: dict[Told, Merit] = field(default_factory=dict, repr=False, compare=False)  # told so far

    def merit(self, layout: Layout, replicas: float) -> Merit:
        """Return how good so many replicas are; it never falls as they grow in number."""
        copies = 1 if layout.data_parallel_size == 1 else copies_apart(layout, self.gpu.gpus_per_node)
        return self.merit_of(layout.gpus_per_replica, replicas, copies)

    def merit_of(self, gpus_per_replica: int, replicas: float, copies: int = 1) -> Merit:
        """Return how good so many replicas of so many GPUs are; copies that leave GPUs idle are never better."""
        key = gpus_per_replica, replicas, copies
        merit = self.merits.get(key)
        if merit is None:
            if len(self.merits) >= MOST_TOLD:
                self.merits.clear()
            merit = self.merits[key] = self._merit(gpus_per_replica, replicas, copies)
        return merit

    def _merit(self, gpus_per_replica: int, replicas: float, copies: int) -> Merit:
        gpus = float(replicas * gpus_per_replica)
        if gpus == inf or gpus > self.budget.gpus:
            return NOTHING
        if self.objective == "latency" and self.budget.usd_per_hour == inf:  # replicas do not tell
            return 0.0, 0.0
        price, paid = least_paid(self._fleet(gpus_per_replica, int(replicas), copies), self.offers)
        if price > self.budget.usd_per_hour:
            return NOTHING
        if self.objective == "latency":
            return 0.0, 0.0
        if self.objective == "gpus":
            return gpus, price
        return price, gpus if price == inf else paid

    def sizes_better(self, sizes: Iterable[int], replicas: int, known: Merit) -> frozenset[int]:
        """Return the sizes of a replica, in GPUs, of which so many are better than what is known, and may be had."""
        if known <= self.least:
            return frozenset()
        return frozenset(gpus for gpus in sizes if self.merit_of(gpus, replicas) < known)

    def cost(self, layout: Layout, replicas: int) -> Cost | None:
        """Return the cheapest way to rent so many replicas; None where no offer holds them."""
        copies = copies_apart(layout, self.gpu.gpus_per_node)
        return cheapest(self._fleet(layout.gpus_per_replica, replicas, copies), self.offers)

    def _fleet(self, gpus_per_replica: int, replicas: int, copies: int) -> Fleet:
        return Fleet(
            gpu=self.gpu.id,
            replicas=replicas,
            gpus_per_replica=gpus_per_replica,
            gpus_per_node=self.gpu.gpus_per_node,
            copies=copies,
        )

    def most_replicas(self, layout: Layout, known: Merit, *, is_equal_welcome: bool) -> float:
        """Return the most replicas that are better than what is known, or as good; infinite where any number is.

        Args:
            layout: of one replica.
            known: what is to be beaten.
            is_equal_welcome: as good is good enough. [yes or no]
        """

        def is_welcome(replicas: int) -> bool:
            merit = self.merit(layout, replicas)
            return merit < known or (is_equal_welcome and merit == known != NOTHING)

        if (known == NOTHING and self.budget.is_free) or is_welcome(MOST_REPLICAS):
            return inf
        low, high = 0, 1
        while is_welcome(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if is_welcome(middle) else (low, middle)
        return low


def aim_for(question: SizeQuestion, objective: Objective) -> Aim:
    """Return an objective at the prices of a question, and within its budget."""
    return aim_of(objective, question.gpu, question.offers, question.budget)


def aim_of(objective: Objective, gpu: Gpu, offers: Iterable[Offer], budget: Budget = FREE) -> Aim:
    """Return an objective at the prices of a GPU's offers; what fleets cost is told to all questions of one catalog."""
    return _aim(gpu, objective, tuple(offers) if not isinstance(offers, tuple) else offers, budget)


@derived(64)
def _aim(gpu: Gpu, objective: Objective, offers: tuple[Offer, ...], budget: Budget) -> Aim:
    return Aim(objective=objective, gpu=gpu, offers=cheapest_of_each_size(gpu.id, offers), budget=budget)
