"""Layouts in the order of what bounds them: each is planned only when nothing else may be better."""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from service.engine.fleet.aims import Merit
from service.engine.memory.plan import MemoryPlan


def in_turn(
    first: Iterator[tuple[Merit, int]],
    at_best: Callable[[int], Merit],
    plan_of: Callable[[int], MemoryPlan],
    bound_of: Callable[[MemoryPlan], Merit],
) -> Iterator[tuple[Merit, MemoryPlan | None]]:
    """Yield bounds on all that is left, rising: with the plan whose own it is, or None before one is planned.

    Args:
        first: what layouts are no better than, and their indices, rising.
        at_best: what one of them is no better than, by its index, told without a plan.
        plan_of: its plan.
        bound_of: what no deployment of a plan is better than.
    """
    following = next(first, None)
    waiting: list[tuple[Merit, int, MemoryPlan | None]] = []
    while following is not None or waiting:
        if following is not None and (not waiting or following < waiting[0][:2]):
            bound, index = following
            yield bound, None
            heappush(waiting, (at_best(index), index, None))
            following = next(first, None)
            continue
        bound, index, plan = heappop(waiting)
        yield bound, plan
        if plan is None:
            plan = plan_of(index)
            heappush(waiting, (max(bound, bound_of(plan)), index, plan))
