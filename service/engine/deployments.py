"""Ways to carry a load on one GPU type: one deployment per legal layout."""

from dataclasses import dataclass

from service.engine.defaults import Resolved, resolve
from service.engine.inputs import Layout
from service.engine.layouts import candidate_layouts
from service.engine.plan import MemoryPlan, memory_plan
from service.engine.questions import SizeQuestion
from service.engine.replicas import (
    ReplicaCapacity,
    concurrency_of,
    memory_capacity,
    replicas_needed,
    with_headroom,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """So many replicas of one plan; no replicas when the layout cannot carry the load."""

    plan: MemoryPlan
    capacity: ReplicaCapacity
    replicas: int  # spares included

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


def deployments(question: SizeQuestion) -> tuple[Deployment, ...]:
    """Return one deployment per legal layout, smallest replica first."""
    resolved = resolve_size(question)
    layouts = candidate_layouts(
        question.model.architecture, resolved.checkpoint.quantization, question.gpu, question.layout
    )
    return tuple(_deployment(question, resolved, layout) for layout in layouts)


def _deployment(question: SizeQuestion, resolved: Resolved, layout: Layout) -> Deployment:
    plan = memory_plan(
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
    capacity = memory_capacity(plan)
    if not plan.holds_one_request or capacity.max_concurrent_requests < 1:
        return Deployment(plan=plan, capacity=capacity, replicas=0)
    asked = with_headroom(concurrency_of(question.load), question.headroom)
    replicas = replicas_needed(asked, capacity) + question.headroom.spare_replicas
    return Deployment(plan=plan, capacity=capacity, replicas=replicas)


def best(candidates: tuple[Deployment, ...]) -> Deployment:
    """Return the deployment with the fewest GPUs; among equals the smallest replica.

    Without a feasible one, return the layout that misses the least memory.
    """
    feasible = [it for it in candidates if it.is_feasible]
    if feasible:
        return min(feasible, key=lambda it: (it.gpus, it.layout.gpus_per_replica))
    return min(candidates, key=lambda it: (it.plan.shortfall_bytes, it.layout.gpus_per_replica))
