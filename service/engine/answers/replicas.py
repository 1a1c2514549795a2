"""`replicas`: pods of one shape; how many of them carry the load?

The shape of a pod (its layout and settings) does not depend on the load, so that a fleet is scaled and never built
anew. One pod carries so much within limits, which is searched for once; replicas then follow by a division:

    replicas = ceil(load x (1 + headroom) / load of one pod) + spares

More load never takes fewer pods, and the same load always takes the same.
"""

from dataclasses import replace
from functools import partial

from service.engine.answers.advice import looser_limits, missing_memory
from service.engine.answers.assumptions import size_assumptions
from service.engine.answers.described import warnings_of
from service.engine.answers.layout_notes import layout_of_pod
from service.engine.answers.levers import changes_that_fit
from service.engine.answers.outlasting import as_arrivals, left_out, outlast
from service.engine.answers.priced import priced
from service.engine.answers.results import Pod, Replicas
from service.engine.arithmetic import three_digits
from service.engine.fleet.aims import aim_of
from service.engine.fleet.command import launch
from service.engine.fleet.costs import fleet_of, price_notes
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.pods import carried, carries_as, pod_of
from service.engine.fleet.questions import SizeQuestion
from service.engine.inputs import Load
from service.engine.memory.plan import model_weights
from service.engine.time.chance import ROUGHLY_MEASURED
from service.engine.time.demand import Arrivals, Demand, Users, kind_of, wanted_of


def replicas(question: SizeQuestion) -> Replicas:
    """Return how many pods of one shape carry the load, and what one of them carries.

    Parts of the layout that are not stated are those of a shape that does not waste GPUs, as `fleet/pods.py` says.

    Raises:
        EngineError: the question contradicts itself or names something without a rule.
    """
    pod = pod_of(question)
    of_one = carried(pod)
    if of_one and outlast(_of_full(question.load, of_one), partial(_answered_when_full, question, pod)):
        told = replicas(replace(question, load=as_arrivals(question.load)))
        return replace(told, warnings=(*left_out(question.load, [as_arrivals(question.load)]), *told.warnings))
    return _counted(question, pod, of_one)


def _counted(question: SizeQuestion, pod: Deployment, of_one: float) -> Replicas:
    """Return how many pods carry the load of which one carries so much."""
    wanted = wanted_of(question.load, question.headroom)
    count = wanted.replicas(of_one) + question.headroom.spare_replicas if of_one else 0
    timed = pod.with_times(question.timers)
    plan, layout = pod.plan, pod.layout
    kind = kind_of(question.load)
    started = launch(pod, question.flags)
    cost = aim_of("cost", question.gpu, question.offers).cost(layout, count) if count else None
    gpus = count * layout.gpus_per_replica
    return Replicas(
        feasible=count > 0,
        replicas=count,
        gpus=gpus,
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
        command=started.command if count else None,
        engine_args=started.engine_args,
        assumptions=(*layout_of_pod(question, timed), *size_assumptions(question, timed), *priced(question)),
        warnings=(
            *warnings_of(
                plan,
                timed.replica,
                question.settings,
                question.layout,
                gpus,
                is_timed=question.timers is not None,
            ),
            *(_when_full(timed, kind.of(of_one), question) if count else ()),
            *(started.notes if count else ()),
            *(price_notes(cost, (fleet_of(plan, count),), question) if count else ()),
        ),
        rules_version=question.rules.rules_version,
    )


def _of_full(load: Load, of_one: float) -> Load:
    """Return the load of one full pod: whether its requests end in time does not depend on how many pods there are."""
    if load.request_duration_s is None:
        return load
    return replace(load, request_rate_per_s=of_one / load.request_duration_s)


def _answered_when_full(question: SizeQuestion, pod: Deployment) -> float | None:
    """Return what a pod answers that is filled to what it carries. [1/s]."""
    replica = pod.with_times(question.timers).replica
    return replica.seen(Users(int(carried(pod))), ROUGHLY_MEASURED).requests_per_s if replica else None


def _when_full(pod: Deployment, demand: Demand, question: SizeQuestion) -> tuple[str, ...]:
    """Return how long users of a pod wait that is filled to what it carries, where no limit holds that."""
    if pod.replica is None or question.limits.ttft_s is not None:
        return ()
    percentile = question.limits.percentile
    wait_s = pod.replica.seen(demand, pod.replica.measured_for(demand, question.limits)).ttft_s.percentile(percentile)
    told = f"in a pod filled to what it carries, first tokens take {three_digits(wait_s)} s at the"
    return (f"{told} {percentile:g}th percentile: ttft_s limits that",)


def _would_fit(question: SizeQuestion, pod: Deployment) -> tuple[str, ...]:
    """Return what would make one pod carry a request."""
    missing = missing_memory(pod.plan) if pod.replica is None else looser_limits(pod.replica, question.limits)
    return (*missing, *changes_that_fit(question, lambda other: carries_as(other, pod.layout)))
