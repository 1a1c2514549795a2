"""`size`: this model, this load, this GPU type; how many?"""

from service.engine.advice import binding_constraint, levers, one_step_less, one_step_more, would_fit
from service.engine.arguments import engine_args
from service.engine.assumptions import size_assumptions
from service.engine.costs import Fleet, cheapest
from service.engine.deployments import Deployment, best, deployments, resolve_size
from service.engine.plan import model_weights
from service.engine.questions import SizeQuestion
from service.engine.results import Cost, PerReplica, Saturation, Sizing

NO_TIME_WARNING = (
    "sized from memory alone: latency is not predicted for this question, so ttft_s and tpot_s are not checked"
)


def size(question: SizeQuestion) -> Sizing:
    """Return the fewest GPUs of one type that carry the load, and the reason.

        gpus = min over legal layouts of (ceil(requests x (1 + headroom) / requests per replica) + spares)
               x tensor_parallel_size x pipeline_parallel_size x data_parallel_size

    Raises:
        EngineError: the question contradicts itself or names something without a rule.
    """
    resolved = resolve_size(question)
    candidates = deployments(question)
    chosen = best(candidates)
    found = levers(question, chosen)
    plan = chosen.plan
    feasible = chosen.is_feasible
    return Sizing(
        feasible=feasible,
        gpus=chosen.gpus,
        replicas=chosen.replicas,
        gpus_per_replica=plan.layout.gpus_per_replica,
        model=question.model.id,
        gpu=question.gpu.id,
        engine=question.rules.engine,
        weight_format=resolved.checkpoint.weight_format,
        kv_cache_dtype=resolved.kv_cache_dtype,
        layout=plan.layout,
        binding_constraint=binding_constraint(chosen, candidates),
        shortfall_bytes=0 if feasible else plan.shortfall_bytes,
        would_fit=would_fit(chosen, found),
        weights=model_weights(plan),
        memory_per_gpu=plan.memory,
        kv_cache=plan.kv_cache,
        per_replica=per_replica(chosen),
        latency=None,
        saturation=_saturation(chosen),
        one_gpu_step_less=one_step_less(chosen, candidates),
        one_gpu_step_more=one_step_more(chosen),
        levers=found,
        cost=_cost(question, chosen),
        engine_args=engine_args(question.rules.engine, plan, question.settings),
        assumptions=size_assumptions(question, resolved, plan),
        warnings=(NO_TIME_WARNING,),
        rules_version=question.rules.rules_version,
    )


def per_replica(chosen: Deployment) -> PerReplica:
    """Return what one replica carries."""
    return PerReplica(
        max_concurrent_requests=chosen.capacity.max_concurrent_requests,
        requests_per_s=chosen.capacity.max_request_rate_per_s,
        output_tokens_per_s=None,
    )


def _saturation(chosen: Deployment) -> Saturation:
    rate = chosen.capacity.max_request_rate_per_s
    return Saturation(
        concurrent_requests=chosen.replicas * chosen.capacity.max_concurrent_requests,
        request_rate_per_s=None if rate is None else chosen.replicas * rate,
    )


def _cost(question: SizeQuestion, chosen: Deployment) -> Cost | None:
    if not chosen.is_feasible:
        return None
    fleet = Fleet(
        gpu=question.gpu.id,
        replicas=chosen.replicas,
        gpus_per_replica=chosen.layout.gpus_per_replica,
        gpus_per_node=question.gpu.gpus_per_node,
    )
    return cheapest(fleet, question.offers)
