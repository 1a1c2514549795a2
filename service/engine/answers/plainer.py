"""What a plainer layout than the one with the fewest GPUs would take, or do on GPUs that are paid for anyway.

Odd is a size that is no power of two, as six GPUs in stages of two, or caches spread within copies of the attention:
truly the fewest, and started by few; so are layers that are split over servers, whose network is part of every step.
Usual are powers of two, with stages over whole servers alone.

More GPUs cost less where they fill what is rented, or fit smaller instances. No deployment takes fewer than the fewest,
so that none costs less than those at the least that anybody asks for a GPU.
"""

from dataclasses import replace
from math import inf
from typing import Final

from service.engine.arithmetic import three_digits
from service.engine.fleet.aims import NOTHING, Aim, Merit, aim_of
from service.engine.fleet.ceilings import Ceilings
from service.engine.fleet.choice import better, deployments
from service.engine.fleet.deployments import Deployment, deployment_of, plan_for, resolve_size
from service.engine.fleet.planned import legal_layouts
from service.engine.fleet.questions import Objective, SizeQuestion
from service.engine.fleet.ranking import best, latency_s
from service.engine.fleet.rooms import rooms_of
from service.engine.fleet.space import is_odd, simplicity, splits_over_servers
from service.engine.inputs import Gpu, Layout

MOST_TRIED: Final = 3
WORTH: Final = 0.01  # of the price
MOST_SIZED: Final = 8  # layouts; where the next usual one is not among them, nothing is told


def plainer(question: SizeQuestion, chosen: Deployment) -> tuple[str, ...]:
    """Return what a plainer layout does, where the one with the fewest GPUs leaves paid ones idle, or is odd.

    Beside it what costs less.
    """
    return (*(on_paid_gpus(question, chosen) or next_usual(question, chosen)), *cheaper(question, chosen))


def on_paid_gpus(question: SizeQuestion, chosen: Deployment) -> tuple[str, ...]:
    """Return what all GPUs of the instances would do sooner in a plainer layout, where the fewest leave some idle."""
    if not chosen.gpus:
        return ()
    usd_per_hour, paid = aim_of("cost", question.gpu, question.offers).merit(chosen.layout, chosen.replicas)
    if usd_per_hour == inf or paid == chosen.gpus:
        return ()
    other = _plainest_on(question, chosen, int(paid))
    if other is None or latency_s(other, question) >= latency_s(chosen, question):
        return ()
    needed = "the 1 GPU" if chosen.gpus == 1 else f"the {chosen.gpus} GPUs"
    told = (
        f"{stated(other.layout)} uses all {int(paid)} GPUs that are paid for anyway: requests end within "
        f"{three_digits(latency_s(other, question))} s at the 95th percentile, on {needed} needed at least within "
        f"{three_digits(latency_s(chosen, question))} s"
    )
    return (told,)


def next_usual(question: SizeQuestion, chosen: Deployment, objective: Objective = "gpus") -> tuple[str, ...]:
    """Return the best that operators start, where the best of all by GPUs or price is a layout that few do."""
    is_over_servers = splits_over_servers(chosen.layout, question.gpu)
    is_rare = is_over_servers or is_odd(chosen.layout)
    if not chosen.gpus or not is_rare or objective not in ("gpus", "cost"):
        return ()
    other = _usual(question, chosen, objective)
    if other is None:
        return ()
    usd_per_hour, _ = aim_of("cost", question.gpu, question.offers).merit(other.layout, other.replicas)
    price = "" if usd_per_hour == inf else f", {usd_per_hour:.2f} USD/h"
    copies = f"{other.replicas} replicas of " if other.replicas > 1 else ""
    why = (
        "splits layers over servers, whose network is part of every step"
        if is_over_servers
        else "is odd, and few run it"
    )
    told = (
        f"{stated(chosen.layout)} {why}: the next usual layout takes {other.gpus} GPUs, as "
        f"{copies}{stated(other.layout)}{price}"
    )
    return (told,)


def cheaper(question: SizeQuestion, chosen: Deployment) -> tuple[str, ...]:
    """Return the layout that costs least, where that is not the one with the fewest GPUs."""
    aim = aim_of("cost", question.gpu, question.offers)
    usd_per_hour, _ = aim.merit(chosen.layout, chosen.replicas) if chosen.is_feasible else (inf, 0)
    worth = (1 - WORTH) * usd_per_hour
    if usd_per_hour == inf or worth <= chosen.gpus * _least_usd_per_gpu(aim):
        return ()
    least = better(question, (worth, 0.0), aim)
    if least[0] >= worth:
        return ()
    other = best(deployments(question, "cost", least), question, "cost")
    copies = f"{other.replicas} replicas of " if other.replicas > 1 else ""
    told = (
        f"more GPUs cost less: {other.gpus} as {copies}{stated(other.layout)} take {least[0]:.2f} USD/h, "
        f"{usd_per_hour - least[0]:.2f} less than these {chosen.gpus}"
    )
    return (told,)


def stated(layout: Layout) -> str:
    """Return a layout by the names that a question has for it.

    >>> stated(Layout(tensor_parallel_size=2, pipeline_parallel_size=3))
    'tensor_parallel_size=2 and pipeline_parallel_size=3'
    >>> stated(Layout())
    'tensor_parallel_size=1'
    """
    named = {
        "tensor_parallel_size": layout.tensor_parallel_size,
        "pipeline_parallel_size": layout.pipeline_parallel_size,
        "data_parallel_size": layout.data_parallel_size,
        "decode_context_parallel_size": layout.decode_context_parallel_size,
    }
    sizes = [f"{name}={size}" for name, size in named.items() if size > 1]
    parts = [*sizes, *(("expert_parallel=true",) if layout.expert_parallel else ())]
    parts += [f"all2all_backend={layout.all2all_backend}"] if layout.all2all_backend is not None else []
    parts += ["enable_two_batch_overlap=true"] if layout.enable_two_batch_overlap else []
    return " and ".join(parts or ("tensor_parallel_size=1",))


def is_usual(layout: Layout, gpu: Gpu) -> bool:
    """Return whether operators start a layout: powers of two, of which stages fill a server each, and layers one."""
    of_stage = layout.gpus_per_replica // layout.pipeline_parallel_size
    if is_odd(layout) or splits_over_servers(layout, gpu):
        return False
    return layout.pipeline_parallel_size == 1 or of_stage % gpu.gpus_per_node == 0


def _plainest_on(question: SizeQuestion, chosen: Deployment, gpus: int) -> Deployment | None:
    """Return the plainest layout of all powers of two whose replicas carry the load on exactly so many GPUs."""
    resolved = resolve_size(question)
    whole = [
        layout
        for layout in legal_layouts(resolved, question.layout).usual
        if layout.gpus_per_replica * chosen.replicas == gpus and not is_odd(layout) and layout != chosen.layout
    ]
    for layout in sorted(whole, key=simplicity)[:MOST_TRIED]:
        other = deployment_of(question, resolved, plan_for(question, resolved, layout), chosen.replicas)
        if other is not None and other.is_feasible:
            return other
    return None


def _usual(question: SizeQuestion, chosen: Deployment, objective: Objective) -> Deployment | None:
    """Return the best deployment of usual layouts; None where there is none, or too many may be."""
    aim = aim_of(objective, question.gpu, question.offers)
    known, usual = NOTHING, None
    for tried, (bound, layout) in enumerate(_usual_layouts(question, chosen, aim)):
        if bound >= known:
            break
        if tried == MOST_SIZED:
            return None
        other = _pinned(question, layout, objective, known)
        if other is not None and (merit := aim.merit(layout, other.replicas)) < known:
            known, usual = merit, other
    return usual


def _usual_layouts(question: SizeQuestion, chosen: Deployment, aim: Aim) -> list[tuple[Merit, Layout]]:
    """Return usual layouts with what no deployment of them is better than, the best and plainest first."""
    resolved = resolve_size(question)
    ceilings = Ceilings(question=question, resolved=resolved, rooms=rooms_of(resolved))
    least = aim.merit(chosen.layout, chosen.replicas)  # the best of all
    bounds: list[tuple[Merit, Layout]] = []
    for layout in legal_layouts(resolved, question.layout).usual:
        if layout != chosen.layout and is_usual(layout, question.gpu):
            too_few = aim.most_replicas(layout, least, is_equal_welcome=False)
            bounds.append((aim.merit(layout, max(ceilings.replicas_that_hold(layout), too_few + 1)), layout))
    return sorted(bounds, key=lambda each: (each[0], simplicity(each[1])))


def _pinned(question: SizeQuestion, layout: Layout, objective: Objective, known: Merit) -> Deployment | None:
    """Return the best deployment of one layout; None where none is as good as what is known."""
    one = replace(question, layout=question.layout.pinned_to(layout))
    candidates = [each for each in deployments(one, objective, known) if each.is_feasible]
    return best(candidates, one, objective) if candidates else None


def _least_usd_per_gpu(aim: Aim) -> float:
    """Return the least that anybody asks for one GPU. [USD/h]."""
    return min(offer.usd_per_hour / offer.gpu_count for offer in aim.offers)
