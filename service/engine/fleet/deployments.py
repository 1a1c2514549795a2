"""Ways to carry a load on one GPU type: one deployment per legal layout."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from math import ceil, inf
from typing import Final

from service.engine.fleet.pacing import as_paced, may_pace, paced_replicas, without_pace
from service.engine.fleet.planned import legal_layouts, planned
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.settings import Resolved, resolve
from service.engine.inputs import Layout, Limits, Load
from service.engine.memory.plan import MemoryPlan
from service.engine.time.carried import Carried, carried, deciding_replica, fewest_replicas, hoped
from service.engine.time.demand import Demand, demand_of, kind_of, wanted_of
from service.engine.time.replica import Replica, measured_for, timed
from service.engine.time.samples import ScheduleResult
from service.engine.time.steps import StepTimers

# Kernels may be so many times faster than the quick estimate.
HOPED: Final = 2.0

Count = tuple[float, int]  # GPUs of a deployment, and of one of its replicas: fewer of both are better
NOBODY: Final[Count] = (inf, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """So many replicas of one plan; no replicas when the layout cannot carry the load."""

    resolved: Resolved  # the settings it was planned with
    plan: MemoryPlan
    replica: Replica | None  # None: time does not decide, or is unknown
    load: Load
    limits: Limits
    replicas: int  # spares included
    is_paced: bool = False  # `max_num_seqs` is chosen to keep the limit on TPOT

    @property
    def capacity(self) -> Carried:
        """Return what one replica carries, in the terms of the load."""
        return self.carries(kind_of(self.load))

    def carries(self, kind: type[Demand]) -> Carried:
        """Return what one replica carries, in users or arrivals."""
        of_one = carried(self.plan, self.replica, kind, self.limits, self.share)
        return as_paced(of_one) if self.is_paced else of_one

    @property
    def layout(self) -> Layout:
        """Return how one replica is spread."""
        return self.plan.layout

    @property
    def gpus(self) -> int:
        """Return replicas x GPUs per replica."""
        return self.replicas * self.plan.layout.gpus_per_replica

    @property
    def is_feasible(self) -> bool:
        """Return whether the load is carried."""
        return self.replicas > 0

    @property
    def is_asked(self) -> bool:
        """Return whether anybody said how much load there is."""
        return self.load.concurrent_requests is not None or self.load.request_rate_per_s is not None

    @property
    def share(self) -> Demand | None:
        """Return what is asked of each replica when all share the load evenly; None where nobody asked, or of none."""
        return demand_of(self.load).per_replica(self.replicas) if self.is_asked and self.replicas else None

    def seen(self) -> ScheduleResult | None:
        """Return what users of one replica see when all share the load evenly; None where nobody times it."""
        if self.replica is None or not self.replicas:
            return None
        share = demand_of(self.load).per_replica(self.replicas)
        if self.load.num_prompts is None:
            return self.replica.seen(share, measured_for(self.limits))
        return self.replica.benchmarked(share, ceil(self.load.num_prompts / self.replicas))

    def with_times(self, timers: StepTimers | None) -> "Deployment":
        """Return the same deployment with its times, where only memory decided so far."""
        if self.replica is not None:
            return self
        return replace(self, replica=timed(self.plan, timers, self.load))


def resolve_size(question: SizeQuestion) -> Resolved:
    """Return the question's settings without a gap."""
    context = question.load.input_tokens + question.load.output_tokens
    return resolve(question.model, question.gpu, question.settings, question.rules, context)


def deployments(question: SizeQuestion, at_most_gpus: int | None = None, hope: float = HOPED) -> tuple[Deployment, ...]:
    """Return the deployments that may have the fewest GPUs, one per legal layout.

    The layout that a quick estimate finds smallest comes first; one whose memory, or whose estimate
    with a factor of hope, asks for more than the best so far is left out.

    Args:
        question: what to deploy.
        at_most_gpus: leave out what takes more than so many. [GPUs]
        hope: how many times faster than the quick estimate kernels may be.
    """
    resolved = resolve_size(question)
    layouts = legal_layouts(resolved, question.layout)
    best_so_far = NOBODY if at_most_gpus is None else (at_most_gpus + 1, 0)
    kept: list[Deployment] = []
    for count, plan in _by_hope(question, resolved, layouts, hope):
        if best_so_far != NOBODY and count >= best_so_far:
            break
        deployment = _deployment(question, resolved, plan, best_so_far)
        if deployment is None:
            continue
        kept.append(deployment)
        if deployment.is_feasible:
            best_so_far = (deployment.gpus, deployment.layout.gpus_per_replica)
    # What takes too many GPUs does carry the load: nothing was found to be impossible.
    is_known = len(kept) == len(layouts) or any(deployment.is_feasible for deployment in kept)
    return tuple(kept) if is_known else ()


def _by_hope(
    question: SizeQuestion, resolved: Resolved, layouts: Sequence[Layout], hope: float
) -> Iterator[tuple[Count, MemoryPlan]]:
    """Yield plans by the count that may be hoped for, the smallest first; who stops early plans only what came.

    No deployment has fewer GPUs than one of its replicas: with that a layout waits until it is its turn.
    """
    waiting: list[tuple[Count, int, MemoryPlan | None]] = [
        ((float(layout.gpus_per_replica), layout.gpus_per_replica), index, None) for index, layout in enumerate(layouts)
    ]
    heapify(waiting)
    while waiting:
        count, index, plan = heappop(waiting)
        if plan is not None:
            yield count, plan
            continue
        planned_now = _plan(question, resolved, layouts[index])
        heappush(waiting, (_hoped(question, planned_now, hope), index, planned_now))


def _plan(question: SizeQuestion, resolved: Resolved, layout: Layout) -> MemoryPlan:
    return planned(resolved, layout, question.load.input_tokens, question.load.output_tokens)


def next_smaller(question: SizeQuestion, chosen: Deployment) -> Deployment | None:
    """Return what the largest layout with fewer GPUs than the chosen one's replica could do; None below it."""
    resolved = resolve_size(question)
    sizes = {layout: layout.gpus_per_replica for layout in legal_layouts(resolved, question.layout)}
    below = [layout for layout, gpus in sizes.items() if gpus < chosen.layout.gpus_per_replica]
    if not below:
        return None
    return _deployment(question, resolved, _plan(question, resolved, max(below, key=lambda layout: sizes[layout])))


def fewest_gpus(question: SizeQuestion, hope: float = HOPED) -> float:
    """Return the GPUs of any deployment were kernels faster than a quick estimate by a factor; infinite if too slow.

    Raises:
        EngineError: the question contradicts itself or names something without a rule.
    """
    resolved = resolve_size(question)
    (fewest, _), _ = next(_by_hope(question, resolved, legal_layouts(resolved, question.layout), hope))
    return fewest


def _hoped(question: SizeQuestion, plan: MemoryPlan, hope: float) -> Count:
    """Return the count that memory and an optimistic estimate of time ask for."""
    per_replica = plan.layout.gpus_per_replica
    if not plan.holds_one_request:
        return inf, per_replica
    of_one = hoped(plan, question.timers, question.load, question.limits, hope)
    if of_one is None:
        return float(per_replica), per_replica
    if not of_one:
        return inf, per_replica
    replicas = wanted_of(question.load, question.headroom).replicas(of_one) + question.headroom.spare_replicas
    return float(replicas * per_replica), per_replica


def _deployment(
    question: SizeQuestion, resolved: Resolved, plan: MemoryPlan, better_than: Count = NOBODY
) -> Deployment | None:
    """Return the replicas of one plan that carry the load; None where others with fewer GPUs are known.

    Args:
        question: what to deploy.
        resolved: its settings.
        plan: a replica's memory.
        better_than: what is known.
    """
    at_most = _replicas_below(better_than, plan.layout.gpus_per_replica) - question.headroom.spare_replicas
    replica = deciding_replica(plan, question.timers, question.load, question.limits)
    wanted = wanted_of(question.load, question.headroom)
    needed = fewest_replicas(plan, replica, wanted, question.limits, at_most)
    paced = None if replica is None else _paced(question, resolved, replica, needed - 1 if needed else at_most)
    if paced is not None or needed is None:
        return paced
    return _of_replicas(question, resolved, plan, replica, needed)


def _paced(question: SizeQuestion, resolved: Resolved, replica: Replica, at_most: float) -> Deployment | None:
    """Return the fewest replicas that carry the load with a cap that keeps pace; None where more are needed.

    Args:
        question: what to deploy.
        resolved: its settings, with the engine's own cap.
        replica: one replica with the engine's own cap.
        at_most: the largest number of interest. [replicas]
    """
    wanted, limits, layout = wanted_of(question.load, question.headroom), question.limits, replica.plan.layout
    if not may_pace(resolved, question.load, limits):
        return None
    if not replica.may_be_enough(at_most, wanted, without_pace(limits)):
        return None
    fewest = None
    for capped, paced in paced_replicas(resolved, replica, limits, lambda other: _plan(question, other, layout)):
        needed = fewest_replicas(paced.plan, paced, wanted, limits, at_most)
        if needed:
            fewest = replace(_of_replicas(question, capped, paced.plan, paced, needed), is_paced=True)
            at_most = needed - 1
    return fewest


def _of_replicas(
    question: SizeQuestion, resolved: Resolved, plan: MemoryPlan, replica: Replica | None, needed: int
) -> Deployment:
    """Return so many replicas, and the spares; none where no number carries the load."""
    return Deployment(
        resolved=resolved,
        plan=plan,
        replica=replica,
        load=question.load,
        limits=question.limits,
        replicas=needed + question.headroom.spare_replicas if needed else 0,
    )


def _replicas_below(better_than: Count, per_replica: int) -> float:
    """Return the most replicas with fewer GPUs than others, or as many in smaller replicas."""
    gpus, others_per_replica = better_than
    if gpus == inf:
        return inf
    return gpus // per_replica if per_replica < others_per_replica else ceil(gpus / per_replica) - 1


def best(candidates: tuple[Deployment, ...], limits: Limits) -> Deployment:
    """Return the deployment with the fewest GPUs; among equals the smallest replica.

    Without a feasible one, return the layout that misses the least memory, then the one that is
    fastest for a single request.
    """
    feasible = [each for each in candidates if each.is_feasible]
    if feasible:
        return min(feasible, key=lambda each: (each.gpus, each.layout.gpus_per_replica))
    return min(
        candidates, key=lambda each: (each.plan.shortfall_bytes, _excess(each, limits), each.layout.gpus_per_replica)
    )


def _excess(deployment: Deployment, limits: Limits) -> float:
    """Return how many times a single request alone takes what the tighter limit allows."""
    if deployment.replica is None:
        return 0.0
    alone = deployment.replica.alone()
    ttft = alone.ttft_s.percentile(limits.percentile) / limits.ttft_s if limits.ttft_s else 0.0
    tpot = alone.tpot_s.percentile(limits.percentile) / limits.tpot_s if limits.tpot_s else 0.0
    return max(ttft, tpot)
