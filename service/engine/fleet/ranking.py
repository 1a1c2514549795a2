"""Which of several deployments is the best: by an aim, among equals by latency.

Where the price is the aim, GPUs that are paid for anyway are put to work as far as that is faster.

Among those that are as fast, one whose kernels were measured stands before one that data sheets tell of, then the
plainer layout.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Final

from service.engine.fleet.aims import aim_for, aim_of
from service.engine.fleet.deployments import Deployment, excess
from service.engine.fleet.questions import Objective, SizeQuestion
from service.engine.fleet.settings import Resolved
from service.engine.fleet.space import simplicity
from service.engine.inputs import Layout
from service.engine.time.estimate import MOST_REPLICAS

# Times so near to each other are the same: simulated percentiles are no finer, each off by about a hundredth.
ALIKE: Final = 1.02
# Layouts on one GPU type share most of the error of times that nobody measured; by so much layouts err apart: nine in
# ten of 22 published runs over pipeline stages (MLPerf, CloudRift) are within it.
APART: Final = 0.13


def best(candidates: Sequence[Deployment], question: SizeQuestion, objective: Objective = "gpus") -> Deployment:
    """Return the best deployment by an objective; among equals the fastest, among those as fast the plainest.

    Without a feasible one: what misses the least memory, then what is fastest for a single request.
    """
    feasible = [each for each in candidates if each.is_feasible]
    if not feasible:
        return min(
            candidates,
            key=lambda each: (
                each.plan.shortfall_bytes,
                excess(each, question.limits),
                each.layout.gpus_per_replica,
                simplicity(each.layout),
            ),
        )
    aim = aim_for(question, objective)
    merits = [aim.merit(each.layout, each.replicas) for each in feasible]
    equals = [each for each, merit in zip(feasible, merits, strict=True) if merit == min(merits)]
    if objective == "cost":
        equals = _at_work(equals, question)
    if len(equals) == 1:
        return equals[0]
    by_price = aim_of("cost", question.gpu, question.offers)
    return min(
        as_fast(equals, question, objective),
        key=lambda each: (by_price.merit(each.layout, each.replicas), _is_guessed(each), simplicity(each.layout)),
    )


def _at_work(candidates: Sequence[Deployment], question: SizeQuestion) -> list[Deployment]:
    """Return those of one price with as many GPUs as the fastest needs: idle only where that is as fast.

    Times of one model on one GPU type rest on one basis, whose error they share.
    """
    if len({each.gpus for each in candidates}) == 1:
        return list(candidates)
    seen = [latency_s(each, question) for each in candidates]
    gpus = min(each.gpus for each, time_s in zip(candidates, seen, strict=True) if time_s <= ALIKE * min(seen))
    return [each for each in candidates if each.gpus == gpus]


def _is_guessed(deployment: Deployment) -> bool:
    """Return whether its times rest on data sheets, where others of as many GPUs rest on measured kernels."""
    return deployment.replica is not None and not deployment.replica.timing.basis.is_measured


def as_fast(
    candidates: Sequence[Deployment], question: SizeQuestion, objective: Objective = "gpus"
) -> Sequence[Deployment]:
    """Return the fastest, and what cannot be told apart from it.

    Where kernels were not measured that is what lies within the error by which layouts differ, unless latency is the
    aim.
    """
    seen = [latency_s(each, question) for each in candidates]
    fastest = candidates[seen.index(min(seen))].with_times(question.timers).replica
    is_vague = objective != "latency" and fastest is not None and not fastest.timing.basis.is_measured
    error = min(fastest.timing.basis.expected_error_fraction, APART) if fastest and is_vague else 0.0
    most = max(1 + error, ALIKE) * min(seen)
    return [each for each, time_s in zip(candidates, seen, strict=True) if time_s <= most]


def as_fast_as(question: SizeQuestion, known_s: float) -> Callable[[Deployment], bool]:
    """Return what tells whether a deployment is as fast as so much, as far as times are told apart. [s]."""
    return lambda deployment: known_s == inf or latency_s(deployment, question) <= ALIKE * known_s


def latency_s(deployment: Deployment, question: SizeQuestion) -> float:
    """Return the time to the last token at the 95th percentile at the asked load; 0 where nobody tells it. [s]."""
    return deployment.with_times(question.timers).latency_s(95.0)


def most_worth(kept: Sequence[Deployment], resolved: Resolved, layout: Layout) -> int:
    """Return the most replicas of a layout under other settings that are worth a look: those its own settings need."""
    own = (each.replicas for each in kept if each.resolved is resolved and each.layout == layout)
    return min(own, default=MOST_REPLICAS)
