"""What one step more or fewer GPUs would do, over every layout that is searched."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf, nextafter
from typing import Final

from service.engine.answers.advice import reason
from service.engine.answers.results import GpuStep
from service.engine.fleet.aims import aim_of
from service.engine.fleet.choice import better
from service.engine.fleet.deployments import Deployment, deployment_of, plan_for, resolve_size
from service.engine.fleet.planned import legal_layouts
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.space import simplicity
from service.engine.inputs import Layout, Limits

MANY_GPUS: Final = 64
NOTCH: Final = 1.25
WORTH_TELLING: Final = 2 / 3  # of the GPUs, that a notch leaves at most


def next_smaller(question: SizeQuestion, chosen: Deployment) -> Deployment | None:
    """Return what the largest layout with fewer GPUs than the chosen one's only replica could do; None below it."""
    if chosen.replicas > 1:
        return None
    resolved = resolve_size(question)
    usual = legal_layouts(resolved, question.layout).usual
    below = [layout for layout in usual if layout.gpus_per_replica < chosen.layout.gpus_per_replica]
    if not below:
        return None
    largest = max(layout.gpus_per_replica for layout in below)
    layout = min((each for each in below if each.gpus_per_replica == largest), key=simplicity)
    return deployment_of(question, resolved, plan_for(question, resolved, layout))


def one_step_less(question: SizeQuestion, chosen: Deployment, smaller: Deployment | None) -> GpuStep | None:
    """Return the most GPUs below the answer's that any layout fills, and what they violate; None on the smallest."""
    if not chosen.is_feasible:
        return None
    counts = _counts_below(question, chosen)
    if not counts:
        return None
    gpus, layout = max(counts, key=lambda count: (count[0], -count[1].gpus_per_replica))
    violates = chosen.capacity.binds if smaller is None else reason(smaller)
    return GpuStep(gpus=gpus, feasible=False, violates=violates, usd_per_hour=_usd_per_hour(question, layout, gpus))


def one_step_more(question: SizeQuestion, chosen: Deployment) -> GpuStep | None:
    """Return the next count that adds a whole replica."""
    if not chosen.is_feasible:
        return None
    gpus = chosen.gpus + chosen.layout.gpus_per_replica
    return GpuStep(gpus=gpus, feasible=True, violates=None, usd_per_hour=_usd_per_hour(question, chosen.layout, gpus))


def notches(question: SizeQuestion, chosen: Deployment) -> tuple[str, ...]:
    """Return what a slightly looser limit saves, where many GPUs stand on the edge of what one request takes."""
    if chosen.gpus < MANY_GPUS:
        return ()
    told: list[str] = []
    for name, limits in _looser(question.limits):
        looser = replace(question, limits=limits)
        too_many = chosen.gpus * WORTH_TELLING
        gpus, _ = better(looser, (nextafter(too_many, inf), 0.0))
        if gpus <= too_many:
            told.append(f"{name} takes {gpus:.0f} GPUs instead of {chosen.gpus}")
    return tuple(told)


def _looser(limits: Limits) -> Iterator[tuple[str, Limits]]:
    """Yield limits of which one is a quarter longer, and how that is stated."""
    if limits.ttft_s is not None:
        yield f"ttft_s={NOTCH * limits.ttft_s:.3g}", replace(limits, ttft_s=NOTCH * limits.ttft_s)
    if limits.tpot_s is not None:
        yield f"tpot_s={NOTCH * limits.tpot_s:.3g}", replace(limits, tpot_s=NOTCH * limits.tpot_s)


def _counts_below(question: SizeQuestion, chosen: Deployment) -> list[tuple[int, Layout]]:
    """Return the most GPUs below the answer's that each layout fills with whole replicas."""
    layouts = legal_layouts(resolve_size(question), question.layout).usual
    least = 1 + question.headroom.spare_replicas
    filled = [((chosen.gpus - 1) // layout.gpus_per_replica, layout) for layout in layouts]
    return [(replicas * layout.gpus_per_replica, layout) for replicas, layout in filled if replicas >= least]


def _usd_per_hour(question: SizeQuestion, layout: Layout, gpus: int) -> float | None:
    """Return the price of so many GPUs in replicas of a layout; None where no offer holds them."""
    usd_per_hour, _ = aim_of("cost", question.gpu, question.offers).merit(layout, gpus // layout.gpus_per_replica)
    return None if usd_per_hour == inf else usd_per_hour
