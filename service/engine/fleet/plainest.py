"""Of the layouts that start with a whole context, the plainest that holds hardly fewer, on the GPUs given.

Where nobody says how long requests are, an engine is started for the longest that a model takes. Replicas over several
servers may hold a few such requests more than the copies within one that operators start, and answer fewer of them.
"""

from dataclasses import replace
from typing import Final

from service.engine.fleet.deployments import Deployment
from service.engine.fleet.given_gpus import FAR, FORGONE, as_started, asked_users, merit_of, pace
from service.engine.fleet.lengths import has_lengths
from service.engine.fleet.planned import legal_layouts
from service.engine.fleet.questions import CapacityQuestion
from service.engine.fleet.settings import Resolved
from service.engine.fleet.soonest import needed_for, soonest
from service.engine.fleet.space import simplicity
from service.engine.time.carried import needs_time

ANSWERED: Final = FAR  # of the rate of what holds most


def preferred(question: CapacityQuestion, resolved: Resolved, most: Deployment) -> Deployment:
    """Return what carries most, or what ends a load far sooner or is plainer, and carries hardly less.

    Args:
        question: what was asked.
        resolved: its settings.
        most: the deployment that carries most.
    """
    layouts = legal_layouts(resolved, question.layout).usual
    if all(layout == most.layout or layout.gpus_per_replica > question.gpu_count for layout in layouts):
        return most
    return (soonest if has_lengths(question) else plainest)(question, resolved, most)


def plainest(question: CapacityQuestion, resolved: Resolved, most: Deployment) -> Deployment:
    """Return the plainest layout that holds at most a twentieth fewer whole contexts; what holds most where none does.

    It holds no fewer than one GPU less does at most, of the same length, and answers about as often.

    Args:
        question: what was asked.
        resolved: its settings.
        most: the deployment that holds most requests.
    """
    if has_lengths(question) or needs_time(question.load, question.limits) or not most.is_feasible:
        return most
    needed, roomiest, least = needed_for(question, resolved, most)
    _, context, held = merit_of(needed, roomiest)
    least = max(least, (True, context, max((1 - FORGONE) * held, min(asked_users(question.load), held))))
    enough = ANSWERED * _rate(needed, roomiest)
    layouts = legal_layouts(resolved, question.layout).usual
    for layout in sorted((each for each in layouts if each.gpus_per_replica <= needed.gpu_count), key=simplicity):
        if simplicity(layout) >= simplicity(roomiest.layout):
            break
        other = as_started(needed, resolved, layout)
        if merit_of(needed, other) >= least and _rate(needed, other) >= enough:
            return replace(other, replicas=question.gpu_count // layout.gpus_per_replica)
    return most


def _rate(question: CapacityQuestion, deployment: Deployment) -> float:
    """Return how often all replicas answer with every slot taken; 0 where nobody times them. [1/s]."""
    return deployment.replicas * pace(question, deployment)[0]
