"""Whether a layout may carry a load in time under any settings: asked before its settings are planned and tried.

Of a dozen layouts with eight settings each, hardly one is better than the engine's own: a replica with all the room it
could wish for, simulated with a small sample, tells most of them from those worth a look.
"""

from dataclasses import replace
from math import inf
from typing import Final

from service.engine.fleet.estimates import CERTAIN
from service.engine.fleet.pacing import may_pace
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.settings import Resolved
from service.engine.fleet.variants import batched_tokens, budgets_for
from service.engine.inputs import Layout, Load
from service.engine.memory.plan import MemoryPlan
from service.engine.time.batching import SchedulerSettings, Serving
from service.engine.time.carried import needs_time
from service.engine.time.demand import kind_of, wanted_of
from service.engine.time.estimate import hoped_users
from service.engine.time.replica import timed
from service.engine.time.roomy import may_carry, roomy, share_of
from service.engine.time.steps import Deployed, Timing
from service.engine.time.traffic import traffic_of

ENDLESS_SLOTS: Final = 1 << 20


def budgets_in_time(question: SizeQuestion, resolved: Resolved, plan: MemoryPlan, at_most: float) -> tuple[int, ...]:
    """Return the token budgets with which replicas of a layout may keep the limits, given any room. [tokens].

    Args:
        question: what to deploy.
        resolved: the engine's own settings, or those stated.
        plan: of the layout, with the most room that settings give it.
        at_most: the most replicas of interest, spares included. [replicas]
    """
    is_timed, replicas = needs_time(question.load, question.limits), at_most - question.headroom.spare_replicas
    budgets = batched_tokens(resolved, budgets_for(question.limits, is_timed=is_timed))
    if question.timers is None or not plan.holds_one_request or not is_timed:
        return budgets
    if replicas < 1:
        return ()
    share = share_of(wanted_of(question.load, question.headroom), replicas)
    is_paced = may_pace(resolved, question.load, question.limits)
    roomy_ones = ((tokens, roomy(plan, question.timers, question.load, tokens)) for tokens in budgets)
    return tuple(
        tokens
        for tokens, replica in roomy_ones
        if replica is None or may_carry(replica, share, question.limits, is_paced=is_paced)
    )


def is_estimated_in_time(question: SizeQuestion, resolved: Resolved, layout: Layout, at_most: float) -> bool:
    """Return whether a layout's own step times leave hope for a load, given any room: before anything is planned.

    Args:
        question: what to deploy.
        resolved: the engine's own settings, or those stated.
        layout: of one replica.
        at_most: the most replicas of interest, spares included. [replicas]
    """
    load, limits, replicas = question.load, question.limits, at_most - question.headroom.spare_replicas
    if question.timers is None or not needs_time(load, limits) or replicas == inf:
        return True
    if replicas < 1:
        return False
    if resolved.settings.num_speculative_tokens:  # what drafts make of a step is for the plan to tell
        return True
    timing = question.timers.timer(timed_as(resolved, layout))
    if timing is None:
        return True
    kind, share = kind_of(load), wanted_of(load, question.headroom).per_replica(int(replicas))
    for tokens in batched_tokens(resolved, budgets_for(limits, is_timed=True)):
        serving = unplanned(timing, layout, load, tokens)
        users = hoped_users(serving, limits, CERTAIN[kind])
        if users and kind.hoped(serving, users, CERTAIN[kind]) >= share.amount:
            return True
    return False


def unplanned(timing: Timing, layout: Layout, load: Load, max_num_batched_tokens: int) -> Serving:
    """Return how a layout serves a load with endless room and without drafts: for estimates, before it is planned."""
    settings = SchedulerSettings(
        max_num_batched_tokens=max_num_batched_tokens,
        max_num_seqs=ENDLESS_SLOTS,
        prefix_cache_hit_fraction=load.prefix_cache_hit_fraction,
    )
    streams = layout.data_parallel_size * layout.pipeline_parallel_size
    return Serving(timing=timing, traffic=traffic_of(load), settings=settings, streams=streams, slots=ENDLESS_SLOTS)


def needs_room(question: SizeQuestion, plan: MemoryPlan) -> bool:
    """Return whether more slots may carry more: memory decides, or those that a plan has can be filled in time."""
    if not plan.holds_one_request or not needs_time(question.load, question.limits):
        return True
    replica = timed(plan, question.timers, question.load)
    certain = CERTAIN[kind_of(question.load)]
    return replica is None or hoped_users(replica.serving, question.limits, certain) >= replica.slots


def timed_as(resolved: Resolved, layout: Layout) -> Deployed:
    """Return what the step times of a layout depend on, before it is planned."""
    return Deployed(
        model=resolved.model,
        checkpoint=resolved.checkpoint,
        gpu=resolved.gpu,
        layout=replace(layout, decode_context_parallel_size=1),
        kv_cache_dtype=resolved.settings.kv_cache_dtype,
        rules=resolved.rules,
    )
