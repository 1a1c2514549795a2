"""What another GPU, or another model, would take: each sized as a question of its own, where the caller asks for it.

    worth telling   less money; where one of both has no price, fewer GPUs
    bound           no deployment costs less than the cheapest layout would, were kernels as fast as hoped

Those with the lowest bounds are sized first, and what can be none of the cheapest any more is not sized.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from service.engine.answers.levers import lever_of
from service.engine.answers.results import Lever, Sizing
from service.engine.answers.size import size
from service.engine.errors import EngineError
from service.engine.fleet.aims import NOTHING, Merit, aim_for
from service.engine.fleet.choice import deployments, rising
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.ranking import best
from service.engine.fleet.results import Scalar

MOST_TOLD: Final = 3  # of each kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """The same question of something else."""

    kind: str
    change: Mapping[str, Scalar]  # by the names of a question
    question: SizeQuestion


def size_beside(question: SizeQuestion, others: Sequence[Other], *, tells_levers: bool = True) -> Sizing:
    """Return the sizing, with what others would save after its own levers, the cheapest of each kind first.

    Args:
        question: what was asked.
        others: the same of something else.
        tells_levers: its own levers are looked for. [yes or no]

    Raises:
        EngineError: the question contradicts itself or names something without a rule.
    """
    return with_others(size(question, tells_levers=tells_levers), others)


def with_others(answer: Sizing, others: Sequence[Other]) -> Sizing:
    """Return a sizing with what others would save after its own levers, the cheapest of each kind first."""
    if not others:
        return answer
    now = _merit_of(answer)
    kinds = dict.fromkeys(other.kind for other in others)
    told = (_cheapest(now, [other for other in others if other.kind == kind]) for kind in kinds)
    return replace(answer, levers=(*answer.levers, *(lever for levers in told for lever in levers)))


def _cheapest(now: Merit, others: Sequence[Other]) -> Iterator[Lever]:
    """Yield the others that take the least money of those that save any."""
    waiting = sorted(((_least_usd_per_hour(other.question), index) for index, other in enumerate(others)))
    kept: list[tuple[Merit, int, str | None]] = []  # price, then GPUs
    for bound, index in waiting:
        if len(kept) == MOST_TOLD and bound > kept[-1][0][0]:
            break
        (gpus, usd), basis = _sized(others[index].question)
        if saves(now, (gpus, usd)):
            kept = sorted((*kept, ((usd, gpus), index, basis)))[:MOST_TOLD]
    for (usd, gpus), index, basis in kept:
        change = others[index].change
        # As with levers of one's own: two changes are told only where they save more than one of them.
        if not any(others[each].change.items() < change.items() and merit <= (usd, gpus) for merit, each, _ in kept):
            yield lever_of(change, now, (gpus, usd), basis)


def saves(now: Merit, then: Merit) -> bool:
    """Return whether less is paid then; or fewer GPUs are taken, where one of both has no price.

    >>> saves((2.0, 10.0), (4.0, 6.0)), saves((2.0, 10.0), (1.0, inf)), saves((2.0, 10.0), (1.0, 11.0))
    (True, True, False)
    """
    if inf in (now[1], then[1]):
        return then[0] < now[0]
    return then[1] < now[1]


def _least_usd_per_hour(question: SizeQuestion) -> float:
    """Return a price that no deployment is below; infinite where nothing carries the load, or has a price."""
    try:
        return max((usd for (usd, _), _ in rising(question, "cost")), default=inf)
    except EngineError:
        return inf


def _sized(question: SizeQuestion) -> tuple[Merit, str | None]:
    """Return what `/size` answers: GPUs and price, and what its times rest on; nothing where it is refused."""
    try:
        if question.disaggregated:
            answer = size(question, tells_levers=False)
            return _merit_of(answer), None if answer.latency is None else answer.latency.basis
        chosen = best(deployments(question), question)
    except EngineError:
        return NOTHING, None
    if not chosen.is_feasible:
        return NOTHING, None
    merit = aim_for(question, "gpus").merit(chosen.layout, chosen.replicas)
    return merit, None if chosen.replica is None else chosen.replica.timing.basis.name


def _merit_of(answer: Sizing) -> Merit:
    if not answer.feasible:
        return NOTHING
    return float(answer.gpus), inf if answer.cost is None else answer.cost.usd_per_hour
