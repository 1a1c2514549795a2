"""`capacity`: this model on these GPUs; how much load?"""

from dataclasses import replace

from service.engine.advice import missing_memory
from service.engine.arguments import engine_args
from service.engine.assumptions import capacity_assumptions
from service.engine.costs import Fleet, cheapest
from service.engine.defaults import Resolved, resolve
from service.engine.errors import UnsupportedLayoutError
from service.engine.inputs import Layout
from service.engine.layouts import candidate_layouts
from service.engine.plan import MemoryPlan, memory_plan, model_weights
from service.engine.questions import CapacityQuestion
from service.engine.replicas import memory_capacity
from service.engine.results import Capacity, CapacityRow, PerReplica, Saturation
from service.engine.sizing import NO_TIME_WARNING

TABLE_CONTEXT_TOKENS = (2_048, 8_192, 32_768, 131_072)


def capacity(question: CapacityQuestion) -> Capacity:
    """Return how many requests the given GPUs hold, and the engine's own start-up numbers.

    Of the legal layouts that fit the GPUs, the one that holds most requests is chosen; the caller
    may fix it. Without `input_tokens` and `output_tokens`, requests have the longest context served.

    Raises:
        EngineError: the question contradicts itself or names something without a rule.
    """
    context = (question.input_tokens or 0) + (question.output_tokens or 0)
    resolved = resolve(question.model, question.gpu, question.settings, question.rules, context)
    plan = _best_plan(question, resolved)
    replicas = question.gpu_count // plan.layout.gpus_per_replica
    held = memory_capacity(plan)
    requests = replicas * held.max_concurrent_requests
    feasible = requests > 0
    return Capacity(
        feasible=feasible,
        max_concurrent_requests=requests,
        requests_per_s=None,
        max_model_len_fitting=plan.kv_cache.estimated_max_model_len,
        gpus=replicas * plan.layout.gpus_per_replica,
        replicas=replicas,
        gpus_per_replica=plan.layout.gpus_per_replica,
        model=question.model.id,
        gpu=question.gpu.id,
        engine=question.rules.engine,
        weight_format=resolved.checkpoint.weight_format,
        kv_cache_dtype=resolved.kv_cache_dtype,
        layout=plan.layout,
        binding_constraint=held.binds,
        shortfall_bytes=plan.shortfall_bytes,
        would_fit=() if feasible else missing_memory(plan),
        weights=model_weights(plan),
        memory_per_gpu=plan.memory,
        kv_cache=plan.kv_cache,
        per_replica=PerReplica(
            max_concurrent_requests=held.max_concurrent_requests, requests_per_s=None, output_tokens_per_s=None
        ),
        latency=None,
        saturation=Saturation(concurrent_requests=requests, request_rate_per_s=None),
        table=tuple(_row(question, resolved, plan.layout, tokens) for tokens in _contexts(plan)),
        cost=cheapest(
            Fleet(
                gpu=question.gpu.id,
                replicas=replicas,
                gpus_per_replica=plan.layout.gpus_per_replica,
                gpus_per_node=question.gpu.gpus_per_node,
            ),
            question.offers,
        ),
        engine_args=engine_args(question.rules.engine, plan, question.settings),
        assumptions=capacity_assumptions(question, resolved, plan),
        warnings=(NO_TIME_WARNING,),
        rules_version=question.rules.rules_version,
    )


def _best_plan(question: CapacityQuestion, resolved: Resolved) -> MemoryPlan:
    """Return the plan of the layout that holds most requests on the given GPUs.

    Raises:
        UnsupportedLayoutError: no legal layout is as small as the GPUs given.
    """
    layouts = candidate_layouts(
        question.model.architecture, resolved.checkpoint.quantization, question.gpu, question.layout
    )
    fitting = [it for it in layouts if it.gpus_per_replica <= question.gpu_count]
    if not fitting:
        smallest = layouts[0].gpus_per_replica
        raise UnsupportedLayoutError(
            f"the layout needs {smallest} GPUs and gpu_count is {question.gpu_count}",
            field="gpu_count",
            accepted=f"at least {smallest}",
        )
    plans = [_plan(question, resolved, layout) for layout in fitting]
    return max(
        plans,
        key=lambda it: (
            question.gpu_count // it.layout.gpus_per_replica * memory_capacity(it).max_concurrent_requests,
            -it.shortfall_bytes,
            -it.layout.gpus_per_replica,
        ),
    )


def _plan(question: CapacityQuestion, resolved: Resolved, layout: Layout) -> MemoryPlan:
    """Return the plan for requests of the asked lengths, or of the longest context served."""
    plan = memory_plan(
        question.model,
        resolved.checkpoint,
        question.gpu,
        layout,
        resolved.settings,
        question.rules,
        input_tokens=question.input_tokens or 0,
        output_tokens=question.output_tokens or 0,
        shorten_to_fit=resolved.shorten_to_fit,
    )
    if question.input_tokens is None and question.output_tokens is None:
        return plan_at(question, resolved, layout, plan.settings.max_model_len)
    return plan


def plan_at(question: CapacityQuestion, resolved: Resolved, layout: Layout, context_tokens: int) -> MemoryPlan:
    """Return the plan for requests of exactly this context. [tokens]."""
    return memory_plan(
        question.model,
        resolved.checkpoint,
        question.gpu,
        layout,
        resolved.settings,
        question.rules,
        input_tokens=context_tokens,
        output_tokens=0,
        shorten_to_fit=resolved.shorten_to_fit,
    )


def _contexts(plan: MemoryPlan) -> tuple[int, ...]:
    longest = plan.model.architecture.max_position_embeddings
    return tuple(sorted({min(tokens, longest) for tokens in TABLE_CONTEXT_TOKENS}))


def _row(question: CapacityQuestion, resolved: Resolved, layout: Layout, context_tokens: int) -> CapacityRow:
    """Return the requests of one context length that the GPUs hold when the engine serves that length."""
    settings = replace(resolved.settings, max_model_len=context_tokens)
    plan = plan_at(question, replace(resolved, settings=settings, shorten_to_fit=False), layout, context_tokens)
    replicas = question.gpu_count // layout.gpus_per_replica
    return CapacityRow(
        context_tokens=context_tokens,
        max_concurrent_requests=replicas * memory_capacity(plan).max_concurrent_requests,
        ttft_s=None,
        tpot_s=None,
        requests_per_s=None,
        output_tokens_per_s=None,
    )
