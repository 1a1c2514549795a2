"""What one replica carries, and how many replicas a load takes."""

from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Final

from service.engine.errors import InvalidQuestionError
from service.engine.fleet.results import BindingConstraint
from service.engine.inputs import Headroom, Limits, Load
from service.engine.memory.plan import MemoryPlan
from service.engine.time.replica import Replica, at_rate
from service.engine.time.search import highest_rate, most_users, rate_search, user_search

# Of the users that keep pace in a closed loop; prompts that come in bursts slow a full batch further.
CAP_SHARES: Final = (1.0, 0.8)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCapacity:
    """The load of one replica at which the first limit is reached."""

    max_concurrent_requests: int
    max_request_rate_per_s: float | None  # None: the load is users
    binds: BindingConstraint


def memory_capacity(plan: MemoryPlan) -> ReplicaCapacity:
    """Return the requests one replica holds at once, by cache and by the scheduler's own cap.

    requests = data_parallel_size x min(requests_in_cache, max_num_seqs)
    """
    if not plan.weights_fit:
        return ReplicaCapacity(max_concurrent_requests=0, max_request_rate_per_s=None, binds="weights")
    per_rank = min(plan.requests_in_cache, plan.settings.max_num_seqs)
    return ReplicaCapacity(
        max_concurrent_requests=per_rank * plan.layout.data_parallel_size,
        max_request_rate_per_s=None,
        binds="kv_cache" if plan.requests_in_cache <= plan.settings.max_num_seqs else "max_num_seqs",
    )


def replica_capacity(plan: MemoryPlan, replica: Replica | None, load: Load, limits: Limits) -> ReplicaCapacity:
    """Return what one replica carries within limits, in the terms of the load: users or arrivals.

    Users follow from a rate by Little's law, concurrency = rate x time in the system, through the
    simulated schedule.

    Args:
        plan: the replica's memory.
        replica: its step times; None leaves memory alone to decide.
        load: users of a closed loop, or arrivals per second.
        limits: latency at a percentile.
    """
    memory = memory_capacity(plan)
    if replica is None or memory.max_concurrent_requests < 1:
        return memory
    if is_by_rate(load):
        return _by_rate(replica, limits, memory)
    reach = most_users(replica, limits)
    return ReplicaCapacity(
        max_concurrent_requests=int(reach.load), max_request_rate_per_s=None, binds=reach.violates or memory.binds
    )


def _by_rate(replica: Replica, limits: Limits, memory: ReplicaCapacity) -> ReplicaCapacity:
    reach = highest_rate(replica, limits)
    if not reach.load:
        return ReplicaCapacity(
            max_concurrent_requests=0, max_request_rate_per_s=0.0, binds=reach.violates or memory.binds
        )
    users = memory.max_concurrent_requests
    if limits.ttft_s is not None or limits.tpot_s is not None:
        users = max(ceil(reach.load * at_rate(replica, reach.load).end_to_end_s.mean), 1)
    return ReplicaCapacity(
        max_concurrent_requests=users, max_request_rate_per_s=reach.load, binds=reach.violates or "throughput"
    )


def can_pace(load: Load, limits: Limits) -> bool:
    """Return whether a cap on running requests may keep a limit on time per output token.

    Users of a closed loop wait for slots of their own, and what waits for a pool that only decodes has
    waited before: neither is capped.
    """
    is_users = load.concurrent_requests is not None or load.request_duration_s is not None
    return limits.tpot_s is not None and not is_users and load.phase == "both"


def pacing_caps(replica: Replica, load: Load, limits: Limits) -> tuple[int, ...]:
    """Return the values of `max_num_seqs` that may keep time per output token within its limit at any rate.

        max_num_seqs <= most users of a closed loop within tpot_s / data_parallel_size

    Beyond that load an engine without the cap takes more requests in and slows all of them down; with it
    they wait for their first token instead.
    """
    if not can_pace(load, limits):
        return ()
    users = int(most_users(replica, replace(limits, ttft_s=None)).load)
    ranks = replica.plan.layout.data_parallel_size
    caps = dict.fromkeys(int(share * users / ranks) for share in CAP_SHARES)
    return tuple(cap for cap in caps if 1 <= cap < replica.slots // ranks)


def without_pace(limits: Limits) -> Limits:
    """Return limits that leave time per output token alone."""
    return replace(limits, tpot_s=None)


def as_paced(carried: ReplicaCapacity) -> ReplicaCapacity:
    """Return what a replica carries whose cap keeps pace: what fills the cap is the limit behind it."""
    return replace(carried, binds="tpot") if carried.binds in ("throughput", "max_num_seqs") else carried


def needs_time(load: Load, limits: Limits) -> bool:
    """Return whether the count of replicas depends on time, and not on memory alone."""
    return is_by_rate(load) or limits.ttft_s is not None or limits.tpot_s is not None


def is_by_rate(load: Load) -> bool:
    """Return whether a load is arrivals, whose time in the system is for us to find."""
    return load.request_rate_per_s is not None and load.request_duration_s is None


def concurrency_of(load: Load) -> int:
    """Return the requests in flight: as asked, or by Little's law from rate and stated duration.

    concurrent_requests = ceil(request_rate_per_s x request_duration_s)
    """
    if load.concurrent_requests is not None:
        return load.concurrent_requests
    if load.request_rate_per_s is None or load.request_duration_s is None:
        raise InvalidQuestionError(
            "no load was stated",
            field="concurrent_requests",
            accepted="concurrent_requests, or request_rate_per_s",
        )
    return max(ceil(load.request_rate_per_s * load.request_duration_s), 1)


def with_headroom(concurrent_requests: int, headroom: Headroom) -> int:
    """Return the load to plan for: the asked one and the share kept free on top of it."""
    return max(ceil(concurrent_requests * (1 + headroom.headroom_fraction)), 1)


def planned_rate(load: Load, headroom: Headroom) -> float:
    """Return the arrivals to plan for, headroom included. [1/s]."""
    return (load.request_rate_per_s or 0.0) * (1 + headroom.headroom_fraction)


def replicas_for(load: float, per_replica: float) -> int:
    """Return the replicas that carry a load, spares not included: ceil(load / load of one), at least 1."""
    return max(ceil(load / per_replica), 1)


def fewest_replicas(
    plan: MemoryPlan, replica: Replica | None, load: Load, headroom: Headroom, limits: Limits, at_most: float = inf
) -> int | None:
    """Return the replicas that carry a load within limits; 0 where no number does, None if more than a bound.

    The same number as from `replica_capacity`; the search for it ends as soon as the number is known.

    Args:
        plan: a replica's memory.
        replica: its step times; None leaves memory alone to decide.
        load: users of a closed loop, or arrivals per second.
        headroom: the share to keep free.
        limits: latency at a percentile.
        at_most: the largest number of interest. [replicas]
    """
    held = memory_capacity(plan).max_concurrent_requests
    if held < 1:
        return 0
    if replica is None:
        needed = replicas_for(with_headroom(concurrency_of(load), headroom), held)
        return needed if needed <= at_most else None
    by_rate = is_by_rate(load)
    wanted = planned_rate(load, headroom) if by_rate else with_headroom(concurrency_of(load), headroom)
    needed = 0
    for reach in rate_search(replica, limits) if by_rate else user_search(replica, limits):
        fewest = replicas_for(wanted, reach.fails_at)
        needed = replicas_for(wanted, reach.load) if reach.load else 0
        if fewest > at_most:
            return None
        if needed == fewest:
            break
    return needed if needed <= at_most else None
