"""Whether a layout may carry a load in time under any settings: asked before its settings are planned and tried.

Of a dozen layouts with eight settings each, hardly one is better than the engine's own: a replica with all the room it
could wish for, simulated with a small sample, tells most of them from those worth a look.
"""

from collections.abc import Sequence
from functools import partial

from service.engine.fleet.estimates import CERTAIN
from service.engine.fleet.pacing import may_wait_for_pace
from service.engine.fleet.questions import AnyQuestion, SizeQuestion
from service.engine.memory.plan import MemoryPlan
from service.engine.time.batching import Serving
from service.engine.time.carried import needs_time
from service.engine.time.demand import kind_of, wanted_of
from service.engine.time.estimate import hoped_users
from service.engine.time.replica import timed
from service.engine.time.roomy import may_carry, roomy, share_of
from service.engine.time.tries import Tries


def budgets_in_time(
    question: SizeQuestion, serving: Serving | None, at_most: float, hoped: Sequence[int]
) -> tuple[int, ...]:
    """Return the token budgets with which replicas of a layout may keep the limits, given any room. [tokens].

    Args:
        question: what to deploy.
        serving: how one replica serves, its slots as many as any settings give it; None where nobody times it.
        at_most: the most replicas of interest, spares included. [replicas]
        hoped: the budgets in question, as `ceilings` leave them. [tokens]
    """
    load, limits, replicas = question.load, question.limits, at_most - question.headroom.spare_replicas
    if question.timers is None or serving is None or not needs_time(load, limits):
        return tuple(hoped)
    share, is_paced = share_of(wanted_of(load, question.headroom), replicas), may_wait_for_pace(load, limits)
    tries = Tries()  # a budget that no step fills tells of any other that none fills
    servers = {tokens: roomy(serving, question.timers.simulations, tokens) for tokens in sorted(hoped, reverse=True)}
    in_time = [
        tokens
        for tokens, server in servers.items()
        if tries.told(server, partial(may_carry, server, share, limits, is_paced=is_paced))
    ]
    return tuple(sorted(in_time))


def needs_room(question: AnyQuestion, plan: MemoryPlan) -> bool:
    """Return whether more slots may carry more: memory decides, or those that a plan has can be filled in time."""
    if not plan.holds_one_request or not needs_time(question.load, question.limits):
        return True
    replica = timed(plan, question.timers, question.load)
    certain = CERTAIN[kind_of(question.load)]
    return replica is None or hoped_users(replica.serving, question.limits, certain) >= replica.slots
