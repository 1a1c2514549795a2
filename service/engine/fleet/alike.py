"""Searches by memory alone that end alike: of users between whom no count of replicas changes, and of as many blocks.

    kept = what a search came to, with the users and the lengths for which it does

A sizing asks for half a dozen of them, one for each lever; near the edge of one the others still stand.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from math import inf
from typing import Final, cast

from service.engine.arithmetic import ceil_div
from service.engine.fleet.aims import Aim
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.settings import longest_request, served_tokens
from service.engine.inputs import Alike, Load
from service.engine.time.demand import wanted_of

MOST_KEPT: Final = 256  # searches of one model
MOST_BESIDE: Final = 8  # numbers of users of one search
BLOCK_TOKENS: Final = 16
Lengths = tuple[int, int]  # blocks of a request, and the context that is served
Deployments = tuple[Deployment, ...]
Search = Callable[[Aim], Deployments]


def lengths_of(question: SizeQuestion, load: Load) -> Lengths:
    """Return what requests that are alike have in common.

    Raises:
        InvalidQuestionError: they are longer than what the model accepts, or was stated.
    """
    context = load.input_tokens + load.output_tokens
    served = served_tokens(question.model, question.settings, context, longest_request(load, context))
    return ceil_div(context, BLOCK_TOKENS), served


def found_alike(question: SizeQuestion, way: Hashable, search: Search, aim: Aim) -> Deployments:
    """Return the best that a search finds, taking note of the users for whom it does; as it was found before, if so.

    Args:
        question: what is searched for, with a load that takes note.
        way: how, and what is to be beaten.
        search: what looks.
        aim: what is looked for, at today's prices.
    """
    alike = question.load.alike or Alike()
    bare = replace(question.load, concurrent_requests=None, input_tokens=0, output_tokens=0)
    key = (way, replace(question, load=bare), lengths_of(question, question.load))
    kept = question.model.derived.by("alike", MOST_KEPT)
    beside = cast("tuple[tuple[Alike, Deployments], ...]", kept.get(key) or ())
    users = wanted_of(question.load, question.headroom).amount
    for one, best in beside:
        if one.fewest <= users <= one.most:
            alike.join(one)
            return best
    before, alike.fewest, alike.most = Alike(alike.fewest, alike.most), 1, inf
    try:
        best = noted(question, search(aim), aim)
        kept.put(key, ((Alike(alike.fewest, alike.most), best), *beside[: MOST_BESIDE - 1]))
    finally:
        alike.join(before)  # also where the engine refuses what a lever would change
    return best


def noted(question: SizeQuestion, outcome: Sequence[Deployment], aim: Aim) -> Deployments:
    """Return the roomiest of the best, and take note of the users it carries; nothing where nothing carries any."""
    feasible = [each for each in outcome if each.is_feasible]
    if not feasible:
        return ()
    least = min(aim.merit(each.layout, each.replicas) for each in feasible)
    best = [each for each in feasible if aim.merit(each.layout, each.replicas) == least]
    roomiest = max(best, key=lambda each: each.wanted_at_most(question.headroom))
    if question.load.alike is not None:
        question.load.alike.chosen(roomiest.wanted_at_most(question.headroom))
    return (roomiest,)
