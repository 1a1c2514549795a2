"""Pacing: a cap on running requests that keeps time per output token, chosen where the caller states none.

An engine without the cap takes more requests in and slows all of them down; with it they wait for
their first token instead.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from typing import Final

from service.engine.fleet.settings import Resolved
from service.engine.fleet.variants import with_chosen
from service.engine.inputs import Limits, Load
from service.engine.memory.plan import MemoryPlan
from service.engine.time.carried import Carried
from service.engine.time.demand import Demand, Users
from service.engine.time.replica import Replica
from service.engine.time.roomy import share_of

# Of the users that keep pace in a closed loop; prompts that come in bursts slow a full batch further, and of answers
# of a dozen tokens a third of those users was the most that kept it.
CAP_SHARES: Final = (1.0, 0.8, 0.5, 0.3, 0.2)
PACE_WHY: Final = "batches of so many keep tpot_s, and further requests wait; the engine's own cap is {own}"


def may_pace(resolved: Resolved, load: Load, limits: Limits) -> bool:
    """Return whether a cap on running requests may keep a limit on time per output token.

    Users of a closed loop wait for slots of their own, and what waits for a pool that only decodes has
    waited before: neither is capped. Nor is an engine whose cap the caller stated.
    """
    return may_wait_for_pace(load, limits) and resolved.stated.max_num_seqs is None


def may_wait_for_pace(load: Load, limits: Limits) -> bool:
    """Return whether requests that wait may keep a limit on time per output token: for a cap, or for room in a cache.

    A cache that is full lets in no more than run in pace, where a server with room for all breaks the limit.
    """
    is_users = load.concurrent_requests is not None or load.request_duration_s is not None
    is_open = not is_users and load.phase == "both"
    return limits.tpot_s is not None and is_open


def paced_replicas(
    resolved: Resolved, replica: Replica, limits: Limits, plan_of: Callable[[Resolved], MemoryPlan]
) -> Iterator[tuple[Resolved, Replica]]:
    """Yield settings and a replica with each cap that keeps pace; none carries more than without a limit on pace.

    Args:
        resolved: its settings, with the engine's own cap.
        replica: the replica with the engine's own cap.
        limits: latency at a percentile.
        plan_of: the same replica's memory under other settings.
    """
    if not replica.may_be_enough(inf, Users(1), limits):  # what a single user sees broken, no cap mends
        return
    for cap in _caps(replica, limits):
        capped = with_chosen(resolved, "max_num_seqs", cap, PACE_WHY)
        plan = plan_of(capped)
        if plan.holds_one_request:
            yield capped, replica.capped(plan)


def _caps(replica: Replica, limits: Limits) -> tuple[int, ...]:
    """Return the values of `max_num_seqs` that may keep time per output token within its limit at any rate.

    max_num_seqs <= most users of a closed loop within tpot_s / data_parallel_size
    """
    users = int(replica.most(Users, replace(limits, ttft_s=None)).load)
    ranks = replica.plan.layout.data_parallel_size
    caps = dict.fromkeys(int(share * users / ranks) for share in CAP_SHARES)
    return tuple(cap for cap in caps if 1 <= cap < replica.slots // ranks)


def wants_fewer_at_once(paced: Replica, wanted: Demand, limits: Limits, at_most: float) -> bool:
    """Return whether a tighter cap may let so many replicas carry a demand that this one does not: pace is what breaks.

    Under a cap that breaks anything else requests wait too long already; under a tighter one longer.

    Args:
        paced: a replica with a cap.
        wanted: the demand.
        limits: latency at a percentile.
        at_most: the most replicas of interest; infinite where any number may be. [replicas]
    """
    return at_most == inf or paced.is_doubtful(share_of(wanted, at_most).rounded_up(paced), limits) == "tpot"


def without_pace(limits: Limits) -> Limits:
    """Return limits that leave time per output token alone."""
    return replace(limits, tpot_s=None)


def as_paced(of_one: Carried) -> Carried:
    """Return what a replica carries whose cap keeps pace: what fills the cap is the limit behind it."""
    return replace(of_one, binds="tpot") if of_one.binds in ("throughput", "max_num_seqs") else of_one
