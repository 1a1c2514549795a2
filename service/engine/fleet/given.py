"""The deployment that carries most on the GPUs given."""

from dataclasses import replace

from service.engine.errors import UnsupportedLayoutError
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.pacing import may_pace, paced_replicas
from service.engine.fleet.planned import legal_layouts, planned
from service.engine.fleet.questions import CapacityQuestion
from service.engine.fleet.settings import Resolved, resolve
from service.engine.inputs import Layout, Load
from service.engine.memory.plan import MemoryPlan
from service.engine.time.carried import deciding_replica
from service.engine.time.demand import Arrivals, Users, kind_of
from service.engine.time.replica import Replica, timed

OUTPUT_SHARE = 8  # of a context, where the caller states no lengths
MOST_OUTPUT_TOKENS = 512


def resolve_capacity(question: CapacityQuestion) -> Resolved:
    """Return the question's settings without a gap."""
    context = (question.input_tokens or 0) + (question.output_tokens or 0)
    return resolve(question.model, question.gpu, question.settings, question.rules, context)


def largest(question: CapacityQuestion, resolved: Resolved) -> Deployment:
    """Return the deployment that holds most requests on the given GPUs.

    Raises:
        UnsupportedLayoutError: no legal layout is as small as the GPUs given.
    """
    layouts = legal_layouts(resolved, question.layout)
    fitting = [layout for layout in layouts if layout.gpus_per_replica <= question.gpu_count]
    if not fitting:
        smallest = layouts[0].gpus_per_replica
        raise UnsupportedLayoutError(
            f"the layout needs {smallest} GPUs and gpu_count is {question.gpu_count}",
            field="gpu_count",
            accepted=f"at least {smallest}",
        )
    plans = [_plan(question, resolved, layout) for layout in fitting]
    return _paced(question, resolved, max(plans, key=lambda plan: _merits(question, resolved, plan)))


def _merits(question: CapacityQuestion, resolved: Resolved, plan: MemoryPlan) -> tuple[float, int, int]:
    """Return what makes a layout better: the load of all replicas, then less missing memory, then fewer GPUs."""
    load = _lengths(question, plan)
    deployment = _deployment(question, resolved, plan, None)
    if deciding_replica(plan, question.timers, load, question.limits) is not None:
        deployment = _paced(question, resolved, plan)
    if kind_of(load) is Arrivals and deployment.replica is not None:
        amount = _highest_rate(deployment)
    else:
        amount = deployment.carries(Users).max_concurrent_requests
    return deployment.replicas * amount, -plan.shortfall_bytes, -plan.layout.gpus_per_replica


def _paced(question: CapacityQuestion, resolved: Resolved, plan: MemoryPlan) -> Deployment:
    """Return a plan's replicas with their times, capped where a limit on TPOT is kept at higher rates so."""
    load, limits = _lengths(question, plan), question.limits
    replica = timed(plan, question.timers, load)
    own = _deployment(question, resolved, plan, replica)
    if replica is None or not may_pace(resolved, load, limits):
        return own
    paced = [
        replace(_deployment(question, capped, other.plan, other), is_paced=True)
        for capped, other in paced_replicas(
            resolved, replica, limits, lambda capped: _plan(question, capped, plan.layout)
        )
    ]
    return max((own, *paced), key=_highest_rate) if paced else own


def _deployment(
    question: CapacityQuestion, resolved: Resolved, plan: MemoryPlan, replica: Replica | None
) -> Deployment:
    """Return so many replicas as the GPUs given hold."""
    return Deployment(
        resolved=resolved,
        plan=plan,
        replica=replica,
        load=_lengths(question, plan),
        limits=question.limits,
        replicas=question.gpu_count // plan.layout.gpus_per_replica,
    )


def _highest_rate(deployment: Deployment) -> float:
    """Return the highest rate of one replica within limits; 0 where nobody tells time. [1/s]."""
    replica = deployment.replica
    return 0.0 if replica is None else replica.most(Arrivals, deployment.limits).load


def at_context(question: CapacityQuestion, resolved: Resolved, layout: Layout, context_tokens: int) -> Deployment:
    """Return the given GPUs when the engine serves exactly this context. [tokens]."""
    settings = replace(resolved.settings, max_model_len=context_tokens)
    served = replace(resolved, settings=settings, shorten_to_fit=False)
    plan = planned(served, layout, context_tokens, 0)
    load = replace(_split(question.load, context_tokens), concurrent_requests=None, request_rate_per_s=None)
    deployment = _deployment(question, served, plan, timed(plan, question.timers, load))
    return replace(deployment, load=load)


def _plan(question: CapacityQuestion, resolved: Resolved, layout: Layout) -> MemoryPlan:
    """Return the plan for requests of the asked lengths, or of the longest context served."""
    plan = planned(resolved, layout, question.input_tokens or 0, question.output_tokens or 0)
    if question.input_tokens is None and question.output_tokens is None:
        return planned(resolved, layout, plan.settings.max_model_len, 0)
    return plan


def _lengths(question: CapacityQuestion, plan: MemoryPlan) -> Load:
    """Return the asked load with the lengths that are timed: without any, a long prompt and a short answer."""
    if question.input_tokens is None and question.output_tokens is None:
        return _split(question.load, plan.context_tokens)
    return replace(question.load, input_tokens=question.input_tokens or 0, output_tokens=question.output_tokens or 0)


def _split(load: Load, context_tokens: int) -> Load:
    """Return a load whose requests fill a context, an eighth of it or 512 tokens with output."""
    output = max(min(context_tokens // OUTPUT_SHARE, MOST_OUTPUT_TOKENS), 1)
    return replace(load, input_tokens=max(context_tokens - output, 1), output_tokens=output)
