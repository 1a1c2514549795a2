"""Layouts that split every layer alone, beside a choice that has stages or copies.

A search takes other settings than the engine's own where they save GPUs or money. Among equals of both the lower
latency tells; layouts that split every layer answer soonest, and some of them fit under fewer sequences alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.engine.fleet.aims import aim_for
from service.engine.fleet.choice import deployments
from service.engine.fleet.deployments import Deployment, resolve_size
from service.engine.fleet.planned import layouts_of
from service.engine.fleet.questions import Objective, SizeQuestion
from service.engine.fleet.ranking import best
from service.engine.inputs import Layout


def best_of(question: SizeQuestion, candidates: Sequence[Deployment], objective: Objective = "gpus") -> Deployment:
    """Return the best deployment, of candidates and of what as many GPUs do that split every layer alone."""
    chosen = best(candidates, question, objective)
    if not chosen.is_feasible or objective == "latency" or _splits_alone(chosen.layout):
        return chosen
    return best((chosen, *_rivals(question, chosen, candidates, objective)), question, objective)


def _rivals(
    question: SizeQuestion, chosen: Deployment, candidates: Sequence[Deployment], objective: Objective
) -> Iterator[Deployment]:
    """Yield deployments as good in GPUs and price, of layouts that did not carry the load with the engine's own."""
    aim = aim_for(question, objective)
    merit = aim.merit(chosen.layout, chosen.replicas)
    known = {each.layout for each in candidates}
    for layout in layouts_of(question, resolve_size(question)).splitting:
        replicas, rest = divmod(chosen.gpus, layout.gpus_per_replica)
        is_as_good = not rest and aim.merit(layout, replicas) == merit
        if layout in known or not _splits_alone(layout) or not is_as_good:
            continue
        pinned = replace(question, layout=question.layout.pinned_to(layout))
        others = deployments(pinned, objective, merit)
        yield from (each for each in others if each.is_feasible and each.gpus == chosen.gpus)


def _splits_alone(layout: Layout) -> bool:
    return layout.gpus_per_replica == layout.tensor_parallel_size
