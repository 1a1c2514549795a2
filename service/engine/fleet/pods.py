"""The shape of a pod where nobody states it: small, and not wasteful, whatever the load of the moment.

    density(layout)  = load of one pod within limits / its GPUs; half of that over two servers, where nobody limits time
    shape            = the smallest layout with density >= half of the densest; within limits, of as many GPUs one
                       that carries a fifth more

of layouts that fill a server without a rest, or two by stages of a server each or by copies of the attention that share
experts. A layout on which the weights leave room for a handful of requests carries them at several times the GPUs of
the next larger one; one that is denser by a tenth and twice as large scales in steps twice as coarse. The load does not
enter, so that more of it never asks for other pods. Whether a larger layout is twice as dense is asked without a search
for the most that it carries.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, cast

from service.engine.fleet.deployments import Deployment, resolve_size
from service.engine.fleet.given_gpus import as_started, carries_more, highest_rate, largest, resolve_capacity
from service.engine.fleet.planned import legal_layouts
from service.engine.fleet.questions import CapacityQuestion, SizeQuestion
from service.engine.inputs import Headroom, Layout, Load, StatedLayout
from service.engine.time.demand import Arrivals, Users, kind_of

DENSE_ENOUGH: Final = 0.5  # of the densest
CLEARLY_MORE: Final = 1.2  # what is plainer is kept unless others of its size carry a fifth more
ACROSS_SERVERS: Final = 0.5  # what users count whom two servers hold: a larger cache serves nobody sooner
MOST_SHAPES: Final = 64  # of one model that are kept


def pod_of(question: SizeQuestion) -> Deployment:
    """Return one pod; where none carries a single request, the one that misses least."""
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


def _of_any_amount(load: Load) -> Load:
    """Return a load of the same kind and lengths."""
    is_rate = load.request_rate_per_s is not None
    return replace(load, request_rate_per_s=1.0 if is_rate else None, concurrent_requests=None if is_rate else 1)


def _shape(question: SizeQuestion) -> Deployment:
    """Return a pod of the smallest layout that is dense enough; of several servers, or with a rest, where none is."""
    layouts = list(_layouts(question))
    filling = [layout for layout in layouts if _fills_servers(layout, question.gpu.gpus_per_node)]
    tried: list[Deployment] = []
    for place, layout in enumerate(filling):
        tried.append(pod := _pod(question, layout))
        if carried(pod) and not _is_wasteful(question, pod, filling[place + 1 :]):
            return _densest(question, pod)
    for layout in layouts:
        if layout not in filling:
            tried.append(pod := _pod(question, layout))
            if carried(pod):
                return pod
    return min(tried, key=lambda pod: (pod.plan.shortfall_bytes, -pod.layout.gpus_per_replica))


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


def _is_wasteful(question: SizeQuestion, pod: Deployment, others: Sequence[Layout]) -> bool:
    """Return whether GPUs of another layout carry so much more than those of a pod that it is not dense enough."""
    enough = carried(pod) / pod.layout.gpus_per_replica / DENSE_ENOUGH
    return any(_carries_more(question, layout, enough * layout.gpus_per_replica) for layout in others)


def _carries_more(question: SizeQuestion, layout: Layout, than: float) -> bool:
    if question.is_of_memory:
        counted = ACROSS_SERVERS if layout.gpus_per_replica > question.gpu.gpus_per_node else 1.0
        return counted * carried(_pod(question, layout)) > than
    return carries_more(_capacity_question(question, layout), than)


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
    """Return one pod of a layout: as the engine starts by itself where memory alone decides and that is dense enough.

    Else with the settings that carry most: where nobody limits latency those read prompts in the smallest steps.
    """
    asked = _capacity_question(question, layout)
    resolved = resolve_capacity(asked)
    most = largest(asked, resolved)
    if not question.is_of_memory:
        return most
    own = as_started(asked, resolved, layout)
    return own if carried(own) >= DENSE_ENOUGH * carried(most) else most


def _capacity_question(question: SizeQuestion, layout: Layout) -> CapacityQuestion:
    """Return the question how much one pod of a layout carries."""
    return CapacityQuestion(
        model=question.model,
        gpu=question.gpu,
        gpu_count=layout.gpus_per_replica,
        load=question.load,
        input_tokens=question.load.input_tokens,
        output_tokens=question.load.output_tokens,
        limits=question.limits,
        layout=StatedLayout.of(layout),
        settings=question.settings,
        rules=question.rules,
        timers=question.timers,
    )
