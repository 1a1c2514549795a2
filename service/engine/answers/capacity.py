"""`capacity`: this model on these GPUs; how much load?"""

from dataclasses import replace

from service.engine.answers.advice import looser_limits, missing_memory
from service.engine.answers.assumptions import capacity_assumptions
from service.engine.answers.results import Capacity, CapacityRow, CurvePoint, PerReplica
from service.engine.answers.size import as_deployed, extra_warnings, output_tokens, saturation, time_warnings
from service.engine.engines.device import device_of
from service.engine.errors import UnsupportedLayoutError
from service.engine.fleet.arguments import engine_args
from service.engine.fleet.costs import Fleet, cheapest
from service.engine.fleet.deployments import latency_of, load_state, paced_replicas, require_time, schedule_at, timed
from service.engine.fleet.layouts import candidate_layouts
from service.engine.fleet.questions import CapacityQuestion
from service.engine.fleet.replicas import ReplicaCapacity, as_paced, is_by_rate, needs_time, replica_capacity
from service.engine.fleet.settings import Resolved, resolve, with_max_num_seqs
from service.engine.inputs import Layout, Load
from service.engine.memory.plan import MemoryPlan, memory_plan, model_weights
from service.engine.time.replica import Replica, at_concurrency
from service.engine.time.scheduler import ScheduleResult
from service.engine.time.search import highest_rate

TABLE_CONTEXT_TOKENS = (2_048, 8_192, 32_768, 131_072)
OUTPUT_SHARE = 8  # of a context, where the caller states no lengths
MOST_OUTPUT_TOKENS = 512
MOST_CURVE_POINTS = 14


def capacity(question: CapacityQuestion) -> Capacity:
    """Return how many requests the given GPUs hold, and the engine's own start-up numbers.

    Of the legal layouts that fit the GPUs, the one that holds most requests is chosen; the caller
    may fix it. Without `input_tokens` and `output_tokens`, requests have the longest context served.

    Raises:
        EngineError: the question contradicts itself or names something without a rule.
    """
    context = (question.input_tokens or 0) + (question.output_tokens or 0)
    resolved = resolve(question.model, question.gpu, question.settings, question.rules, context)
    plan, replica, is_paced = _paced(question, resolved, _best_plan(question, resolved))
    replicas = question.gpu_count // plan.layout.gpus_per_replica
    load = _lengths(question, plan)
    carried = replica_capacity(plan, replica, replace(load, request_rate_per_s=None), question.limits)
    if is_paced:
        carried = as_paced(carried)
    rate = None if replica is None else replicas * highest_rate(replica, question.limits).load
    requests = replicas * carried.max_concurrent_requests
    feasible = requests > 0
    seen = _seen(replica, load, replicas, carried)
    return Capacity(
        feasible=feasible,
        max_concurrent_requests=requests,
        requests_per_s=rate,
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
        binding_constraint=carried.binds,
        shortfall_bytes=plan.shortfall_bytes,
        would_fit=_would_fit(question, plan, replica, feasible=feasible),
        weights=model_weights(plan),
        memory_per_gpu=plan.memory,
        kv_cache=plan.kv_cache,
        per_replica=PerReplica(
            max_concurrent_requests=carried.max_concurrent_requests,
            requests_per_s=None if rate is None else rate / replicas,
            output_tokens_per_s=None if rate is None or replica is None else rate / replicas * output_tokens(replica),
        ),
        latency=latency_of(replica, seen) if replica and seen else None,
        at_load=load_state(seen, replicas) if seen else None,
        saturation=replace(saturation(carried, replica, replicas), request_rate_per_s=rate),
        curve=_curve(replica, replicas),
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
        assumptions=capacity_assumptions(question, as_deployed(resolved, plan), plan, replica),
        warnings=(
            *time_warnings(replica, is_timed=question.timers is not None and plan.holds_one_request),
            *extra_warnings(plan, question.settings),
        ),
        rules_version=question.rules.rules_version,
    )


def _best_plan(question: CapacityQuestion, resolved: Resolved) -> MemoryPlan:
    """Return the plan of the layout that holds most requests on the given GPUs.

    Raises:
        UnsupportedLayoutError: no legal layout is as small as the GPUs given.
    """
    layouts = candidate_layouts(
        question.model.architecture,
        resolved.checkpoint.quantization,
        question.gpu,
        question.layout,
        device_of(question.gpu, question.rules),
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
    return max(plans, key=lambda it: _merits(question, resolved, it))


def _merits(question: CapacityQuestion, resolved: Resolved, plan: MemoryPlan) -> tuple[float, int, int]:
    """Return what makes a layout better: the load of all replicas, then less missing memory, then fewer GPUs."""
    load = _lengths(question, plan)
    replica = None
    if needs_time(load, question.limits):
        _, replica, _ = _paced(question, resolved, plan)
        require_time(plan, question.timers, replica)
    replicas = question.gpu_count // plan.layout.gpus_per_replica
    if replica is not None and is_by_rate(load):
        amount = highest_rate(replica, question.limits).load
    else:
        amount = replica_capacity(plan, replica, load, question.limits).max_concurrent_requests
    return replicas * amount, -plan.shortfall_bytes, -plan.layout.gpus_per_replica


def _paced(question: CapacityQuestion, resolved: Resolved, plan: MemoryPlan) -> tuple[MemoryPlan, Replica | None, bool]:
    """Return a plan with its step times, capped where a limit on TPOT is kept at higher rates so."""
    load, limits = _lengths(question, plan), question.limits
    replica = timed(plan, question.timers, load)
    if replica is None or question.settings.max_num_seqs is not None:
        return plan, replica, False

    def planned(cap: int) -> MemoryPlan:
        return _plan(question, with_max_num_seqs(resolved, cap), plan.layout)

    paced = tuple(paced_replicas(replica, question.timers, load, limits, planned))
    if not paced:
        return plan, replica, False
    best = max((replica, *paced), key=lambda it: highest_rate(it, limits).load)
    return best.plan, best, best is not replica


def _lengths(question: CapacityQuestion, plan: MemoryPlan) -> Load:
    """Return the asked load with the lengths that are timed: without any, a long prompt and a short answer."""
    if question.input_tokens is None and question.output_tokens is None:
        return _split(question.load, plan.context_tokens)
    return replace(question.load, input_tokens=question.input_tokens or 0, output_tokens=question.output_tokens or 0)


def _split(load: Load, context_tokens: int) -> Load:
    """Return a load whose requests fill a context, an eighth of it or 512 tokens with output."""
    output = max(min(context_tokens // OUTPUT_SHARE, MOST_OUTPUT_TOKENS), 1)
    return replace(load, input_tokens=max(context_tokens - output, 1), output_tokens=output)


def _seen(replica: Replica | None, load: Load, replicas: int, carried: ReplicaCapacity) -> ScheduleResult | None:
    """Return what users see at the asked load, or at the largest one carried."""
    if replica is None or not replicas:
        return None
    if load.concurrent_requests is not None or load.request_rate_per_s is not None:
        return schedule_at(replica, load, replicas)
    return at_concurrency(replica, carried.max_concurrent_requests) if carried.max_concurrent_requests else None


def _would_fit(
    question: CapacityQuestion, plan: MemoryPlan, replica: Replica | None, *, feasible: bool
) -> tuple[str, ...]:
    if feasible:
        return ()
    return missing_memory(plan) if replica is None else looser_limits(replica, question.limits)


def _curve(replica: Replica | None, replicas: int) -> tuple[CurvePoint, ...]:
    """Return latency against load, doubling from one user per replica to twice as many as run at once."""
    if replica is None or not replica.slots:
        return ()
    users = [1]
    while users[-1] < 2 * replica.slots and len(users) < MOST_CURVE_POINTS:
        users.append(min(2 * users[-1], 2 * replica.slots))
    return tuple(_point(at_concurrency(replica, count), count, replicas) for count in users)


def _point(found: ScheduleResult, users: int, replicas: int) -> CurvePoint:
    return CurvePoint(
        concurrent_requests=replicas * users,
        requests_per_s=replicas * found.requests_per_s,
        output_tokens_per_s=replicas * found.output_tokens_per_s,
        ttft_mean_s=found.ttft_s.mean,
        ttft_p95_s=found.ttft_s.percentile(95.0),
        tpot_mean_s=found.tpot_s.mean,
        tpot_p95_s=found.tpot_s.percentile(95.0),
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
    load = replace(_split(question.load, context_tokens), concurrent_requests=None, request_rate_per_s=None)
    replica = timed(plan, question.timers, load)
    carried = replica_capacity(plan, replica, load, question.limits)
    users = carried.max_concurrent_requests
    seen = at_concurrency(replica, users) if replica is not None and users else None
    return CapacityRow(
        context_tokens=context_tokens,
        max_concurrent_requests=replicas * users,
        ttft_s=seen.ttft_s.percentile(question.limits.percentile) if seen else None,
        tpot_s=seen.tpot_s.percentile(question.limits.percentile) if seen else None,
        requests_per_s=replicas * seen.requests_per_s if seen else None,
        output_tokens_per_s=replicas * seen.output_tokens_per_s if seen else None,
    )
