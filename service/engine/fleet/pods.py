"""The shape of a pod where nobody states it: small, and not wasteful, whatever the load of the moment.

    density(layout)  = load of one pod within limits / its GPUs, half of that over two servers
    shape            = the smallest layout with density >= half of the densest

of layouts that fill a server without a rest, or two where copies of the attention share experts. A layout on which the
weights leave room for a handful of requests carries them at several times the GPUs of the next larger one; one that is
denser by a tenth and twice as large scales in steps twice as coarse. The load does not enter, so that more of it never
asks for other pods.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, cast

from service.engine.fleet.deployments import Deployment, resolve_size
from service.engine.fleet.given_gpus import as_started, highest_rate, largest, resolve_capacity
from service.engine.fleet.planned import legal_layouts
from service.engine.fleet.questions import CapacityQuestion, SizeQuestion
from service.engine.inputs import Headroom, Layout, Load, StatedLayout
from service.engine.time.demand import Arrivals, Users, kind_of

DENSE_ENOUGH: Final = 0.5  # of the densest
ACROSS_SERVERS: Final = 0.5  # what a pod of two servers counts: it fails with either, and waits for both
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
    """Return a pod of the smallest layout that is dense enough."""
    layouts = list(_layouts(question))
    filling = [layout for layout in layouts if _fills_servers(layout, question.gpu.gpus_per_node)]
    pods = [_pod(question, layout) for layout in filling]
    dense = [_density(pod) for pod in pods]
    if any(dense):
        return next(pod for pod, each in zip(pods, dense, strict=True) if each >= DENSE_ENOUGH * max(dense))
    tried = list(pods)
    for layout in layouts:  # of several servers, or with a rest
        if layout not in filling:
            pod = _pod(question, layout)
            if carried(pod) > 0:
                return pod
            tried.append(pod)
    return min(tried, key=lambda pod: (pod.plan.shortfall_bytes, -pod.layout.gpus_per_replica))


def _fills_servers(layout: Layout, gpus_per_node: int) -> bool:
    """Return whether a server is filled without a rest, or two by copies of the attention, which cross it at ease."""
    ranks = layout.gpus_per_replica
    return gpus_per_node % ranks == 0 or layout.data_parallel_size == ranks == 2 * gpus_per_node


def _density(pod: Deployment) -> float:
    """Return what a GPU of a pod carries, less where the pod needs a second server."""
    gpus = pod.layout.gpus_per_replica
    return carried(pod) / gpus * (ACROSS_SERVERS if gpus > pod.plan.gpu.gpus_per_node else 1.0)


def _layouts(question: SizeQuestion) -> Iterator[Layout]:
    """Yield the layouts in question, smallest first: of each size the plainest, and copies of the attention alone."""
    seen: set[tuple[int, bool]] = set()
    for layout in legal_layouts(resolve_size(question), question.layout).usual:
        is_copied = layout.data_parallel_size == layout.gpus_per_replica > 1
        if (kind := (layout.gpus_per_replica, is_copied)) not in seen:
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
        layout=StatedLayout(
            tensor_parallel_size=layout.tensor_parallel_size,
            pipeline_parallel_size=layout.pipeline_parallel_size,
            data_parallel_size=layout.data_parallel_size,
            expert_parallel=layout.expert_parallel,
            decode_context_parallel_size=layout.decode_context_parallel_size,
        ),
        settings=question.settings,
        rules=question.rules,
        timers=question.timers,
    )
