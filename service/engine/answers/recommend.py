"""`recommend`: this model, this load; which GPU, layout and precision?"""

from collections.abc import Sequence
from math import ceil, inf
from typing import Final

from service.engine.answers.advice import looser_limits
from service.engine.answers.assumptions import recommend_assumptions
from service.engine.answers.options import Candidate, option_of, order
from service.engine.answers.results import Recommendation, Rejection
from service.engine.arithmetic import GIB
from service.engine.errors import EngineError
from service.engine.fleet.combinations import (
    Combination,
    allowed_offers,
    cheapest_gpu_usd_per_hour,
    combinations,
    size_question,
)
from service.engine.fleet.costs import cheapest, fleet_of
from service.engine.fleet.deployments import Deployment, best, deployments, fewest_gpus, resolve_size
from service.engine.fleet.questions import RecommendQuestion
from service.engine.fleet.results import Cost
from service.engine.time.carried import needs_time

# Combinations that a quick estimate puts so far behind those already kept are not looked at further.
HOPE_OF_A_BETTER_OFFER: Final = 1.15
# What no count of GPUs bounds from below: there every combination is looked at.
UNBOUNDED: Final = ("latency", "cost_per_token")
HOPELESS = "no layout holds the requests within the limits, by a quick estimate"


def recommend(question: RecommendQuestion) -> Recommendation:
    """Return the ways to carry the load, best first, and what was left out and why.

    Every GPU type, weight format and cache dtype in question is sized on its own; the objective
    orders what is feasible and within budget: price, then GPUs for `cost`; GPUs, then price for
    `gpus`; price of a token at the asked load for `cost_per_token`; time to the last token at the 95th
    percentile for `latency`. Where time decides, a quick estimate orders the combinations, and those it
    puts well behind a full list are not simulated.
    """
    kept, rejected = _evaluated(question)
    listed = sorted(kept, key=lambda candidate: order(question, candidate))[: question.limit]
    options = tuple(option_of(question, candidate, rank, kept) for rank, candidate in enumerate(listed, start=1))
    return Recommendation(
        feasible=bool(options),
        model=question.model.id,
        engine=question.rules.engine,
        options=options,
        rejected=tuple(rejected),
        assumptions=recommend_assumptions(question),
        warnings=(),
        rules_version=question.rules.rules_version,
    )


def _evaluated(question: RecommendQuestion) -> tuple[list[Candidate], list[Rejection]]:
    """Return what is feasible and may be listed, and what was left out."""
    asked = list(combinations(question))
    bounds = sorted((_least(question, combination), index) for index, combination in enumerate(asked))
    is_timed = needs_time(question.load, question.limits) and question.objective not in UNBOUNDED
    kept: list[Candidate] = []
    rejected: list[Rejection] = []
    for least, index in bounds:
        last = _last_listed(question, kept)
        if last is not None and least > last:
            break
        if least[0] == inf and is_timed:
            rejected.append(_rejection(asked[index], HOPELESS))
            continue
        outcome = _try(question, asked[index], _worth_trying(question, asked[index], last))
        if isinstance(outcome, Rejection):
            rejected.append(outcome)
        elif outcome is not None:
            kept.append(outcome)
    return kept, rejected


def _last_listed(question: RecommendQuestion, kept: Sequence[Candidate]) -> tuple[float, float] | None:
    """Return the first two keys of the last place in the list; None while there is room."""
    if len(kept) < question.limit:
        return None
    return sorted(order(question, candidate)[:2] for candidate in kept)[question.limit - 1]


def _worth_trying(
    question: RecommendQuestion, combination: Combination, last: tuple[float, float] | None
) -> int | None:
    """Return the most GPUs with which a combination still enters the list; None where any number may."""
    if last is None or question.objective in UNBOUNDED:
        return None
    first, _ = last
    if question.objective == "gpus":
        return int(first)
    price = cheapest_gpu_usd_per_hour(question, combination.gpu)
    return ceil(first / price) if 0 < price < inf and first < inf else None


def _least(question: RecommendQuestion, combination: Combination) -> tuple[float, float]:
    """Return a bound on the first two keys of the order: no deployment of a combination is better.

    A question that memory alone decides is not bounded but answered; neither is one about latency.
    """
    if question.objective in UNBOUNDED or not needs_time(question.load, question.limits):
        return 0.0, 0.0
    try:
        gpus = fewest_gpus(size_question(question, combination), HOPE_OF_A_BETTER_OFFER)
    except EngineError:
        return 0.0, 0.0
    price = cheapest_gpu_usd_per_hour(question, combination.gpu)
    return (gpus * price, gpus) if question.objective == "cost" else (gpus, gpus * price)


def _try(
    question: RecommendQuestion, combination: Combination, at_most_gpus: int | None
) -> Candidate | Rejection | None:
    """Return the cheapest deployment of one combination, or why there is none; None if it takes too many GPUs."""
    asked, gpu = size_question(question, combination), combination.gpu
    try:
        resolved = resolve_size(asked)
        candidates = deployments(asked, at_most_gpus, HOPE_OF_A_BETTER_OFFER)
    except EngineError as error:
        return _rejection(combination, error.detail)
    if not candidates:
        return None
    chosen = best(candidates, question.limits)
    cost = cheapest(fleet_of(chosen.plan, chosen.replicas), allowed_offers(question, gpu))
    reason = _shortcoming(question, chosen) if not chosen.is_feasible else _over_budget(question, chosen, cost)
    if reason is not None:
        return _rejection(combination, reason)
    return Candidate(
        gpu=gpu,
        weight_format=resolved.checkpoint.weight_format,
        kv_cache_dtype=resolved.kv_cache_dtype,
        deployment=chosen,
        cost=cost,
    )


def _rejection(combination: Combination, reason: str) -> Rejection:
    stated = combination.settings
    return Rejection(
        gpu=combination.gpu.id, weight_format=stated.weight_format, kv_cache_dtype=stated.kv_cache_dtype, reason=reason
    )


def _shortcoming(question: RecommendQuestion, chosen: Deployment) -> str:
    """Return why the best deployment of a combination does not carry the load."""
    if chosen.replica is not None:
        return "; ".join(looser_limits(chosen.replica, question.limits))
    missing = chosen.plan.shortfall_bytes / GIB
    return f"does not fit on any layout; {missing:.1f} GiB short on each GPU"


def _over_budget(question: RecommendQuestion, chosen: Deployment, cost: Cost | None) -> str | None:
    """Return the limit that a deployment breaks, in a buyer's words."""
    if question.max_gpus is not None and chosen.gpus > question.max_gpus:
        return f"needs {chosen.gpus} GPUs and max_gpus is {question.max_gpus}"
    if cost is None and (question.providers or question.regions or question.max_usd_per_hour is not None):
        return "no published offer within the providers, regions and budget asked for"
    if question.max_usd_per_hour is not None and cost is not None and cost.usd_per_hour > question.max_usd_per_hour:
        return f"costs {cost.usd_per_hour:.2f} USD per hour and max_usd_per_hour is {question.max_usd_per_hour}"
    return None
