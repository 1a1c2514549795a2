"""`replicas`: pods of one shape; how many of them carry the load?

The shape of a pod (its layout and settings) does not depend on the load, so that a fleet is scaled and never built
anew. One pod carries so much within limits, which is searched for once; replicas then follow by a division:

    replicas = ceil(load x (1 + headroom) / load of one pod) + spares

More load never takes fewer pods, and the same load always takes the same.
"""

from service.engine.answers.advice import looser_limits, missing_memory
from service.engine.answers.assumptions import replicas_assumptions
from service.engine.answers.described import warnings_of
from service.engine.answers.results import Pod, Replicas
from service.engine.fleet.aims import aim_of
from service.engine.fleet.arguments import engine_args
from service.engine.fleet.costs import fleet_of, price_notes
from service.engine.fleet.deployments import Deployment, resolve_size
from service.engine.fleet.given_gpus import highest_rate, largest, resolve_capacity
from service.engine.fleet.planned import legal_layouts
from service.engine.fleet.questions import CapacityQuestion, SizeQuestion
from service.engine.inputs import Layout, StatedLayout
from service.engine.memory.plan import model_weights
from service.engine.time.demand import Arrivals, Users, kind_of, wanted_of


def replicas(question: SizeQuestion) -> Replicas:
    """Return how many pods of one shape carry the load, and what one of them carries.

    Parts of the layout that are not stated are those of the smallest one that carries a single request.

    Raises:
        EngineError: the question contradicts itself or names something without a rule.
    """
    pod = _pod(question)
    of_one = _carried(pod)
    wanted = wanted_of(question.load, question.headroom)
    count = wanted.replicas(of_one) + question.headroom.spare_replicas if of_one else 0
    timed = pod.with_times(question.timers)
    plan, layout = pod.plan, pod.layout
    kind = kind_of(question.load)
    cost = aim_of("cost", question.gpu, question.offers).cost(layout, count) if count else None
    return Replicas(
        feasible=count > 0,
        replicas=count,
        gpus=count * layout.gpus_per_replica,
        gpus_per_replica=layout.gpus_per_replica,
        model=question.model.id,
        gpu=question.gpu.id,
        engine=question.rules.engine,
        weight_format=pod.resolved.checkpoint.weight_format,
        kv_cache_dtype=pod.resolved.kv_cache_dtype,
        layout=layout,
        weights=model_weights(plan),
        per_pod=Pod(
            max_concurrent_requests=int(of_one) if kind is Users else pod.carries(kind).max_concurrent_requests,
            max_requests_per_s=of_one if kind is Arrivals else None,
        ),
        utilization_fraction=wanted.amount / (count * of_one) if count else None,
        binding_constraint=pod.carries(kind).binds,
        would_fit=() if count else _would_fit(question, pod),
        cost=cost,
        engine_args=engine_args(plan, question.settings),
        assumptions=replicas_assumptions(question, timed),
        warnings=(
            *warnings_of(plan, timed.replica, question.settings, is_timed=question.timers is not None),
            *(price_notes(cost, (fleet_of(plan, count),), question) if count else ()),
        ),
        rules_version=question.rules.rules_version,
    )


def _pod(question: SizeQuestion) -> Deployment:
    """Return one pod: of the smallest layout that carries a single request, else the one that misses least."""
    tried: list[Deployment] = []
    for layout in _layouts(question):
        asked = _capacity_question(question, layout)
        pod = largest(asked, resolve_capacity(asked))
        if _carried(pod) > 0:
            return pod
        tried.append(pod)
    return min(tried, key=lambda pod: (pod.plan.shortfall_bytes, -pod.layout.gpus_per_replica))


def _layouts(question: SizeQuestion) -> list[Layout]:
    """Return the layouts in question, smallest first, the plainest of each size."""
    plainest: dict[int, Layout] = {}
    for layout in legal_layouts(resolve_size(question), question.layout).usual:
        plainest.setdefault(layout.gpus_per_replica, layout)
    return list(plainest.values())


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


def _carried(pod: Deployment) -> float:
    """Return what one pod carries: users, or arrivals per second."""
    if kind_of(pod.load) is Arrivals:
        return highest_rate(pod)
    return pod.carries(Users).max_concurrent_requests


def _would_fit(question: SizeQuestion, pod: Deployment) -> tuple[str, ...]:
    """Return what would make one pod carry a request."""
    if pod.replica is None:
        return missing_memory(pod.plan)
    return looser_limits(pod.replica, question.limits)
