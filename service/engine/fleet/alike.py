"""Searches by memory alone that end alike: of users between whom no count of replicas changes, and of as many blocks.

    kept = what a search came to, with the users and the lengths for which it does
    same = what others come to of no more users and no longer requests, and of no fewer and no shorter ones

A sizing asks for half a dozen of them, one for each lever; near the edge of one the others still stand.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final, cast

from service.engine.arithmetic import ceil_div
from service.engine.fleet.aims import NOTHING, Aim, Merit
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.settings import longest_request, served_tokens
from service.engine.inputs import Alike, Load
from service.engine.time.demand import wanted_of

MOST_KEPT: Final = 64  # questions of one model, but for their loads
MOST_BESIDE: Final = 24  # users and lengths of one search
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
    longest = longest_request(load, context)
    served = served_tokens(question.model, question.settings, question.rules, context, longest, load.output_tokens)
    return ceil_div(context, BLOCK_TOKENS), served


def found_alike(question: SizeQuestion, way: Hashable, than: Merit, search: Search, aim: Aim) -> Deployments:
    """Return the best that a search finds, taking note of the users for whom it does; as it was found before, if so.

    Args:
        question: what is searched for, with a load that takes note.
        way: how.
        than: what is to be beaten.
        search: what looks.
        aim: what is looked for, at today's prices.
    """
    others = _Others(question, way, aim)
    between = others.between(than)
    if between is None:
        return _noting(question, lambda _: others.ended(noted(question, search(aim), aim), aim, than))
    if question.load.alike is not None:
        question.load.alike.join(between.users)
    return between.best


def searched_alike(question: SizeQuestion, way: Hashable, search: Search, aim: Aim) -> Deployments:
    """Return what a search finds, which looks for nothing better than others found; take note as `found_alike` does."""
    others = _Others(question, way, aim)
    low = others.low()

    def searched(alike: Alike) -> Deployments:
        bounded = aim
        if low is not None and low.at_least < NOTHING:
            bounded = replace(aim, least=low.at_least)
            alike.looked_at(low.users.fewest)
        outcome = search(bounded)
        others.ended(noted(question, outcome, aim), aim, NOTHING)
        return outcome

    return _noting(question, searched)


def _noting(question: SizeQuestion, search: Callable[[Alike], Deployments]) -> Deployments:
    """Return what a search finds that takes note of users anew, and join what was noted before."""
    alike = question.load.alike or Alike()
    before, alike.fewest, alike.most = Alike(alike.fewest, alike.most), 1, inf
    try:
        return search(alike)
    finally:
        alike.join(before)  # also where the engine refuses what a lever would change


class _Others:
    """What searches of the same question for the same aim came to, of other users and lengths."""

    def __init__(self, question: SizeQuestion, way: Hashable, aim: Aim) -> None:
        bare = replace(question.load, concurrent_requests=None, input_tokens=0, output_tokens=0)
        self._question = question
        self._key = (way, aim.objective, replace(question, load=bare))
        self._kept = question.model.derived.by("alike", MOST_KEPT)
        self._ended = cast("tuple[_Ended, ...]", self._kept.get(self._key) or ())
        self._lengths = lengths_of(question, question.load)
        self._users = wanted_of(question.load, question.headroom).amount

    def low(self) -> "_Ended | None":
        """Return what most was taken by no more users of no longer requests."""
        lengths, users = self._lengths, self._users
        no_less = (each for each in self._ended if each.users.fewest <= users and _no_longer(each.lengths, lengths))
        return max(no_less, key=lambda each: each.at_least, default=None)

    def between(self, than: Merit) -> "_Ended | None":
        """Return what a search comes to that others enclose; None where it must be made.

        More users of longer requests never take less. So nothing is better than what no more users of no longer
        requests take; and where no fewer of no shorter ones take just that, it is the best.
        """
        low, lengths, users = self.low(), self._lengths, self._users
        if low is None:
            return None
        if low.at_least >= than:
            return _Ended(lengths, Alike(fewest=low.users.fewest), than, NOTHING, ())
        no_more = (each for each in self._ended if each.users.most >= users and _no_longer(lengths, each.lengths))
        high = min(no_more, key=lambda each: each.merit, default=None)
        if high is None or high.merit != low.at_least:
            return None
        return _Ended(lengths, Alike(low.users.fewest, high.users.most), high.merit, high.merit, high.best)

    def ended(self, best: Deployments, aim: Aim, than: Merit) -> Deployments:
        """Keep what a search came to, for the users of which it took note."""
        users = self._question.load.alike
        if users is not None:
            merit = min((aim.merit(each.layout, each.replicas) for each in best), default=NOTHING)
            new = _Ended(self._lengths, Alike(users.fewest, users.most), min(merit, than), merit, best)
            self._kept.put(self._key, (new, *self._ended[: MOST_BESIDE - 1]))
        return best


@dataclass(frozen=True, slots=True)
class _Ended:
    """What a search came to."""

    lengths: Lengths
    users: Alike  # for whom it did
    at_least: Merit  # nothing is better: what was found, or was to be beaten
    merit: Merit  # of what was found
    best: Deployments


def _no_longer(one: Lengths, other: Lengths) -> bool:
    return one[0] <= other[0] and one[1] <= other[1]


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
