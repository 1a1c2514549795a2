"""The cheapest token: users who wait for their answers ask more of a faster deployment, for the same money.

    price of a token = price of an hour / tokens of an hour

Of arrivals the tokens of an hour are given, and the lowest price is that of a token too. Of a closed loop they are
what its users are answered: the cheapest deployment is looked at beside what other usual layouts carry the load with
for at most twice its price. What costs more would have to answer more than twice as soon.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Final

from service.engine.answers.options import Candidate, order, usd_per_million
from service.engine.errors import EngineError
from service.engine.fleet.aims import aim_for, aim_of
from service.engine.fleet.choice import deployments
from service.engine.fleet.deployments import resolve_size
from service.engine.fleet.planned import layouts_of
from service.engine.fleet.questions import RecommendQuestion
from service.engine.fleet.ranking import best

MOST_TIMES_THE_PRICE: Final = 2.0
LIKELY: Final = 2.5  # times that another layout may lower the price of a token, as far as was seen


def with_cheapest_tokens(question: RecommendQuestion, kept: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates with the cheapest token of each that may enter the list; the others as they are."""
    if question.load.request_rate_per_s is not None:
        return list(kept)
    ordered = sorted(kept, key=lambda each: order(question, each))
    firsts = {each.gpu.id: usd_per_million(question, each) for each in reversed(ordered)}
    listed = sorted(firsts.values())[: question.limit]
    worst = listed[-1] if len(listed) == question.limit else inf
    return [
        _cheapest(question, each)
        if usd_per_million(question, each) <= LIKELY * min(worst, firsts[each.gpu.id])
        else each
        for each in ordered
    ]


def _cheapest(question: RecommendQuestion, candidate: Candidate) -> Candidate:
    """Return the candidate's combination with the cheapest token of its usual layouts."""
    if usd_per_million(question, candidate) == inf:
        return candidate
    return min((candidate, *_others(candidate)), key=lambda each: order(question, each))


def _others(candidate: Candidate) -> Iterator[Candidate]:
    """Yield what other usual layouts carry the load with, each the cheapest of its own."""
    asked, most = candidate.question, MOST_TIMES_THE_PRICE * candidate.usd_per_hour
    aim, fewest = aim_for(asked, "cost"), 1 + candidate.question.headroom.spare_replicas
    prices = aim_of("cost", candidate.gpu, asked.offers)
    for layout in layouts_of(asked, resolve_size(asked)).usual:
        if layout == candidate.deployment.layout or aim.merit(layout, fewest)[0] > most:
            continue
        pinned = replace(asked, layout=asked.layout.pinned_to(layout))
        try:
            found = [each for each in deployments(pinned, "cost", (most, inf)) if each.is_feasible]
        except EngineError:
            continue
        if found:
            chosen = best(found, pinned, "cost")
            yield replace(candidate, deployment=chosen, cost=prices.cost(chosen.layout, chosen.replicas))
