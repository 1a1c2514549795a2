"""The shape of a pod where nobody states it: small, and not wasteful, whatever the load of the moment.

    density(layout)  = load of one pod within limits / its GPUs; half of that over two servers, where nobody limits time
    usual            = the smallest layout with density >= half of the densest, by memory alone
    shape            = within limits, the smallest of at least as many GPUs as that, or as a server, with
                       density >= half of the densest of those, and >= 0.6 within looser limits on pace as well;
                       of as many GPUs one that carries a fifth more

of layouts that fill a server without a rest, or two by stages of a server each or by copies of the attention that share
experts. A layout on which the weights leave room for a handful of requests carries them at several times the GPUs of
the next larger one; one that is denser by a tenth and twice as large scales in steps twice as coarse. Whether a larger
layout is twice as dense is asked without a search for the most that it carries.

The load does not enter, so that more of it never asks for other pods. Looser limits ask for the same pods or smaller
ones, as far as the looser ones that are looked at tell; so they do not take more GPUs for a small load. For a large
load they may where pods become smaller, hardly ever and by less than twice. No rule that leaves the load aside avoids
both.

Where all sizes are stated, what is left open is chosen as `/capacity` does: so that most is carried.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import floor, log2, prod
from typing import Final, cast

from service.engine.fleet.choice import deployments
from service.engine.fleet.deployments import Deployment, excess, highest_rate, resolve_size
from service.engine.fleet.given_gpus import carries_any, carries_more, largest, resolve_capacity
from service.engine.fleet.planned import legal_layouts
from service.engine.fleet.questions import FREE, CapacityQuestion, SizeQuestion
from service.engine.fleet.space import simplicity
from service.engine.inputs import Headroom, Layout, Limits, Load, StatedLayout
from service.engine.time.demand import Arrivals, Users, kind_of

DENSE_ENOUGH: Final = 0.5  # of the densest
DENSE_WITHIN_LOOSER: Final = 0.6  # the same within looser limits: pods that looser ones ask for are not left by chance
CLEARLY_MORE: Final = 1.2  # what is plainer is kept unless others of its size carry a fifth more
ACROSS_SERVERS: Final = 0.5  # what users count whom two servers hold: a larger cache serves nobody sooner
PACES_PER_OCTAVE: Final = 2  # of limits on pace that are looser
PACES: Final = 3  # of those
LEAST_RATE: Final = 2.0**-13  # that searches visit, or nearly so [1/s]
MOST_SHAPES: Final = 64  # of one model that are kept


def pod_of(question: SizeQuestion) -> Deployment:
    """Return one pod; where none carries a single request, the one that misses least."""
    # A pod is the same whatever share of the arrivals it gets, and told to carry them however they burst.
    question = replace(question, load=replace(question.load, is_spread=False))
    key = replace(
        question,
        load=_of_any_amount(question.load),
        headroom=Headroom(),
        offers=(),
        left_out_offers=(),
        flags=frozenset(),
    )
    kept = question.model.derived.by("pods", MOST_SHAPES)
    layout = cast("Layout", kept.get_or(key, lambda: _shape(question).layout))
    return _pod(question, layout)


def carried(pod: Deployment) -> float:
    """Return what one pod carries: users, or arrivals per second."""
    if kind_of(pod.load) is Arrivals:
        return highest_rate(pod)
    return pod.carries(Users).max_concurrent_requests


def carries_as(question: SizeQuestion, layout: Layout) -> bool:
    """Return whether a pod of a layout carries any load at all."""
    return carries_any(_capacity_of(replace(question, load=_of_any_amount(question.load)), layout))


def _of_any_amount(load: Load) -> Load:
    """Return a load of the same kind and lengths."""
    is_rate = load.request_rate_per_s is not None
    return replace(load, request_rate_per_s=1.0 if is_rate else None, concurrent_requests=None if is_rate else 1)


def _shape(question: SizeQuestion) -> Deployment:
    """Return a pod of the smallest layout that is dense enough; of several servers, or with a rest, where none is."""
    stated = _stated_gpus(question.layout)
    if stated is not None:
        asked = _capacity_question(question, stated)
        return largest(asked, resolve_capacity(asked))
    layouts = list(_layouts(question))
    filling = [layout for layout in layouts if _fills_servers(layout, question.gpu.gpus_per_node)]
    usual = 1 if question.is_of_memory else _usual_gpus(question)
    filling = [layout for layout in filling if layout.gpus_per_replica >= usual]
    tried: list[Deployment] = []
    for place, layout in enumerate(filling):
        tried.append(pod := _pod(question, layout))
        if carried(pod) and not _is_wasteful(question, pod, filling[place + 1 :]):
            return _densest(question, _dense_within_looser(question, pod, filling[place + 1 :]))
    for layout in layouts:
        if layout not in filling:
            tried.append(pod := _pod(question, layout))
            if carried(pod):
                return pod
    smallest = _smallest(question)
    if smallest is not None:
        return _pod(question, smallest)
    return min(tried, key=lambda pod: (pod.plan.shortfall_bytes, excess(pod, question.limits), simplicity(pod.layout)))


def _dense_within_looser(question: SizeQuestion, pod: Deployment, larger: Sequence[Layout]) -> Deployment:
    """Return a pod, or the smallest of larger ones of one server that is dense enough within looser limits as well."""
    larger = [layout for layout in larger if layout.gpus_per_replica <= question.gpu.gpus_per_node]
    for limits in _looser(question) if larger else ():
        asked = replace(question, limits=limits)
        for place, layout in enumerate(larger):
            if not _is_wasteful(asked, _pod(asked, pod.layout), larger[place:], DENSE_WITHIN_LOOSER):
                break
            next_larger = _pod(question, layout)
            if carried(next_larger):
                pod = next_larger
        larger = [layout for layout in larger if layout.gpus_per_replica > pod.layout.gpus_per_replica]
    return pod


def _looser(question: SizeQuestion) -> Iterator[Limits]:
    """Yield limits on pace alone: as stated, and the next looser ones of a grid that is the same whatever is stated."""
    limits = replace(question.limits, ttft_s=None)
    if limits.are_stated or (question.limits.are_stated and kind_of(question.load) is Arrivals):
        yield limits
    if limits.tpot_s is not None:
        step = floor(PACES_PER_OCTAVE * log2(limits.tpot_s)) + 1
        yield from (replace(limits, tpot_s=2.0 ** (place / PACES_PER_OCTAVE)) for place in range(step, step + PACES))


def _stated_gpus(stated: StatedLayout) -> int | None:
    """Return the GPUs of a layout of which all sizes are stated; None where one is left open."""
    sizes = stated.tensor_parallel_size, stated.pipeline_parallel_size, stated.data_parallel_size
    return None if None in sizes else prod(size for size in sizes if size is not None)


def _usual_gpus(question: SizeQuestion) -> int:
    """Return the GPUs of a pod by memory alone, of one server at most; 1 where none holds a request."""
    users = replace(question.load, concurrent_requests=1, request_rate_per_s=None, request_duration_s=None, alike=None)
    usual = pod_of(replace(question, load=users, limits=Limits()))
    return min(usual.layout.gpus_per_replica, question.gpu.gpus_per_node) if carried(usual) else 1


def _smallest(question: SizeQuestion) -> Layout | None:
    """Return the layout on which the least load takes the fewest GPUs, of all that `size` looks at; None of none."""
    is_rate = kind_of(question.load) is Arrivals
    least = replace(
        question.load,
        request_rate_per_s=LEAST_RATE if is_rate else None,
        concurrent_requests=None if is_rate else 1,
        request_duration_s=None,
        alike=None,
    )
    found = deployments(replace(question, load=least, headroom=Headroom(), budget=FREE))
    carrying = [each.layout for each in found if each.is_feasible]
    return min(carrying, key=lambda layout: (layout.gpus_per_replica, simplicity(layout)), default=None)


def _densest(question: SizeQuestion, pod: Deployment) -> Deployment:
    """Return a pod, or one of as many GPUs that carries clearly more within limits; the plainest of those alike."""
    if question.is_of_memory:
        return pod
    for layout in legal_layouts(resolve_size(question), question.layout).usual:
        is_alike = layout.gpus_per_replica == pod.layout.gpus_per_replica and layout != pod.layout
        is_whole = is_alike and _fills_servers(layout, question.gpu.gpus_per_node)
        if is_whole and _carries_more(question, layout, CLEARLY_MORE * carried(pod)):
            pod = _pod(question, layout)
    return pod


def _fills_servers(layout: Layout, gpus_per_node: int) -> bool:
    """Return whether a server is filled without a rest, or two by what crosses them at ease: stages, or copies."""
    ranks = layout.gpus_per_replica
    if ranks == 2 * gpus_per_node:
        return layout.data_parallel_size == ranks or layout.tensor_parallel_size == gpus_per_node
    return gpus_per_node % ranks == 0


def _is_wasteful(
    question: SizeQuestion, pod: Deployment, others: Sequence[Layout], dense_enough: float = DENSE_ENOUGH
) -> bool:
    """Return whether GPUs of another layout carry so much more than those of a pod that it is not dense enough."""
    enough = carried(pod) / pod.layout.gpus_per_replica / dense_enough
    return any(_carries_more(question, layout, enough * layout.gpus_per_replica) for layout in others)


def _carries_more(question: SizeQuestion, layout: Layout, than: float) -> bool:
    if question.is_of_memory:
        counted = ACROSS_SERVERS if layout.gpus_per_replica > question.gpu.gpus_per_node else 1.0
        return counted * carried(_pod(question, layout)) > than
    return carries_more(_capacity_of(question, layout), than)


def _layouts(question: SizeQuestion) -> Iterator[Layout]:
    """Yield the layouts in question, smallest first: of each size and kind the plainest."""
    seen: set[tuple[int, bool, bool | None]] = set()
    for layout in legal_layouts(resolve_size(question), question.layout).usual:
        gpus, copies = layout.gpus_per_replica, layout.data_parallel_size
        in_stages = copies == 1 and gpus > question.gpu.gpus_per_node
        kind = gpus, copies == gpus > 1, layout.expert_parallel if in_stages else None
        if kind not in seen:
            seen.add(kind)
            yield layout


def _pod(question: SizeQuestion, layout: Layout) -> Deployment:
    """Return one pod of a layout with the settings that carry most, whatever the load; of equals the engine's own."""
    asked = _capacity_of(replace(question, load=_of_any_amount(question.load)), layout)
    return replace(largest(asked, resolve_capacity(asked)), load=question.load)


def _capacity_of(question: SizeQuestion, layout: Layout) -> CapacityQuestion:
    """Return the question how much one pod of a layout carries."""
    return replace(_capacity_question(question, layout.gpus_per_replica), layout=StatedLayout.of(layout))


def _capacity_question(question: SizeQuestion, gpus: int) -> CapacityQuestion:
    """Return the question how much one pod of so many GPUs carries."""
    return CapacityQuestion(
        model=question.model,
        gpu=question.gpu,
        gpu_count=gpus,
        load=question.load,
        input_tokens=question.load.input_tokens,
        output_tokens=question.load.output_tokens,
        limits=question.limits,
        layout=question.layout,
        settings=question.settings,
        rules=question.rules,
        timers=question.timers,
    )
