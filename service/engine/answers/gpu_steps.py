"""What one step more or fewer GPUs would do, over every layout that is searched."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf, nextafter
from typing import Final

from service.engine.answers.advice import reason
from service.engine.answers.results import GpuStep
from service.engine.fleet.aims import aim_of
from service.engine.fleet.ceilings import Ceilings
from service.engine.fleet.choice import better
from service.engine.fleet.deployments import Deployment, deployment_of, plan_for, resolve_size
from service.engine.fleet.planned import layouts_of, legal_layouts
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.rooms import rooms_of
from service.engine.fleet.space import is_odd, simplicity
from service.engine.inputs import Layout, Limits

PARTS: Final = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "expert_parallel")
MOST_TRIED: Final = 4  # layouts that may fill a count between the answer's and one more replica
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
    """Return the fewest GPUs above the answer's with which a layout of powers of two carries the load.

    One more replica does; where a replica is of several GPUs, smaller ones may fill a count before it. None without an
    answer.
    """
    if not chosen.is_feasible:
        return None
    gpus, layout = chosen.gpus + chosen.layout.gpus_per_replica, chosen.layout
    for fewer, usd_per_hour, other in _counts_above(question, chosen):
        one = replace(question, layout=replace(question.layout, **{part: getattr(other, part) for part in PARTS}))
        if better(one, (nextafter(fewer, inf), 0.0))[0] <= fewer:
            return GpuStep(gpus=fewer, feasible=True, violates=None, usd_per_hour=_priced(usd_per_hour))
    return GpuStep(gpus=gpus, feasible=True, violates=None, usd_per_hour=_usd_per_hour(question, layout, gpus))


def notches(question: SizeQuestion, chosen: Deployment) -> tuple[str, ...]:
    """Return what a slightly looser limit saves, where many GPUs stand on the edge of what one request takes.

    Of all layouts and settings: on the edge it is seldom the engine's own that a notch lets carry the load.
    """
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


def _counts_above(question: SizeQuestion, chosen: Deployment) -> list[tuple[int, float, Layout]]:
    """Return the GPUs between the answer's and one more replica that layouts fill, with their price, as far as may do.

    What no deployment of a layout is better than leaves most of them out. The fewest come first, and of those the
    cheapest, then the plainest.
    """
    if chosen.layout.gpus_per_replica == 1:
        return []
    resolved, least = resolve_size(question), 1 + question.headroom.spare_replicas
    ceilings = Ceilings(question=question, resolved=resolved, rooms=rooms_of(resolved))
    aim = aim_of("cost", question.gpu, question.offers)
    counts: list[tuple[int, float, Layout]] = []
    for layout in layouts_of(question, resolved).usual:
        replicas = max(chosen.gpus // layout.gpus_per_replica + 1, least)
        gpus = replicas * layout.gpus_per_replica
        is_below = gpus < chosen.gpus + chosen.layout.gpus_per_replica and not is_odd(layout)
        if is_below and ceilings.replicas_at_best(layout, replicas, is_own=False) <= replicas:
            counts.append((gpus, aim.merit(layout, replicas)[0], layout))
    return sorted(counts, key=lambda each: (*each[:2], simplicity(each[2])))[:MOST_TRIED]


def _priced(usd_per_hour: float) -> float | None:
    return None if usd_per_hour == inf else usd_per_hour


def _usd_per_hour(question: SizeQuestion, layout: Layout, gpus: int) -> float | None:
    """Return the price of so many GPUs in replicas of a layout; None where no offer holds them."""
    usd_per_hour, _ = aim_of("cost", question.gpu, question.offers).merit(layout, gpus // layout.gpus_per_replica)
    return _priced(usd_per_hour)
