"""`size`: this model, this load, this GPU type; how many?"""

from dataclasses import replace

from service.engine.answers.advice import binding_constraint, levers, one_step_less, one_step_more, would_fit
from service.engine.answers.assumptions import size_assumptions
from service.engine.answers.disaggregated import Disaggregated, disaggregated, later
from service.engine.answers.results import PerReplica, Saturation, Sizing
from service.engine.fleet.arguments import engine_args, names_drafter, unnamed_settings
from service.engine.fleet.costs import Fleet, cheapest
from service.engine.fleet.deployments import (
    Deployment,
    best,
    deployments,
    latency_of,
    load_state,
    next_smaller,
    resolve_size,
    schedule_at,
    timed,
)
from service.engine.fleet.questions import SettingsWish, SizeQuestion
from service.engine.fleet.replicas import ReplicaCapacity
from service.engine.fleet.results import Cost
from service.engine.fleet.settings import Resolved, with_max_num_seqs
from service.engine.inputs import Limits
from service.engine.memory.plan import MemoryPlan, model_weights
from service.engine.time.replica import Replica, at_concurrency, saturation_rate

POOLS_WARNING = (
    "gpus, cost, ttft_s and end_to_end_s are of both pools; layout, memory, at_load, saturation and engine_args are of "
    "the decode pool: set the prefill pool's sizes under pools, and the engine's own transfer of caches, beside them"
)
UNNAMED = {"weight_format": ": the catalog has no such checkpoint, so convert the model's own first"}
NO_TIME_WARNING = "sized from memory alone: nobody can tell the time of a step on this GPU"


def size(question: SizeQuestion) -> Sizing:
    """Return the fewest GPUs of one type that carry the load, and the reason.

        gpus = min over legal layouts of (ceil(requests x (1 + headroom) / requests per replica) + spares)
               x tensor_parallel_size x pipeline_parallel_size x data_parallel_size

    Raises:
        EngineError: the question contradicts itself or names something without a rule.
    """
    return _size_pools(question) if question.disaggregated else _size_whole(question)


def _size_pools(question: SizeQuestion) -> Sizing:
    """Return the decode pool's sizing, with the prefill pool's GPUs and wait added."""
    found = disaggregated(question)
    feasible = found.is_feasible
    limits = Limits(tpot_s=question.limits.tpot_s, percentile=question.limits.percentile)
    decode = _size_whole(
        replace(question, disaggregated=False, limits=limits, load=replace(question.load, phase="decode"))
    )
    latency = decode.latency
    if latency is not None and found.ttft_s is not None:
        latency = replace(latency, ttft_s=found.ttft_s, end_to_end_s=later(latency.end_to_end_s, found))
    short = found.prefill.plan.shortfall_bytes
    return replace(
        decode,
        feasible=feasible,
        gpus=found.prefill.gpus + found.decode.gpus if feasible else 0,
        pools=found.pools,
        binding_constraint=decode.binding_constraint
        if found.prefill.is_feasible
        else binding_constraint(found.prefill, None),
        shortfall_bytes=max(decode.shortfall_bytes, 0 if found.prefill.is_feasible else short),
        would_fit=(*decode.would_fit, *would_fit(found.prefill, question.limits, ())),
        latency=latency if feasible else None,
        one_gpu_step_less=None,
        one_gpu_step_more=None,
        levers=(),
        warnings=(*decode.warnings, POOLS_WARNING),
        cost=_cost_of_both(question, found) if feasible else None,
    )


def _cost_of_both(question: SizeQuestion, found: Disaggregated) -> Cost | None:
    """Return the price of both pools where one offer holds both; None otherwise."""
    one, other = _cost(question, found.prefill), _cost(question, found.decode)
    if one is None or other is None or one.offer != other.offer:
        return None
    return replace(other, usd_per_hour=one.usd_per_hour + other.usd_per_hour, instances=one.instances + other.instances)


def _size_whole(question: SizeQuestion) -> Sizing:
    """Return the sizing of replicas that read and decode."""
    resolved = resolve_size(question)
    chosen = best(deployments(question), question.limits)
    smaller = next_smaller(question, chosen) if chosen.replicas == 1 else None
    found = levers(question, chosen)
    plan = chosen.plan
    feasible = chosen.is_feasible
    replica = chosen.replica or timed(plan, question.timers, question.load)
    seen = schedule_at(replica, question.load, chosen.replicas) if replica and feasible else None
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
        pools=None,
        binding_constraint=binding_constraint(chosen, smaller),
        shortfall_bytes=0 if feasible else plan.shortfall_bytes,
        would_fit=would_fit(chosen, question.limits, found),
        weights=model_weights(plan),
        memory_per_gpu=plan.memory,
        kv_cache=plan.kv_cache,
        per_replica=per_replica(chosen.capacity, replica),
        latency=latency_of(replica, seen) if replica and seen else None,
        at_load=load_state(seen, chosen.replicas) if seen else None,
        saturation=saturation(chosen.capacity, replica, chosen.replicas),
        one_gpu_step_less=one_step_less(chosen, smaller),
        one_gpu_step_more=one_step_more(chosen),
        levers=found,
        cost=_cost(question, chosen),
        engine_args=engine_args(question.rules.engine, plan, question.settings),
        assumptions=size_assumptions(question, as_deployed(resolved, plan), plan, replica),
        warnings=(
            *time_warnings(replica, is_timed=question.timers is not None and plan.holds_one_request),
            *extra_warnings(plan, question.settings),
        ),
        rules_version=question.rules.rules_version,
    )


def as_deployed(resolved: Resolved, plan: MemoryPlan) -> Resolved:
    """Return settings with the cap on running requests that was chosen for a plan."""
    cap = plan.settings.max_num_seqs
    return resolved if cap == resolved.settings.max_num_seqs else with_max_num_seqs(resolved, cap)


def per_replica(capacity: ReplicaCapacity, replica: Replica | None) -> PerReplica:
    """Return what one replica carries."""
    rate = _rate(capacity, replica)
    return PerReplica(
        max_concurrent_requests=capacity.max_concurrent_requests,
        requests_per_s=rate,
        output_tokens_per_s=None if rate is None or replica is None else rate * output_tokens(replica),
    )


def _rate(capacity: ReplicaCapacity, replica: Replica | None) -> float | None:
    """Return the rate of the largest load: as searched, or the throughput of so many users."""
    if capacity.max_request_rate_per_s is not None or replica is None:
        return capacity.max_request_rate_per_s
    users = capacity.max_concurrent_requests
    return at_concurrency(replica, users).requests_per_s if users else 0.0


def output_tokens(replica: Replica) -> float:
    """Return the mean completion of the simulated requests. [tokens]."""
    found = at_concurrency(replica, 1)
    return found.output_tokens_per_s / found.requests_per_s


def saturation(capacity: ReplicaCapacity, replica: Replica | None, replicas: int) -> Saturation:
    """Return the load at which limits break, and the rate at which the queue grows without end."""
    rate = _rate(capacity, replica)
    return Saturation(
        concurrent_requests=replicas * capacity.max_concurrent_requests,
        request_rate_per_s=None if rate is None else replicas * rate,
        queue_diverges_at_requests_per_s=None
        if replica is None
        else replicas * max(saturation_rate(replica), rate or 0),
    )


def time_warnings(replica: Replica | None, *, is_timed: bool) -> tuple[str, ...]:
    """Return what a reader of the latency must know."""
    if replica is None:
        return (NO_TIME_WARNING,) if is_timed else ()
    if not replica.timer.basis_note:
        return ()
    percent = round(100 * replica.timer.expected_error_fraction)
    return (f"latency is a roofline estimate, expected within {percent} %: {replica.timer.basis_note}",)


def extra_warnings(plan: MemoryPlan, wish: SettingsWish) -> tuple[str, ...]:
    """Return what a reader of a deployment must add, with drafts, adapters or settings that no flag names."""
    drafts = "engine_args do not name the drafter; add the engine's own speculative decoding options"
    spread = "decode_context_parallel_size counts in memory; step times are those without it"
    adapters = "adapters count in memory; what their kernels add to a step is not known"
    packed = "the kernel for selected latents reads caches spread over ranks in packed form only: kv_cache_dtype=fp8"
    settings = plan.settings
    is_unnamed = bool(settings.num_speculative_tokens) and not names_drafter(plan)
    unnamed = tuple(f"engine_args have no flag for {it}{UNNAMED.get(it, '')}" for it in unnamed_settings(plan, wish))
    return (
        unnamed
        + (drafts,) * is_unnamed
        + (adapters,) * bool(settings.max_loras)
        + (spread,) * (plan.layout.decode_context_parallel_size > 1)
        + (packed,) * _spreads_unpacked_latents(plan)
    )


def _spreads_unpacked_latents(plan: MemoryPlan) -> bool:
    """Return whether a 16-bit cache of selected latents is spread over ranks, which the plan allows and no kernel runs.

    Source: vLLM 0.33 `v1/attention/backends/mla/flashmla_sparse.py`.
    """
    is_spread = plan.layout.decode_context_parallel_size > 1 and plan.settings.kv_cache_dtype != "fp8"
    needs = (need for mixer in plan.model.architecture.mixers for need in mixer.kernel_needs)
    return is_spread and plan.device.is_vllm_on_cuda and any(need.kind == "sparse" for need in needs)


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
