"""`recommend`: this model, this load; which GPU, layout and precision?"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from math import inf
from typing import Final

from service.engine.answers.advice import INTERACTIVE, doubtful_limits, looser_limits
from service.engine.answers.assumptions import recommend_assumptions
from service.engine.answers.options import Candidate, Order, option_of, order
from service.engine.answers.outlasting import answered_per_s, as_arrivals, left_out, outlast
from service.engine.answers.per_token import with_cheapest_tokens
from service.engine.answers.results import Recommendation, Rejection
from service.engine.arithmetic import GIB
from service.engine.engines.runs_on import unrun
from service.engine.errors import EngineError, raise_own
from service.engine.fleet.aims import NOTHING, Merit, aim_for, aim_of
from service.engine.fleet.choice import deployments, rising
from service.engine.fleet.combinations import Combination, combinations, size_question, without_format
from service.engine.fleet.costs import fleet_of, why_unheld
from service.engine.fleet.deployments import Deployment, resolve_size
from service.engine.fleet.questions import FREE, RecommendQuestion, SizeQuestion
from service.engine.fleet.ranking import best, latency_s
from service.engine.fleet.shortlist import most_together, product_line, stays_in_server
from service.engine.fleet.splitting import best_of
from service.engine.inputs import Gpu
from service.engine.memory.kernels import needs_of

# Of a closed loop nobody limits: what an interactive service is expected to keep, at the 95th percentile.
FLOOR_HINT: Final = "service_class=batch drops the interactive floor"
# What no count of GPUs bounds from below: there every combination is looked at.
UNBOUNDED: Final = "cost_per_token"


def recommend(question: RecommendQuestion) -> Recommendation:
    """Return the ways to carry the load, best first, and what was left out and why.

    Every GPU type, weight format and cache dtype in question is sized on its own, over every layout
    and open setting, by the objective: price, then GPUs for `cost`; GPUs, then price for `gpus`; price of
    a token at the asked load for `cost_per_token`, as `with_cheapest_tokens` looks for it; time to the last token
    at the 95th percentile for `latency`. One GPU type is one option, with the other formats that carry
    the load on it as alternatives, however many options are asked for. Without limits on latency those of an
    interactive service hold, unless the service class is `batch`.

    Raises:
        EngineError: every combination is refused, by what the question states of layouts or lengths.
    """
    asked = with_floor(question)
    kept, rejected, bounded = _evaluated(asked)
    kept = with_cheapest_tokens(asked, kept) if question.objective == UNBOUNDED else kept
    groups = _soonest_first(asked, _by_gpu(asked, kept))[: question.limit]
    groups = [_with_alternatives(asked, group, bounded, rejected) for group in groups]
    options = tuple(
        option_of(asked, group[0], rank, [best for best, *_ in groups], group[1:])
        for rank, group in enumerate(groups, start=1)
    )
    sized = [each.question.load for group in groups for each in group]
    return Recommendation(
        feasible=bool(options),
        model=question.model.id,
        engine=question.rules.engine,
        options=options,
        rejected=tuple(rejected),
        assumptions=recommend_assumptions(question, asked.limits),
        warnings=(*doubtful_limits(question.limits), *left_out(question.load, sized)),
        rules_version=question.rules.rules_version,
    )


def with_floor(question: RecommendQuestion) -> RecommendQuestion:
    """Return the question with the limits of an interactive service, where none are stated and it is not a batch.

    A limit that answers of one token cannot break is stated all the same: those of two would not have the floor.
    """
    limits = question.limits
    if question.service_class == "batch" or limits.are_stated:
        return replace(question, limits=limits.breakable(question.load))
    floor = replace(INTERACTIVE, percentile=limits.percentile).breakable(question.load)
    return replace(question, limits=floor, is_floor_assumed=True)


def _by_gpu(question: RecommendQuestion, kept: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return the candidates of each GPU type, the best first, by the best of each."""
    groups: dict[str, list[Candidate]] = {}
    for candidate in sorted(kept, key=lambda candidate: order(question, candidate)):
        groups.setdefault(candidate.gpu.id, []).append(candidate)
    return list(groups.values())


def _soonest_first(question: RecommendQuestion, groups: Sequence[list[Candidate]]) -> list[list[Candidate]]:
    """Return GPU types in their order, those that are equal by the objective by their latency: of those it is seen."""
    places = [order(question, group[0]) for group in groups]
    alike = Counter(place[:2] for place in places)

    def place_of(index: int) -> tuple[tuple[float, float], float, Order]:
        place, best = places[index], groups[index][0]
        time_s = latency_s(best.deployment, best.question) if alike[place[:2]] > 1 else 0.0
        return place[:2], time_s, place

    return [groups[index] for index in sorted(range(len(groups)), key=place_of)]


def _with_alternatives(
    question: RecommendQuestion, group: Sequence[Candidate], bounded: Iterable[Combination], rejected: list[Rejection]
) -> list[Candidate]:
    """Return a GPU type that is listed with its other formats, each at its best.

    Args:
        question: what was asked.
        group: its candidates, the best first.
        bounded: combinations of all GPUs that were looked for no further than the length of the list asks for.
        rejected: grows by what carries no load.
    """
    first, others = group[0], group[1:]
    own = [each for each in bounded if each.gpu.id == first.gpu.id and each.settings != first.question.settings]
    tried = [_try(question, each, NOTHING, []) for each in own]
    rejected.extend(each for each in tried if isinstance(each, Rejection))
    further = [each for each in tried if isinstance(each, Candidate)]
    kept = [each for each in others if all(each.question.settings != one.settings for one in own)]
    return [first, *sorted((*kept, *further), key=lambda each: order(question, each))]


def _evaluated(question: RecommendQuestion) -> tuple[list[Candidate], list[Rejection], list[Combination]]:
    """Return what is feasible and may be listed, what was left out, and what was looked for within bounds."""
    without_kernels = dict(_without_kernels(question))
    asked = [each for each in combinations(question) if each.gpu.id not in without_kernels]
    kept: list[Candidate] = []
    rejected = [_of_another_line(gpu) for gpu in question.left_out_gpus]
    rejected += [_without_format(gpu) for gpu in without_format(question)]
    rejected += [_left_out(gpu, reason) for gpu, reason in without_kernels.items()]
    last, bounded, refused = NOTHING, dict(enumerate(asked)), list[EngineError]()
    for bound, index in _by_bound(question, asked):
        if bound > last:
            break
        outcome = None if index is None else _try(question, asked[index], last, refused)
        if index is None or outcome is None:
            continue
        if last == NOTHING or isinstance(outcome, Rejection):
            del bounded[index]
        if isinstance(outcome, Rejection):
            rejected.append(outcome)
        else:
            kept.append(outcome)
            last = _last_listed(question, kept)
    raise_own(refused, len(asked))
    return kept, rejected, list(bounded.values())


def _by_bound(question: RecommendQuestion, asked: Sequence[Combination]) -> Iterator[tuple[Merit, int | None]]:
    """Yield combinations by their bounds, the best first; with None what bounds all that are left, until one is known.

    A combination's bound is brought up layout by layout, and only while it is the lowest of all.
    """
    waiting: list[tuple[Merit, int, Iterator[tuple[Merit, bool]] | None]] = [
        ((0.0, 0.0), index, _rising(question, combination)) for index, combination in enumerate(asked)
    ]
    while waiting:
        bound, index, bounds = heappop(waiting)
        yield bound, index if bounds is None else None
        if bounds is not None:
            bound, is_final = next(bounds)
            heappush(waiting, (bound, index, None if is_final else bounds))


def _last_listed(question: RecommendQuestion, kept: Sequence[Candidate]) -> Merit:
    """Return the merit of the last place in the list: anything enters while there is room."""
    if question.objective == UNBOUNDED:
        return NOTHING
    firsts = [group[0] for group in _by_gpu(question, kept)]
    return NOTHING if len(firsts) < question.limit else order(question, firsts[question.limit - 1])[:2]


def _rising(question: RecommendQuestion, combination: Combination) -> Iterator[tuple[Merit, bool]]:
    """Yield bounds on the first two keys of the order, rising, and whether each is final: no deployment is better."""
    if question.objective == UNBOUNDED:
        yield (0.0, 0.0), True
        return
    try:
        yield from rising(size_question(question, combination), question.objective)
    except EngineError:
        yield NOTHING, True


def _try(
    question: RecommendQuestion, combination: Combination, last: Merit, refused: list[EngineError]
) -> Candidate | Rejection | None:
    """Return the best deployment of one combination, or why there is none; None if it does not enter the list."""
    asked, gpu = size_question(question, combination), combination.gpu
    try:
        resolved = resolve_size(asked)
        candidates = deployments(asked, question.objective, last)
    except EngineError as error:
        refused.append(error)
        return _rejection(combination, error.detail)
    if not candidates and last < NOTHING:
        return None
    chosen = best_of(asked, candidates, question.objective) if candidates else None
    if chosen is None or not chosen.is_feasible or not _is_within_budget(asked, chosen):
        return _rejection(combination, _why_none(question, asked, chosen))
    if outlast(asked.load, partial(answered_per_s, chosen, asked.timers)):
        return _try(replace(question, load=as_arrivals(question.load)), combination, last, refused)
    return Candidate(
        gpu=gpu,
        weight_format=resolved.checkpoint.weight_format,
        kv_cache_dtype=resolved.kv_cache_dtype,
        deployment=chosen,
        cost=aim_of("cost", gpu, asked.offers).cost(chosen.layout, chosen.replicas),
        question=asked,
    )


def _rejection(combination: Combination, reason: str) -> Rejection:
    gpu, stated = combination.gpu.id, combination.settings
    return Rejection(gpu=gpu, weight_format=stated.weight_format, kv_cache_dtype=stated.kv_cache_dtype, reason=reason)


def _of_another_line(gpu: Gpu) -> Rejection:
    """Return why a GPU is left out that nobody named."""
    line = product_line(gpu)
    return _left_out(gpu.id, f"{gpu.name} is a {line} GPU: product_lines={line}, or gpus={gpu.id}, has it considered")


def _without_format(gpu: Gpu) -> Rejection:
    """Return why a GPU is left out that computes in no format of the model."""
    told = f"{gpu.name} computes in no format that the model's publisher made: gpus={gpu.id} has it considered"
    return _left_out(gpu.id, told)


def _without_kernels(question: RecommendQuestion) -> Iterator[tuple[str, str]]:
    """Yield GPUs on which nothing runs the model's attention, each with the reason."""
    for gpu in question.gpus:
        if (reason := unrun(gpu, needs_of(question.model.architecture))) is not None:
            yield gpu.id, reason


def _left_out(gpu: str, reason: str) -> Rejection:
    return Rejection(gpu=gpu, weight_format=None, kv_cache_dtype=None, reason=reason)


def _shortcoming(question: RecommendQuestion, chosen: Deployment) -> str:
    """Return why the best deployment of a combination does not carry the load."""
    if chosen.replica is not None:
        slow = looser_limits(chosen.replica, question.limits)
        return "; ".join((*slow, FLOOR_HINT) if question.is_floor_assumed else slow)
    missing = chosen.plan.shortfall_bytes / GIB
    is_near, together = question.is_shortlist and stays_in_server(chosen.plan.gpu), most_together(chosen.plan.gpu)
    near = f"any layout over {together} GPUs of one server" if together > 1 else "one GPU, and a server holds no more"
    where = near if is_near else "any layout"
    return f"does not fit on {where}; {missing:.1f} GiB short on each GPU"


def _is_within_budget(asked: SizeQuestion, chosen: Deployment) -> bool:
    return aim_for(asked, "cost").merit(chosen.layout, chosen.replicas) < NOTHING


def _why_none(question: RecommendQuestion, asked: SizeQuestion, chosen: Deployment | None) -> str:
    """Return why a combination is left out: nothing carries the load, or nothing that does keeps the budget.

    Args:
        question: what was asked.
        asked: the same of one combination.
        chosen: what comes nearest to carrying the load; None: it was not told.
    """
    if asked.budget.is_free and chosen is not None:
        return _shortcoming(question, chosen)
    free = replace(asked, budget=FREE)
    if asked.budget.gpus == inf:  # then a search for the fewest tells nothing
        return _why_dear(question, asked, free, None)
    fewest = best(deployments(free, "gpus"), free, "gpus")
    if not fewest.is_feasible:
        return _shortcoming(question, fewest)
    if fewest.gpus > asked.budget.gpus:
        return f"needs {fewest.gpus} GPUs and max_gpus is {question.max_gpus}"
    return _why_dear(question, asked, free, fewest)


def _why_dear(question: RecommendQuestion, asked: SizeQuestion, free: SizeQuestion, fewest: Deployment | None) -> str:
    """Return why nothing that carries the load keeps a price; or that nothing does.

    Args:
        question: what was asked.
        asked: the same of one combination.
        free: that without a budget.
        fewest: what takes the fewest GPUs, no more than max_gpus; None: they are not limited.
    """
    cheapest = best(deployments(free, "cost"), free, "cost")
    if not cheapest.is_feasible:
        return _shortcoming(question, cheapest)
    usd_per_hour, _ = aim_for(free, "cost").merit(cheapest.layout, cheapest.replicas)
    if usd_per_hour == inf:
        return why_unheld(fleet_of(cheapest.plan, cheapest.replicas), asked.offers, asked.left_out_offers)
    if usd_per_hour > asked.budget.usd_per_hour:
        return f"costs {usd_per_hour:.2f} USD per hour and max_usd_per_hour is {question.max_usd_per_hour}"
    return (
        f"needs {(fewest or cheapest).gpus} GPUs at least and costs {usd_per_hour:.2f} USD per hour at least, and "
        "nothing keeps both max_gpus and what may be paid"
    )
