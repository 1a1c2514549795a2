"""The deployment that carries most on the GPUs given, over every layout and setting left open."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import nextafter
from typing import Final

from service.engine.errors import UnsupportedLayoutError
from service.engine.fleet.aims import aim_of
from service.engine.fleet.deployments import Deployment, excess
from service.engine.fleet.lengths import has_lengths, plan_at, split_of
from service.engine.fleet.most import Merit, Search
from service.engine.fleet.planned import legal_layouts, planned
from service.engine.fleet.questions import CapacityQuestion
from service.engine.fleet.settings import Resolved, longest_request, resolve
from service.engine.fleet.space import Space, simplicity
from service.engine.fleet.variants import batched_tokens
from service.engine.inputs import Layout, Load
from service.engine.memory.plan import MemoryPlan
from service.engine.time.carried import needs_time
from service.engine.time.chance import ROUGHLY_MEASURED
from service.engine.time.demand import Users, kind_of, users_of

FORGONE: Final = 0.05  # of the requests held: a wait of a minute for the first token is not worth them
FAR: Final = 0.9  # of the rate that the best budget answers, and of the requests that it writes at once


def resolve_capacity(question: CapacityQuestion) -> Resolved:
    """Return the question's settings without a gap."""
    answer = question.output_tokens or 0
    context = (question.input_tokens or 0) + answer
    longest = longest_request(question.load, context)
    return resolve(question.model, question.gpu, question.settings, question.rules, context, longest, answer)


def largest(question: CapacityQuestion, resolved: Resolved) -> Deployment:
    """Return the deployment that carries most on the given GPUs.

    Requests of stated lengths are counted over every layout and open setting; of usual layouts that carry as much, the
    cheapest is chosen, then the plainest. Without lengths the engine starts as it does by itself, on the layout that
    serves the longest context, and of those on the one that holds most requests; as on fewer GPUs, on which it only
    starts with other settings, where that holds more.

    Raises:
        UnsupportedLayoutError: no legal layout is as small as the GPUs given.
    """
    space = legal_layouts(resolved, question.layout)
    fitting = [layout for layout in space.layouts if layout.gpus_per_replica <= question.gpu_count]
    if not fitting:
        smallest = min(layout.gpus_per_replica for layout in space.layouts)
        raise UnsupportedLayoutError(
            f"the layout needs {smallest} GPUs and gpu_count is {question.gpu_count}",
            field="gpu_count",
            accepted=f"at least {smallest}",
        )
    search = _search(question)
    usual = _usual_first(space, fitting)
    best = search.best((resolved, layout) for layout in usual)
    if not search.merit(best)[0] or has_lengths(question):
        best = _most_answered(question, resolved, fitting, search.better(resolved, fitting, best) or best)
        if best.replica is not None and not search.merit(best)[0]:
            return _too_slow_by_least(question, resolved, fitting, best)
        return _plainest(question, resolved, [layout for layout in fitting if layout in space.usual], best)
    fewest = min(each.gpus_per_replica for each in usual if search.plan_of(resolved, each).holds_one_request)
    smaller = [layout for layout in fitting if fewest <= 2 * layout.gpus_per_replica < 2 * fewest]
    return search.better(resolved, smaller, best) or best


def _too_slow_by_least(
    question: CapacityQuestion, resolved: Resolved, layouts: Iterable[Layout], known: Deployment
) -> Deployment:
    """Return the fastest for a single request alone, as far as limits are broken; of those as fast the smallest."""
    search = _search(question, is_paced=False)
    tried = (each for layout in layouts for each in search.under(resolved, layout, batched_tokens(resolved)))
    return min(
        (each for each in tried if each.plan.holds_one_request),
        key=lambda each: (
            excess(each, question.limits),
            each.layout.gpus_per_replica,
            each.resolved is not resolved,
            simplicity(each.layout),
        ),
        default=known,
    )


def _plainest(
    question: CapacityQuestion, resolved: Resolved, layouts: Iterable[Layout], known: Deployment
) -> Deployment:
    """Return the cheapest of some layouts, then the plainest, that carries as much as what is known."""
    prices, search = aim_of("cost", question.gpu, question.offers), _search(question)
    carries, context, load = search.merit(known)

    def rank(layout: Layout) -> tuple[tuple[float, float], tuple[object, ...]]:
        return prices.merit(layout, question.gpu_count // layout.gpus_per_replica), simplicity(layout)

    as_much = carries, context, nextafter(load, 0.0)
    plainer = sorted((layout for layout in layouts if rank(layout) < rank(known.layout)), key=rank)
    as_good = (each for layout in plainer for each in of_layout(question, resolved, layout, as_much))
    return next(as_good, known) if carries else known


def _most_answered(
    question: CapacityQuestion, resolved: Resolved, layouts: Iterable[Layout], known: Deployment
) -> Deployment:
    """Return what holds most of all layouts, each under the token budget that lets it answer; else what is known.

    Each layout's budget is its own, whatever the others hold: a GPU more never holds fewer.
    """
    if not _is_of_memory(question):
        return known
    search = _search(question)
    best = _answering(question, resolved, known)
    for layout in layouts:
        for each in of_layout(question, resolved, layout, search.merit(best)):
            best = each
    return best


def of_layout(question: CapacityQuestion, resolved: Resolved, layout: Layout, least: Merit) -> Iterator[Deployment]:
    """Yield a layout's deployments that are truly better than what is known, and where memory decides answer as well.

    Where memory alone decides there is one at most.
    """
    search = _search(question)
    better = search.improving(resolved, [layout], least)
    if not _is_of_memory(question):
        yield from better
    elif (most := max(better, key=search.merit, default=None)) is not None:
        as_well = _answering(question, resolved, most)
        if search.merit(as_well) > least:
            yield as_well


def asked_users(load: Load) -> float:
    """Return the requests at once that a load asks for; 0 where it asks for none, or for a rate alone. [requests]."""
    is_asked = load.concurrent_requests is not None or load.request_rate_per_s is not None
    return users_of(load).amount if is_asked and kind_of(load) is Users else 0


def carried(question: CapacityQuestion, deployment: Deployment) -> float:
    """Return what all replicas carry: requests at once, or arrivals per second where a rate is asked for."""
    return merit_of(question, deployment)[2]


def merit_of(question: CapacityQuestion, deployment: Deployment) -> Merit:
    """Return how good a deployment is: whether it carries anything, the context served, and what it carries."""
    return _search(question).merit(deployment)


def _is_of_memory(question: CapacityQuestion) -> bool:
    return not needs_time(question.load, question.limits)


def _answering(question: CapacityQuestion, resolved: Resolved, known: Deployment) -> Deployment:
    """Return what holds hardly less than what is known, under a token budget that lets it answer far more or sooner.

    Where memory alone decides, the smallest budget may hold a few requests more, and read so few tokens beside all
    that decode that a fourth of them are answered, or that most of those held wait for their first token.
    """
    search, load = _search(question), question.load
    if not _is_of_memory(question) or question.timers is None or not known.is_feasible:
        return known
    asked = asked_users(load)
    most = search.merit(known)[2]
    others = [
        (pace(question, other), other)
        for other in search.under(resolved, known.layout, batched_tokens(resolved))
        if search.merit(other)[2] >= max((1 - FORGONE) * most, min(asked, most))
    ]
    own = pace(question, known)
    paces = own, *(its_pace for its_pace, _ in others)
    rate, written = (FAR * max(best) for best in zip(*paces, strict=True))
    if own[0] >= rate and own[1] >= written:
        return known
    answering = [other for (answers, writes), other in others if answers >= rate and writes >= written]
    return max(
        answering,
        key=lambda other: (search.merit(other)[2], other.plan.settings.max_num_batched_tokens),
        default=known,
    )


def pace(question: CapacityQuestion, deployment: Deployment) -> tuple[float, float]:
    """Return the rate of one replica with every slot taken, [1/s], and how many it writes at once; 0 if untimed.

    Those that wait for their first token are not written: by Little's law all but the rate x that wait are.
    """
    replica = deployment.with_times(question.timers).replica
    if replica is None or not replica.slots:
        return 0.0, 0.0
    seen = replica.seen(Users(replica.serving.in_every_stream(replica.slots)), ROUGHLY_MEASURED)
    return seen.requests_per_s, seen.requests_per_s * (seen.end_to_end_s.mean - seen.ttft_s.mean)


def carries_more(question: CapacityQuestion, than: float) -> bool:
    """Return whether any settings let the given GPUs carry more than so much, without a search for the most."""
    resolved = resolve_capacity(question)
    search = _search(question)
    layouts = legal_layouts(resolved, question.layout).layouts
    return any(True for _ in search.improving(resolved, layouts, (True, 0, than)))


def carries_any(question: CapacityQuestion) -> bool:
    """Return whether any layout and settings let the given GPUs carry a request within limits."""
    resolved = resolve_capacity(question)
    layouts = legal_layouts(resolved, question.layout).layouts
    return _any_carries(question, resolved, [each for each in layouts if each.gpus_per_replica <= question.gpu_count])


def _any_carries(question: CapacityQuestion, resolved: Resolved, layouts: Iterable[Layout]) -> bool:
    search = _search(question)
    return any(search.merit(each)[0] for each in search.improving(resolved, layouts, (False, 0, 0.0)))


def as_started(question: CapacityQuestion, resolved: Resolved, layout: Layout) -> Deployment:
    """Return one layout on the given GPUs with the engine's own settings, whatever others would carry."""
    return _search(question, is_paced=False).best([(resolved, layout)])


def _usual_first(space: Space, fitting: Sequence[Layout]) -> Sequence[Layout]:
    """Return the usual ones of some layouts; all of them where none is usual."""
    return [layout for layout in fitting if layout in space.usual] or fitting


def fewest_that_carry(question: CapacityQuestion) -> int | None:
    """Return the fewest GPUs that carry a request, more than those given and usually taken; None where none do."""
    resolved = resolve_capacity(question)
    space = legal_layouts(resolved, question.layout)
    more = sorted({each.gpus_per_replica for each in space.usual if each.gpus_per_replica > question.gpu_count})
    for gpus in more:
        as_many = [layout for layout in space.layouts if layout.gpus_per_replica == gpus]
        if _any_carries(replace(question, gpu_count=gpus), resolved, as_many):
            return gpus
    return None


def at_context(question: CapacityQuestion, resolved: Resolved, context_tokens: int) -> Deployment:
    """Return the given GPUs as they hold most requests of exactly this context, with the engine's own settings.

    Args:
        question: what was asked.
        resolved: its settings.
        context_tokens: of each request, and the longest that is served. [tokens]
    """
    settings = replace(resolved.settings, max_model_len=context_tokens)
    served = replace(resolved, settings=settings, shorten_to_fit=False)
    load = replace(split_of(question.load, context_tokens), concurrent_requests=None, request_rate_per_s=None)
    asked = replace(question, load=load, input_tokens=load.input_tokens, output_tokens=load.output_tokens)

    def plan_of(settings: Resolved, layout: Layout) -> MemoryPlan:
        return planned(settings, layout, context_tokens, 0)

    search = Search(question=asked, plan_of=plan_of, is_paced=False)
    space = legal_layouts(resolved, question.layout)
    fitting = [layout for layout in space.layouts if layout.gpus_per_replica <= question.gpu_count]
    best = search.best((served, layout) for layout in _usual_first(space, fitting))
    return best if search.merit(best)[0] else search.better(served, fitting, best) or best


def _search(question: CapacityQuestion, *, is_paced: bool = True) -> Search:
    return Search(question=question, plan_of=partial(plan_at, question), is_paced=is_paced)
