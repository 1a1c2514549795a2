"""What one replica carries, and how many replicas a demand takes."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf

from service.engine.errors import InvalidQuestionError
from service.engine.inputs import Limits, Load
from service.engine.memory.plan import MemoryPlan
from service.engine.time.batching import running_at_once
from service.engine.time.demand import Arrivals, Demand, kind_of
from service.engine.time.estimate import fewest_at_best, hoped_users
from service.engine.time.replica import Replica, quickly_timed, timed
from service.engine.time.results import Binding
from service.engine.time.steps import StepTimers


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The load of one replica at which the first limit is reached."""

    max_concurrent_requests: int
    max_request_rate_per_s: float | None  # None: the load is users
    binds: Binding


def carried_in_memory(plan: MemoryPlan) -> Carried:
    """Return the requests one replica holds at once, by cache and by what the scheduler runs beside one another.

    requests = data_parallel_size x min(requests_in_cache, max_num_seqs, those a step has tokens for)
    """
    if not plan.weights_fit:
        return Carried(max_concurrent_requests=0, max_request_rate_per_s=None, binds="weights")
    per_rank = running_at_once(plan)
    return Carried(
        max_concurrent_requests=per_rank * plan.layout.data_parallel_size,
        max_request_rate_per_s=None,
        binds="kv_cache" if plan.requests_in_cache <= per_rank else "max_num_seqs",
    )


def carried(
    plan: MemoryPlan, replica: Replica | None, kind: type[Demand], limits: Limits, asked: Demand | None = None
) -> Carried:
    """Return what one replica carries within limits, in the terms of a load.

    Users follow from a rate by Little's law, concurrency = rate x time in the system, through the
    simulated schedule.

    Args:
        plan: the replica's memory.
        replica: its times; None leaves memory alone to decide.
        kind: users or arrivals.
        limits: latency at a percentile.
        asked: what one replica is asked to carry, if anything.
    """
    memory = carried_in_memory(plan)
    if replica is None or memory.max_concurrent_requests < 1:
        return memory
    bracket = replica.most_with(asked, kind, limits)
    broken, load = bracket.violates, bracket.load
    if kind is Arrivals:
        return Carried(
            max_concurrent_requests=_users_of_rate(replica, load, limits, memory),
            max_request_rate_per_s=load,
            binds=broken or "throughput",
        )
    return Carried(
        max_concurrent_requests=int(load),
        max_request_rate_per_s=None,
        binds=memory.binds if broken is None or broken == "throughput" else broken,
    )


def _users_of_rate(replica: Replica, request_rate_per_s: float, limits: Limits, memory: Carried) -> int:
    """Return the requests in flight at the highest rate; without limits, all that memory holds."""
    if not request_rate_per_s:
        return 0
    if not limits.are_stated:
        return memory.max_concurrent_requests
    return max(ceil(request_rate_per_s * replica.seen(Arrivals(request_rate_per_s)).end_to_end_s.mean), 1)


def needs_time(load: Load, limits: Limits) -> bool:
    """Return whether the count of replicas depends on time, and not on memory alone."""
    return kind_of(load) is Arrivals or limits.are_stated


def hoped(plan: MemoryPlan, timers: StepTimers | None, load: Load, limits: Limits, hope: float) -> float | None:
    """Return the amount that one replica would not exceed, were kernels faster than a quick estimate by a factor.

    Args:
        plan: the replica's memory.
        timers: what times it; None leaves memory alone to decide.
        load: users or arrivals.
        limits: latency at a percentile.
        hope: the factor.

    Returns:
        Users, or arrivals per second; 0 where it carries nothing, None where time decides and nobody tells it.
    """
    held = carried_in_memory(plan).max_concurrent_requests
    if timers is None or not held or not needs_time(load, limits):
        return held
    serving = quickly_timed(plan, timers, load)
    if serving is None:
        return None
    users = hoped_users(serving, limits, hope)
    return kind_of(load).hoped(serving, users, hope) if users else 0.0


def deciding_replica(plan: MemoryPlan, timers: StepTimers | None, load: Load, limits: Limits) -> Replica | None:
    """Return one replica with its times, where they decide; None where memory alone does.

    Raises:
        InvalidQuestionError: time decides, and nobody tells it.
    """
    if not needs_time(load, limits):
        return None
    replica = timed(plan, timers, load)
    if replica is None and timers is not None and plan.holds_one_request:
        raise InvalidQuestionError(
            f"{plan.gpu.id} states no peak FLOP/s, so its latency and throughput are unknown",
            field="gpu",
            accepted="a GPU with a stated peak, or a question without ttft_s, tpot_s and request_rate_per_s",
        )
    return replica


def fewest_replicas(
    plan: MemoryPlan,
    replica: Replica | None,
    wanted: Demand,
    limits: Limits,
    at_most: float = inf,
    *,
    is_sure: bool = True,
) -> int | None:
    """Return the replicas that carry a demand within limits; 0 where no number does, None if more than a bound.

    At least the number from `carried`, and one that keeps the limits at exactly its share of the demand.

    Args:
        plan: a replica's memory.
        replica: its times; None leaves memory alone to decide.
        wanted: the demand, with the share kept free.
        limits: latency at a percentile.
        at_most: the largest number of interest. [replicas]
        is_sure: the share itself is simulated as well; else `keeps` is asked later, of what is chosen. [yes or no]

    Raises:
        InvalidQuestionError: arrivals are asked for, and nobody tells time.
    """
    held = carried_in_memory(plan).max_concurrent_requests
    if held < 1:
        return 0
    if replica is None:
        needed = _replicas_holding(held, wanted)
        return needed if needed <= at_most else None
    carrying = _replicas_carrying(replica, wanted, limits, at_most)
    if carrying is None:
        return None
    needed = carrying
    while is_sure and needed and needed <= at_most and not keeps(replica, wanted, limits, needed):
        needed += 1
    return needed if needed <= at_most else None


def keeps(replica: Replica, wanted: Demand, limits: Limits, replicas: int) -> bool:
    """Return whether replicas that carry a demand keep its limits at exactly their share of it.

    Between two loads of the search, chance may break a limit that both keep.
    """
    share = wanted.per_replica(replicas)
    return replica.breaks(share, limits, replica.measured_for(share, limits)) is None


def _replicas_holding(held: int, wanted: Demand) -> int:
    """Return the replicas whose memory holds a demand.

    Raises:
        InvalidQuestionError: memory does not tell of arrivals.
    """
    if isinstance(wanted, Arrivals):
        raise InvalidQuestionError(
            "how long arrivals stay is for step times to tell, and there are none",
            field="request_rate_per_s",
            accepted="concurrent_requests, or request_rate_per_s with request_duration_s",
        )
    return wanted.replicas(held)


def _replicas_carrying(replica: Replica, wanted: Demand, limits: Limits, at_most: float) -> int | None:
    """Return the replicas whose largest load is their share or more; 0 where there are none, None beyond a bound.

    Up to a bound their number is searched for, and not the largest load: it takes fewer simulations.
    """
    guess = type(wanted).guessed(replica, limits)
    if at_most == inf:
        if guess >= wanted.amount and replica.are_enough(1, wanted, limits):
            return 1
        most = replica.most(type(wanted), limits).load
        return wanted.replicas(most) if most else 0
    serving = replica.serving
    least = fewest_at_best(serving, (serving.settings.max_num_batched_tokens,), wanted, limits, at_most)
    if least == inf:
        replica.simulations.shared.note(None)  # another budget may leave more hope
        return None
    if not replica.are_enough(at_most, wanted, limits):
        return None
    guess = max(wanted.replicas(guess) if guess else int(at_most), int(least))
    enough = fewest(lambda count: replica.are_enough(count, wanted, limits), int(least), int(at_most), guess)
    if 1 < enough == least:
        replica.simulations.shared.note(None)  # as above
    return enough


def fewest(are_enough: Callable[[int], bool], least: int, enough: int, guess: int) -> int:
    """Return the fewest of which there are enough: away from a guess in growing strides, then by halves.

    Args:
        are_enough: whether so many are.
        least: fewer are not enough.
        enough: so many are.
        guess: about the fewest.

    >>> fewest(lambda count: count >= 5, 1, 80, 7)
    5
    """
    too_few, stride = least - 1, 1
    has_passed = has_failed = False
    while enough - too_few > 1:
        count = (too_few + enough) // 2 if has_passed and has_failed else min(max(guess, too_few + 1), enough - 1)
        if are_enough(count):
            enough, guess, has_passed = count, count - stride, True
        else:
            too_few, guess, has_failed = count, count + stride, True
        stride *= 2
    return enough
