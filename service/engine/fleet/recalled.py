"""Searches recalled: prices enter a choice by comparisons alone, so prices that order alike choose alike.

    kept   = what a search came to, with every merit that it compared
    same   = today's merits of the same replicas stand in the same order: each comparison ends as it did then

A price that changes thus costs the prices of some dozen fleets, not the search; one that turns an order does.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, Generic, TypeVar, cast

from service.engine.fleet.aims import NOTHING, Aim, Merit, Told, aim_for
from service.engine.fleet.alike import Search, found_alike, searched_alike
from service.engine.fleet.questions import Objective, SizeQuestion

Outcome = TypeVar("Outcome")
MOST_KEPT: Final = 256  # searches of one model: a question makes one for each of its levers, a recommendation a hundred


@dataclass(frozen=True, kw_only=True)
class NotedAim(Aim):
    """An aim that notes every merit it told."""

    noted: dict[Told, Merit] = field(default_factory=dict, repr=False, compare=False)

    def merit_of(self, gpus_per_replica: int, replicas: float, copies: int = 1) -> Merit:
        """Return how good so many replicas of so many GPUs are."""
        key = gpus_per_replica, replicas, copies
        merit = self.noted.get(key)
        if merit is None:
            merit = self.noted[key] = super().merit_of(gpus_per_replica, replicas, copies)
        return merit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made(Generic[Outcome]):
    """A search that was made."""

    outcome: Outcome
    at_most: Merit
    noted: Mapping[Told, Merit]

    def ends_alike(self, aim: Aim, at_most: Merit) -> bool:
        """Return whether every comparison ends as it did."""
        before = [*self.noted.values(), self.at_most, NOTHING]
        today = [*(aim.merit_of(*told) for told in self.noted), at_most, NOTHING]
        return before == today or in_same_order(before, today)


def in_same_order(before: Sequence[Merit], today: Sequence[Merit]) -> bool:
    """Return whether whatever was less, equal or more still is.

    >>> in_same_order([(2.0, 9.0), (1.0, 5.0)], [(2.0, 8.0), (1.0, 6.0)])
    True
    >>> in_same_order([(1.0, 9.0), (1.0, 5.0)], [(1.0, 5.0), (1.0, 5.0)])
    False
    """
    order = sorted(range(len(before)), key=before.__getitem__)
    return all(
        today[one] < today[other] if before[one] < before[other] else today[one] == today[other]
        for one, other in pairwise(order)
    )


def noted_aim(objective: Objective, question: SizeQuestion, priced: Aim | None = None) -> NotedAim:
    """Return an objective at the prices of a question, which notes what it told; what another has priced is shared."""
    aim = aim_for(question, objective) if priced is None else priced
    return NotedAim(objective=objective, gpu=aim.gpu, offers=aim.offers, budget=aim.budget, merits=aim.merits)


def _found_alike(
    question: SizeQuestion, way: Hashable, at_most: Merit, search: Callable[[Aim], Outcome], aim: Aim
) -> Outcome:
    """Return what a search finds, taking note of the users for whom it does; a merit alone is told of other loads."""
    look = cast("Search", search)
    if isinstance(way, tuple):  # of `better`, which reads no more than how good it is
        return cast("Outcome", found_alike(question, way, at_most, look, aim))
    return cast("Outcome", searched_alike(question, way, look, aim))


def recalled(
    question: SizeQuestion,
    way: Hashable,
    objective: Objective,
    at_most: Merit,
    search: Callable[[Aim], Outcome],
    priced: Aim | None = None,
) -> Outcome:
    """Return what a search finds: as it was found before, where today's prices order all it compared as then.

    Args:
        question: what is searched for.
        way: how, if in several ways.
        objective: what is compared; latency is not kept, and neither is what memory alone decides: that is soon found.
        at_most: the merit that is to be reached.
        search: what looks, and compares merits of the aim it is given, and nothing else that depends on prices.
        priced: an aim of the same objective, GPU and offers, whose prices are shared; None: of its own.
    """
    if objective == "latency" or question.is_of_memory:
        aim = priced or aim_for(question, objective)
        return search(aim) if question.load.alike is None else _found_alike(question, way, at_most, search, aim)
    priceless = replace(question, offers=(), left_out_offers=(), flags=frozenset())
    kept = question.model.derived.by("searches", MOST_KEPT)
    key = (way, objective, priceless)
    before = cast("_Made[Outcome] | None", kept.get(key))
    if before is not None and before.ends_alike(aim_for(question, objective), at_most):
        return before.outcome
    noting = noted_aim(objective, question, priced)
    outcome = search(noting)
    kept.put(key, _Made(outcome=outcome, at_most=at_most, noted=noting.noted))
    return outcome
