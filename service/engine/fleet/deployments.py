"""Replicas that carry a load: so many of one plan."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, inf

from service.engine.fleet.estimates import replica_for
from service.engine.fleet.pacing import as_paced, may_pace, paced_replicas, wants_fewer_at_once, without_pace
from service.engine.fleet.planned import surely_planned
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.settings import Resolved, longest_request, resolve
from service.engine.inputs import Headroom, Layout, Limits, Load
from service.engine.memory.plan import MemoryPlan
from service.engine.time.carried import Carried, carried, fewest_replicas, keeps
from service.engine.time.demand import Arrivals, Demand, demand_of, kind_of, wanted_of
from service.engine.time.replica import Replica, timed
from service.engine.time.results import LoadState
from service.engine.time.roomy import may_be_paced, share_of
from service.engine.time.samples import ScheduleResult
from service.engine.time.steps import StepTimers


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

    def wanted_at_most(self, headroom: Headroom) -> int:
        """Return the most users that memory alone lets so many replicas carry, with headroom but without spares."""
        return (self.replicas - headroom.spare_replicas) * self.capacity.max_concurrent_requests

    def seen(self) -> ScheduleResult | None:
        """Return what users of one replica see when all share the load evenly; None where nobody times it."""
        if self.replica is None or not self.replicas:
            return None
        share = demand_of(self.load).per_replica(self.replicas)
        if self.load.num_prompts is None:
            return self.replica.seen(share, self.replica.measured_for(share, self.limits))
        return self.replica.benchmarked(share, ceil(self.load.num_prompts / self.replicas))

    def latency_s(self, percentile: float) -> float:
        """Return the time to the last token of users who share the load evenly; 0 where nobody times it. [s]."""
        share = self.share
        if self.load.num_prompts is None and self.replica is not None and share is not None:
            return self.replica.latency_s(share, self.replica.measured_for(share, self.limits), percentile)
        seen = self.seen()
        return 0.0 if seen is None else seen.end_to_end_s.percentile(percentile)

    def state(self) -> LoadState | None:
        """Return the state of all replicas at the asked load; None where nobody times it, or nobody asked."""
        if self.replica is None or not self.replicas or not self.is_asked:
            return None
        asked = demand_of(self.load)
        share = asked.per_replica(self.replicas)
        if self.load.num_prompts is None:
            return self.replica.together(asked, self.replicas, self.replica.measured_for(share, self.limits))
        of_one = ceil(self.load.num_prompts / self.replicas)
        seen = self.replica.benchmarked(share, of_one)
        return seen.state(min(asked.amount / share.amount, self.load.num_prompts / of_one))

    def with_times(self, timers: StepTimers | None) -> "Deployment":
        """Return the same deployment with its times, where only memory decided so far."""
        if self.replica is not None:
            return self
        return replace(self, replica=timed(self.plan, timers, self.load))


def resolve_size(question: SizeQuestion) -> Resolved:
    """Return the question's settings without a gap."""
    context, answer = question.load.input_tokens + question.load.output_tokens, question.load.output_tokens
    longest = longest_request(question.load, context)
    return resolve(question.model, question.gpu, question.settings, question.rules, context, longest, answer)


def plan_for(question: SizeQuestion, resolved: Resolved, layout: Layout) -> MemoryPlan:
    """Return one replica's memory for requests of the asked lengths."""
    return surely_planned(resolved, layout, question.load.input_tokens, question.load.output_tokens)


def deployment_of(
    question: SizeQuestion,
    resolved: Resolved,
    plan: MemoryPlan,
    at_most: float = inf,
    *,
    is_sure: bool = True,
    replica: Replica | None = None,
    may_pace_it: Callable[[Deployment], bool] = lambda _: True,
) -> Deployment | None:
    """Return the replicas of one plan that carry the load; None where it takes more than so many.

    Args:
        question: what to deploy.
        resolved: its settings.
        plan: a replica's memory.
        at_most: the largest number of interest, spares included. [replicas]
        is_sure: its share of the load is simulated as well; else `keeps_limits` is asked later. [yes or no]
        replica: of the plan, where it is known.
        may_pace_it: whether fewer replicas under a cap are of interest beside those that carry the load without one.
    """
    at_most -= question.headroom.spare_replicas
    if at_most < 1:
        return None
    replica = replica or replica_for(question, plan)
    wanted = wanted_of(question.load, question.headroom)
    needed = fewest_replicas(plan, replica, wanted, question.limits, at_most, is_sure=is_sure)
    whole = None if needed is None else _of_replicas(question, resolved, plan, replica, needed)
    if replica is None or (needed and whole is not None and not may_pace_it(whole)):
        return whole
    fewer = needed - 1 if needed else at_most
    return _paced(question, resolved, replica, fewer, is_sure=is_sure) or whole


def keeps_limits(deployment: Deployment, question: SizeQuestion) -> bool:
    """Return whether what carries a load was simulated with exactly its share of it, and kept the limits."""
    if deployment.replica is None or not deployment.is_feasible:
        return True
    replicas = deployment.replicas - question.headroom.spare_replicas
    return keeps(deployment.replica, wanted_of(question.load, question.headroom), question.limits, replicas)


def _paced(
    question: SizeQuestion, resolved: Resolved, replica: Replica, at_most: float, *, is_sure: bool
) -> Deployment | None:
    """Return the fewest replicas that carry the load with a cap that keeps pace; None where more are needed.

    Args:
        question: what to deploy.
        resolved: its settings, with the engine's own cap.
        replica: one replica with the engine's own cap.
        at_most: the largest number of interest. [replicas]
        is_sure: as of `deployment_of`. [yes or no]
    """
    wanted, limits, layout = wanted_of(question.load, question.headroom), question.limits, replica.plan.layout
    if not may_pace(resolved, question.load, limits):
        return None
    waiting_longer, share = without_pace(limits), share_of(wanted, at_most)
    if not replica.may_be_enough(at_most, wanted, waiting_longer):
        return None
    if isinstance(share, Arrivals) and not may_be_paced(replica, share, limits):
        return None
    fewest = None
    for capped, paced in paced_replicas(resolved, replica, limits, lambda other: plan_for(question, other, layout)):
        needed = fewest_replicas(paced.plan, paced, wanted, limits, at_most, is_sure=is_sure)
        if needed:
            fewest = replace(_of_replicas(question, capped, paced.plan, paced, needed), is_paced=True)
            at_most = needed - 1
        if at_most < 1 or not wants_fewer_at_once(paced, wanted, limits, at_most):
            break
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


def excess(deployment: Deployment, limits: Limits) -> float:
    """Return how many times a single request alone takes what the tighter limit allows."""
    if deployment.replica is None:
        return 0.0
    alone = deployment.replica.alone()
    ttft = alone.ttft_s.percentile(limits.percentile) / limits.ttft_s if limits.ttft_s else 0.0
    tpot = alone.tpot_s.percentile(limits.percentile) / limits.tpot_s if limits.tpot_s else 0.0
    return max(ttft, tpot)


def highest_rate(deployment: Deployment) -> float:
    """Return the highest rate of one replica within limits; 0 where nobody tells time. [1/s]."""
    replica = deployment.replica
    return 0.0 if replica is None else replica.most(Arrivals, deployment.limits).load
