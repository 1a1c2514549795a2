"""Whether a layout may carry a load in time under any settings: asked before its settings are planned and tried.

Of a dozen layouts with eight settings each, hardly one is better than the engine's own: a replica with all the room it
could wish for, simulated with a small sample, tells most of them from those worth a look.
"""

from collections.abc import Sequence
from typing import Final

from service.engine.fleet.estimates import CERTAIN
from service.engine.fleet.pacing import may_pace
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.settings import Resolved
from service.engine.memory.plan import MemoryPlan
from service.engine.time.carried import needs_time
from service.engine.time.demand import kind_of, wanted_of
from service.engine.time.estimate import hoped_users
from service.engine.time.replica import timed
from service.engine.time.roomy import may_carry, roomy, share_of

ENDLESS_SLOTS: Final = 1 << 20


def budgets_in_time(
    question: SizeQuestion, resolved: Resolved, plan: MemoryPlan, at_most: float, hoped: Sequence[int]
) -> tuple[int, ...]:
    """Return the token budgets with which replicas of a layout may keep the limits, given any room. [tokens].

    Args:
        question: what to deploy.
        resolved: the engine's own settings, or those stated.
        plan: of the layout, with the most room that settings give it.
        at_most: the most replicas of interest, spares included. [replicas]
        hoped: the budgets in question, as `ceilings` leave them. [tokens]
    """
    load, limits, replicas = question.load, question.limits, at_most - question.headroom.spare_replicas
    if question.timers is None or not plan.holds_one_request or not needs_time(load, limits):
        return tuple(hoped)
    share, is_paced = share_of(wanted_of(load, question.headroom), replicas), may_pace(resolved, load, limits)
    roomy_ones = ((tokens, roomy(plan, question.timers, load, tokens)) for tokens in hoped)
    return tuple(
        tokens
        for tokens, replica in roomy_ones
        if replica is None or may_carry(replica, share, limits, is_paced=is_paced)
    )


def needs_room(question: SizeQuestion, plan: MemoryPlan) -> bool:
    """Return whether more slots may carry more: memory decides, or those that a plan has can be filled in time."""
    if not plan.holds_one_request or not needs_time(question.load, question.limits):
        return True
    replica = timed(plan, question.timers, question.load)
    certain = CERTAIN[kind_of(question.load)]
    return replica is None or hoped_users(replica.serving, question.limits, certain) >= replica.slots
