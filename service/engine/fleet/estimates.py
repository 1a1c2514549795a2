"""What is told of a plan before anything is simulated: one request alone, and the replicas that a load takes."""

from math import inf
from typing import Final

from service.engine.fleet.questions import SizeQuestion
from service.engine.memory.plan import MemoryPlan
from service.engine.time.batching import Serving, copies_of, share_of_reader
from service.engine.time.carried import deciding_replica, hoped
from service.engine.time.demand import Arrivals, Demand, Users, wanted_of
from service.engine.time.estimate import HOPELESS, alone_s, budgets_at_best
from service.engine.time.replica import Replica, quickly_timed
from service.engine.time.roomy import share_of
from service.engine.time.steps import Deployed, deployed
from service.engine.time.traffic import traffic_of

# An estimate with a replica's own step times is so near to what is simulated; arrivals were carried at most 1.16 times
# as fast as estimated.
CERTAIN: Final[dict[type[Demand], float]] = {Users: HOPELESS, Arrivals: 1.3}


def replica_for(question: SizeQuestion, plan: MemoryPlan) -> Replica | None:
    """Return one replica with its times, where they decide; None where memory alone does."""
    return deciding_replica(plan, question.timers, question.load, question.limits)


def serving_for(question: SizeQuestion, plan: MemoryPlan) -> Serving | None:
    """Return how a plan serves the load, where its step times decide; None where memory alone does."""
    replica = replica_for(question, plan)
    return None if replica is None else replica.serving


def quickly_alone_s(question: SizeQuestion, plan: MemoryPlan) -> float:
    """Return the time of one request by a quick estimate; 0 where nobody tells it. [s]."""
    serving = None if question.timers is None else quickly_timed(plan, question.timers, question.load)
    return 0.0 if serving is None else alone_s(serving)


def estimated_excess(question: SizeQuestion, plan: MemoryPlan) -> float:
    """Return how many times one request takes what the tighter limit allows; 0 where it finds no room."""
    budget = plan.settings.max_num_batched_tokens
    return excess_of(question, deployed(plan), budget) if plan.holds_one_request else 0.0


def excess_of(question: SizeQuestion, key: Deployed, max_num_batched_tokens: float = inf) -> float:
    """Return the same of what step times depend on, where there is room; without a budget a prompt is read at once."""
    limits, load = question.limits, question.load
    timing = None if question.timers is None else question.timers.timer(key)
    if timing is None:
        return 0.0
    steps = timing.steps
    prompt = 0.0 if load.phase == "decode" else traffic_of(load).inputs.quantile(limits.percentile / 100)
    whole, rest = divmod(prompt, max_num_batched_tokens)
    chunks = ((whole, float(max_num_batched_tokens)), (1.0, rest))
    share = share_of_reader(timing, copies_of(key.model.architecture, key.layout, key.rules, running=1))
    reads_s = sum(times * steps.mixed_s(share * read, prompt / 2, 0.0, 0.0) for times, read in chunks if times and read)
    writes_s = steps.decode_s(1.0, load.input_tokens + load.output_tokens / 2)
    ttft = (reads_s or writes_s) / limits.ttft_s if limits.ttft_s else 0.0  # who comes read waits for a token alone
    tpot = writes_s / limits.tpot_s if limits.tpot_s else 0.0
    return max(ttft, tpot)


def hoped_replicas(question: SizeQuestion, plan: MemoryPlan, hope: float) -> float:
    """Return the replicas, spares included, that memory and an optimistic estimate of time ask for.

    Args:
        question: what to deploy.
        plan: a replica's memory.
        hope: how many times faster than the quick estimate kernels may be.

    Returns:
        The count; infinite where no number would do.
    """
    spares = question.headroom.spare_replicas
    if not plan.holds_one_request:
        return inf
    of_one = hoped(plan, question.timers, question.load, question.limits, hope)
    if of_one is None:
        return 1 + spares
    return wanted_of(question.load, question.headroom).replicas(of_one) + spares if of_one else inf


def may_be_enough(question: SizeQuestion, replica: Replica | None, at_most: float) -> bool:
    """Return whether a replica's own step times leave hope that so many carry the load, before any simulation.

    Args:
        question: what to deploy.
        replica: with its times; None where memory alone decides.
        at_most: the most replicas of interest, spares included. [replicas]
    """
    if replica is None:
        return True
    share = share_of(wanted_of(question.load, question.headroom), at_most - question.headroom.spare_replicas)
    budget = replica.plan.settings.max_num_batched_tokens
    return bool(budgets_at_best(replica.serving, (budget,), share, question.limits))
