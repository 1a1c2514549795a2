"""Ways to carry a load on one GPU type: one deployment per legal layout."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, inf
from typing import Final

from service.engine.engines.device import device_of
from service.engine.errors import InvalidQuestionError
from service.engine.fleet.layouts import candidate_layouts
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.replicas import (
    ReplicaCapacity,
    as_paced,
    can_pace,
    concurrency_of,
    fewest_replicas,
    is_by_rate,
    memory_capacity,
    needs_time,
    pacing_caps,
    planned_rate,
    replica_capacity,
    replicas_for,
    with_headroom,
    without_pace,
)
from service.engine.fleet.settings import Resolved, resolve, with_max_num_seqs
from service.engine.inputs import Layout, Limits, Load
from service.engine.memory.drafts import drafter_fraction
from service.engine.memory.plan import MemoryPlan, memory_plan
from service.engine.time.drafting import drafting
from service.engine.time.replica import Replica, at_concurrency, at_rate, replica_of
from service.engine.time.results import Latency, LoadState
from service.engine.time.scheduler import ScheduleResult
from service.engine.time.search import estimated_rate, highest_rate, hoped_users
from service.engine.time.steps import StepTimers, deployed
from service.engine.time.traffic import traffic_of

# Kernels may be so many times faster than the quick estimate.
HOPED: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """So many replicas of one plan; no replicas when the layout cannot carry the load."""

    plan: MemoryPlan
    replica: Replica | None  # None: time does not decide, or is unknown
    load: Load
    limits: Limits
    replicas: int  # spares included
    is_paced: bool = False  # `max_num_seqs` is chosen to keep the limit on TPOT

    @property
    def capacity(self) -> ReplicaCapacity:
        """Return what one replica carries."""
        carried = replica_capacity(self.plan, self.replica, self.load, self.limits)
        return as_paced(carried) if self.is_paced else carried

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
    plans = [_plan(question, resolved, layout) for layout in _layouts(question, resolved)]
    ordered = sorted(
        ((_fewest_gpus(question, plan, hope), plan.layout.gpus_per_replica, index) for index, plan in enumerate(plans))
    )
    found: list[Deployment] = []
    left_out = False
    best_so_far = (inf, 0) if at_most_gpus is None else (at_most_gpus + 1, 0)
    for fewest, per_replica, index in ordered:
        if (fewest, per_replica) >= best_so_far and best_so_far[0] < inf:
            left_out = True
            continue
        deployment = _deployment(question, plans[index], best_so_far)
        if deployment is None:
            left_out = True
            continue
        found.append(deployment)
        if deployment.is_feasible:
            best_so_far = (deployment.gpus, per_replica)
    # What takes too many GPUs does carry the load: nothing was found to be impossible.
    return () if left_out and not any(it.is_feasible for it in found) else tuple(found)


def _layouts(question: SizeQuestion, resolved: Resolved) -> tuple[Layout, ...]:
    return candidate_layouts(
        question.model.architecture,
        resolved.checkpoint.quantization,
        question.gpu,
        question.layout,
        device_of(question.gpu, question.rules),
    )


def next_smaller(question: SizeQuestion, chosen: Deployment) -> Deployment | None:
    """Return what the largest layout with fewer GPUs than the chosen one's replica could do; None below it."""
    resolved = resolve_size(question)
    below = [it for it in _layouts(question, resolved) if it.gpus_per_replica < chosen.layout.gpus_per_replica]
    if not below:
        return None
    return _deployment(question, _plan(question, resolved, max(below, key=lambda it: it.gpus_per_replica)))


def fewest_gpus(question: SizeQuestion, hope: float = HOPED) -> float:
    """Return the GPUs of any deployment were kernels faster than a quick estimate by a factor; infinite if too slow.

    Raises:
        EngineError: the question contradicts itself or names something without a rule.
    """
    resolved = resolve_size(question)
    plans = (_plan(question, resolved, layout) for layout in _layouts(question, resolved))
    return min(_fewest_gpus(question, plan, hope) for plan in plans)


def _fewest_gpus(question: SizeQuestion, plan: MemoryPlan, hope: float = HOPED) -> float:
    """Return the GPUs that memory and an optimistic estimate of time ask for."""
    held = memory_capacity(plan).max_concurrent_requests
    if not plan.holds_one_request or not held:
        return inf
    load, headroom = question.load, question.headroom
    replica = None
    if question.timers is not None and needs_time(load, question.limits):
        quick = question.timers.quick(deployed(plan))
        if quick is None:
            return 0.0
        replica = replica_of(plan, quick, traffic_of(load))
        held = hoped_users(replica, question.limits, hope)
        if not held:
            return inf
    if replica is not None and is_by_rate(load):
        needed = replicas_for(planned_rate(load, headroom), hope * estimated_rate(replica, held))
    else:
        needed = replicas_for(with_headroom(concurrency_of(load), headroom), held)
    return float((needed + headroom.spare_replicas) * plan.layout.gpus_per_replica)


def _plan(question: SizeQuestion, resolved: Resolved, layout: Layout) -> MemoryPlan:
    return memory_plan(
        question.model,
        resolved.checkpoint,
        question.gpu,
        layout,
        resolved.settings,
        question.rules,
        input_tokens=question.load.input_tokens,
        output_tokens=question.load.output_tokens,
        shorten_to_fit=resolved.shorten_to_fit,
    )


def _deployment(
    question: SizeQuestion, plan: MemoryPlan, better_than: tuple[float, int] = (inf, 0)
) -> Deployment | None:
    """Return the replicas of one plan that carry the load; None where others with fewer GPUs are known.

    Args:
        question: what to deploy.
        plan: a replica's memory.
        better_than: GPUs of what is known, and GPUs of its replicas.
    """
    load, limits = question.load, question.limits
    replica = None
    if needs_time(load, limits):
        replica = timed(plan, question.timers, load)
        require_time(plan, question.timers, replica)
    spares = question.headroom.spare_replicas
    at_most = _replicas_below(better_than, plan.layout.gpus_per_replica) - spares
    needed = fewest_replicas(plan, replica, load, question.headroom, limits, at_most)
    chosen, is_paced = replica, False
    if replica is not None and _may_pace(question, replica, needed - 1 if needed else at_most):
        for paced in paced_replicas(replica, question.timers, load, limits, _capped_plans(question, plan.layout)):
            below = needed - 1 if needed else at_most
            fewer = fewest_replicas(paced.plan, paced, load, question.headroom, limits, below)
            if fewer:
                needed, chosen, is_paced = fewer, paced, True
    if needed is None:
        return None
    return Deployment(
        plan=plan if chosen is None else chosen.plan,
        replica=chosen,
        load=load,
        limits=limits,
        replicas=needed + spares if needed else 0,
        is_paced=is_paced,
    )


def _may_pace(question: SizeQuestion, replica: Replica, at_most: float) -> bool:
    """Return whether so few replicas would do, were time per output token left alone."""
    load, limits = question.load, question.limits
    if question.settings.max_num_seqs is not None or not can_pace(load, limits):
        return False
    return bool(fewest_replicas(replica.plan, replica, load, question.headroom, without_pace(limits), at_most))


def _capped_plans(question: SizeQuestion, layout: Layout) -> Callable[[int], MemoryPlan]:
    resolved = resolve_size(question)
    return lambda cap: _plan(question, with_max_num_seqs(resolved, cap), layout)


def paced_replicas(
    replica: Replica, timers: StepTimers | None, load: Load, limits: Limits, planned: Callable[[int], MemoryPlan]
) -> Iterator[Replica]:
    """Yield a replica with each cap on running requests that keeps pace, none of which carries more than without limit.

    Args:
        replica: the replica with the engine's own cap.
        timers: what times a plan.
        load: arrivals.
        limits: latency at a percentile.
        planned: the same replica's plan with another `max_num_seqs`.
    """
    for cap in pacing_caps(replica, load, limits):
        paced = timed(planned(cap), timers, load)
        if paced is not None:
            most = highest_rate(replica, without_pace(limits)).load
            yield replica_of(paced.plan, paced.timer, paced.traffic, most)


def _replicas_below(better_than: tuple[float, int], per_replica: int) -> float:
    """Return the most replicas with fewer GPUs than others, or as many in smaller replicas."""
    gpus, others_per_replica = better_than
    if gpus == inf:
        return inf
    return gpus // per_replica if per_replica < others_per_replica else ceil(gpus / per_replica) - 1


def timed(plan: MemoryPlan, timers: StepTimers | None, load: Load) -> Replica | None:
    """Return a plan with its step times; None where it holds no request or nobody times it."""
    if timers is None or not plan.holds_one_request:
        return None
    timer = timers.timer(deployed(plan))
    if timer is None:
        return None
    drafted = plan.settings.num_speculative_tokens
    if drafted:
        timer = drafting(timer, drafted, drafter_fraction(plan.model.architecture, plan.settings))
    return replica_of(plan, timer, traffic_of(load))


def require_time(plan: MemoryPlan, timers: StepTimers | None, replica: Replica | None) -> None:
    """Raise where a question turns on time and nobody can tell it.

    Raises:
        InvalidQuestionError: the GPU's entry states no peak.
    """
    if replica is None and timers is not None and plan.holds_one_request:
        raise InvalidQuestionError(
            f"{plan.gpu.id} states no peak FLOP/s, so its latency and throughput are unknown",
            field="gpu",
            accepted="a GPU with a stated peak, or a question without ttft_s, tpot_s and request_rate_per_s",
        )


def schedule_at(replica: Replica, load: Load, replicas: int) -> ScheduleResult:
    """Return what users of one of so many equal replicas see when all share a load evenly."""
    if is_by_rate(load) and load.request_rate_per_s is not None:
        return at_rate(replica, load.request_rate_per_s / replicas)
    return at_concurrency(replica, ceil(concurrency_of(load) / replicas))


def latency_of(replica: Replica, found: ScheduleResult) -> Latency:
    """Return a schedule's latencies, and how far they may be off."""
    return Latency(
        ttft_s=found.ttft_s.distribution(),
        tpot_s=found.tpot_s.distribution(),
        itl_s=found.itl_s,
        end_to_end_s=found.end_to_end_s.distribution(),
        basis=replica.timer.basis,
        basis_note=replica.timer.basis_note,
        expected_error_fraction=replica.timer.expected_error_fraction,
    )


def load_state(found: ScheduleResult, replicas: int) -> LoadState:
    """Return a schedule's state for all replicas together."""
    return LoadState(
        concurrent_requests=replicas * found.requests_per_s * found.end_to_end_s.mean,
        requests_per_s=replicas * found.requests_per_s,
        output_tokens_per_s=replicas * found.output_tokens_per_s,
        queue_growth_per_s=replicas * found.queue_growth_per_s,
        kv_cache_fraction=found.max_kv_fraction,
        preemptions_per_request=found.preemptions / max(len(found.end_to_end_s.ordered), 1),
    )


def best(candidates: tuple[Deployment, ...], limits: Limits) -> Deployment:
    """Return the deployment with the fewest GPUs; among equals the smallest replica.

    Without a feasible one, return the layout that misses the least memory, then the one that is
    fastest for a single request.
    """
    feasible = [it for it in candidates if it.is_feasible]
    if feasible:
        return min(feasible, key=lambda it: (it.gpus, it.layout.gpus_per_replica))
    return min(candidates, key=lambda it: (it.plan.shortfall_bytes, _excess(it, limits), it.layout.gpus_per_replica))


def _excess(it: Deployment, limits: Limits) -> float:
    """Return how many times a single request alone takes what the tighter limit allows."""
    if it.replica is None:
        return 0.0
    alone = at_concurrency(it.replica, 1)
    ttft = alone.ttft_s.percentile(limits.percentile) / limits.ttft_s if limits.ttft_s else 0.0
    tpot = alone.tpot_s.percentile(limits.percentile) / limits.tpot_s if limits.tpot_s else 0.0
    return max(ttft, tpot)
