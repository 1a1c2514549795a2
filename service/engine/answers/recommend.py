"""`recommend`: this model, this load; which GPU, layout and precision?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Final

from service.engine.answers.advice import looser_limits
from service.engine.answers.assumptions import recommend_assumptions
from service.engine.answers.results import Option, Recommendation, Rejection
from service.engine.arithmetic import GIB
from service.engine.errors import EngineError
from service.engine.fleet.costs import Fleet, cheapest, usd_per_million_tokens
from service.engine.fleet.deployments import (
    Deployment,
    best,
    deployments,
    fewest_gpus,
    resolve_size,
    schedule_at,
    timed,
)
from service.engine.fleet.questions import Offer, RecommendQuestion, SettingsWish, SizeQuestion
from service.engine.fleet.replicas import concurrency_of, needs_time
from service.engine.fleet.results import Cost
from service.engine.inputs import Gpu, KvCacheDtype, WeightFormat
from service.engine.time.scheduler import ScheduleResult

# Combinations that a quick estimate puts so far behind those already found are not looked at further.
HOPE_OF_A_BETTER_OFFER: Final = 1.15
HOPELESS = "no layout holds the requests within the limits, by a quick estimate"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    gpu: Gpu
    weight_format: WeightFormat
    kv_cache_dtype: KvCacheDtype
    deployment: Deployment
    cost: Cost | None


def recommend(question: RecommendQuestion) -> Recommendation:
    """Return the ways to carry the load, best first, and what was left out and why.

    Every GPU type, weight format and cache dtype in question is sized on its own; the objective
    orders what is feasible and within budget: price, then GPUs for `cost`; GPUs, then price for
    `gpus`; time to the last token at the 95th percentile for `latency`. Where time decides, a quick
    estimate orders the combinations, and those it puts well behind a full list are not simulated.
    """
    kept, rejected = _evaluated(question)
    ordered = sorted(kept, key=lambda it: _order(question, it))
    options = tuple(_option(question, it, rank, kept) for rank, it in enumerate(ordered[: question.limit], start=1))
    return Recommendation(
        feasible=bool(options),
        model=question.model.id,
        engine=question.rules.engine,
        options=options,
        rejected=tuple(rejected),
        assumptions=recommend_assumptions(question),
        warnings=(),
        rules_version=question.rules.rules_version,
    )


def _evaluated(question: RecommendQuestion) -> tuple[list[_Candidate], list[Rejection]]:
    """Return what is feasible and may be listed, and what was left out."""
    bounded = sorted(
        ((_least(question, gpu, wish), index, gpu, wish) for index, (gpu, wish) in enumerate(_combinations(question))),
        key=lambda it: it[:2],
    )
    kept: list[_Candidate] = []
    rejected: list[Rejection] = []
    for least, _, gpu, wish in bounded:
        if len(kept) >= question.limit:
            last = sorted(_order(question, it)[:2] for it in kept)[question.limit - 1]
            if least > last:
                break
        if least[0] == inf and needs_time(question.load, question.limits) and question.objective != "latency":
            rejected.append(_rejection(gpu, wish, HOPELESS))
            continue
        outcome = _try(question, gpu, wish, _worth_trying(question, gpu, kept))
        if isinstance(outcome, Rejection):
            rejected.append(outcome)
        elif outcome is not None:
            kept.append(outcome)
    return kept, rejected


def _worth_trying(question: RecommendQuestion, gpu: Gpu, kept: list[_Candidate]) -> int | None:
    """Return the most GPUs with which a combination still enters the list; None where any number may."""
    if len(kept) < question.limit or question.objective == "latency":
        return None
    first, _ = sorted(_order(question, it)[:2] for it in kept)[question.limit - 1]
    if question.objective == "gpus":
        return int(first)
    cheapest_gpu = min((it.usd_per_hour / it.gpu_count for it in _allowed(question, gpu)), default=0.0)
    return ceil(first / cheapest_gpu) if cheapest_gpu and first < float("inf") else None


def _least(question: RecommendQuestion, gpu: Gpu, wish: SettingsWish) -> tuple[float, float]:
    """Return a bound on the first two keys of the order: no deployment of a combination is better.

    A question that memory alone decides is not bounded but answered; neither is one about latency.
    """
    if question.objective == "latency" or not needs_time(question.load, question.limits):
        return 0.0, 0.0
    try:
        gpus = fewest_gpus(_size_question(question, gpu, wish), HOPE_OF_A_BETTER_OFFER)
    except EngineError:
        return 0.0, 0.0
    price = min((it.usd_per_hour / it.gpu_count for it in _allowed(question, gpu)), default=float("inf"))
    return (gpus * price, gpus) if question.objective == "cost" else (gpus, gpus * price)


def _combinations(question: RecommendQuestion) -> Iterator[tuple[Gpu, SettingsWish]]:
    """Yield every GPU with every weight format and cache dtype in question."""
    formats = question.weight_formats or ((question.settings.weight_format,) if question.settings.weight_format else ())
    own = tuple(dict.fromkeys(it.weight_format for it in question.model.checkpoints))
    dtypes: tuple[KvCacheDtype | None, ...] = question.kv_cache_dtypes or (question.settings.kv_cache_dtype,)
    for gpu in question.gpus:
        for weight_format in formats or own:
            for dtype in dtypes:
                yield gpu, replace(question.settings, weight_format=weight_format, kv_cache_dtype=dtype)


def _try(
    question: RecommendQuestion, gpu: Gpu, wish: SettingsWish, at_most_gpus: int | None
) -> _Candidate | Rejection | None:
    """Return the cheapest deployment of one combination, or why there is none; None if it takes too many GPUs."""
    size_question = _size_question(question, gpu, wish)
    try:
        resolved = resolve_size(size_question)
        if lacks_format(gpu, resolved.checkpoint.weight_format):
            return _rejection(gpu, wish, f"{gpu.name} has no kernels for {resolved.checkpoint.weight_format} weights")
        candidates = deployments(size_question, at_most_gpus, HOPE_OF_A_BETTER_OFFER)
        if not candidates:
            return None
        chosen = best(candidates, question.limits)
    except EngineError as error:
        return _rejection(gpu, wish, error.detail)
    if not chosen.is_feasible and chosen.replica is not None:
        return _rejection(gpu, wish, "; ".join(looser_limits(chosen.replica, question.limits)))
    if not chosen.is_feasible:
        missing = chosen.plan.shortfall_bytes / GIB
        return _rejection(gpu, wish, f"does not fit on any layout; {missing:.1f} GiB short on each GPU")
    cost = _cheapest_offer(question, gpu, chosen)
    reason = _over_budget(question, chosen, cost)
    if reason is not None:
        return _rejection(gpu, wish, reason)
    return _Candidate(
        gpu=gpu,
        weight_format=resolved.checkpoint.weight_format,
        kv_cache_dtype=resolved.kv_cache_dtype,
        deployment=chosen,
        cost=cost,
    )


def _size_question(question: RecommendQuestion, gpu: Gpu, wish: SettingsWish) -> SizeQuestion:
    return SizeQuestion(
        model=question.model,
        gpu=gpu,
        load=question.load,
        limits=question.limits,
        layout=question.layout,
        headroom=question.headroom,
        settings=wish,
        rules=question.rules,
        timers=question.timers,
    )


def lacks_format(gpu: Gpu, weight_format: WeightFormat) -> bool:
    """Return whether the engine has no way to run a format on a GPU.

    fp8 needs compute capability 7.5 (weight-only before 8.9), int4 7.5, the 4-bit floats 8.0.
    Other vendors' 4-bit floats need hardware that states a 4-bit peak.

    Source:
        vLLM quantization hardware table, docs.vllm.ai/en/latest/features/quantization.
    """
    if gpu.compute_capability is not None:
        needed = {"fp8": 7.5, "int8": 7.5, "int4": 7.5, "mxfp4": 8.0, "nvfp4": 8.0, "bf16": 8.0}.get(weight_format, 0.0)
        return float(gpu.compute_capability) < needed
    if weight_format == "nvfp4":
        return True
    return weight_format == "fp8" and "fp8" not in gpu.peak_flop_per_s


def _rejection(gpu: Gpu, wish: SettingsWish, reason: str) -> Rejection:
    return Rejection(gpu=gpu.id, weight_format=wish.weight_format, kv_cache_dtype=wish.kv_cache_dtype, reason=reason)


def _cheapest_offer(question: RecommendQuestion, gpu: Gpu, chosen: Deployment) -> Cost | None:
    fleet = Fleet(
        gpu=gpu.id,
        replicas=chosen.replicas,
        gpus_per_replica=chosen.layout.gpus_per_replica,
        gpus_per_node=gpu.gpus_per_node,
    )
    return cheapest(fleet, _allowed(question, gpu))


def _allowed(question: RecommendQuestion, gpu: Gpu) -> list[Offer]:
    """Return the GPU's offers from the providers and regions in question."""
    return [
        offer
        for offer in question.offers
        if offer.gpu == gpu.id
        and (not question.providers or offer.provider in question.providers)
        and (not question.regions or offer.region in question.regions)
    ]


def _over_budget(question: RecommendQuestion, chosen: Deployment, cost: Cost | None) -> str | None:
    """Return the limit that a deployment breaks, in a buyer's words."""
    if question.max_gpus is not None and chosen.gpus > question.max_gpus:
        return f"needs {chosen.gpus} GPUs and max_gpus is {question.max_gpus}"
    if cost is None and (question.providers or question.regions or question.max_usd_per_hour is not None):
        return "no published offer within the providers, regions and budget asked for"
    if question.max_usd_per_hour is not None and cost is not None and cost.usd_per_hour > question.max_usd_per_hour:
        return f"costs {cost.usd_per_hour:.2f} USD per hour and max_usd_per_hour is {question.max_usd_per_hour}"
    return None


def _order(question: RecommendQuestion, it: _Candidate) -> tuple[float, float, float, str, str, str]:
    price = float("inf") if it.cost is None else it.cost.usd_per_hour
    gpus = float(it.deployment.gpus)
    per_replica = float(it.deployment.layout.gpus_per_replica)
    if question.objective == "cost":
        keys = (price, gpus, per_replica)
    elif question.objective == "gpus":
        keys = (gpus, price, per_replica)
    else:
        seen = _seen(question, it)
        keys = (per_replica if seen is None else seen.end_to_end_s.percentile(95.0), price, gpus)
    return (*keys, it.gpu.id, it.weight_format, it.kv_cache_dtype)


def _seen(question: RecommendQuestion, it: _Candidate) -> ScheduleResult | None:
    """Return what users see at the asked load; None where nobody times it."""
    deployment = it.deployment
    replica = deployment.replica or timed(deployment.plan, question.timers, question.load)
    return None if replica is None else schedule_at(replica, question.load, deployment.replicas)


def _option(question: RecommendQuestion, it: _Candidate, rank: int, kept: list[_Candidate]) -> Option:
    deployment = it.deployment
    seen = _seen(question, it)
    rate = question.load.request_rate_per_s
    if rate is None and seen is not None:
        rate = deployment.replicas * seen.requests_per_s
    usd = None if it.cost is None else it.cost.usd_per_hour
    return Option(
        rank=rank,
        gpu=it.gpu.id,
        gpus=deployment.gpus,
        replicas=deployment.replicas,
        gpus_per_replica=deployment.layout.gpus_per_replica,
        tensor_parallel_size=deployment.layout.tensor_parallel_size,
        pipeline_parallel_size=deployment.layout.pipeline_parallel_size,
        weight_format=it.weight_format,
        kv_cache_dtype=it.kv_cache_dtype,
        usd_per_hour=usd,
        usd_per_million_output_tokens=(
            None if usd is None or rate is None else usd_per_million_tokens(usd, rate * question.load.output_tokens)
        ),
        ttft_p95_s=None if seen is None else seen.ttft_s.percentile(95.0),
        tpot_p95_s=None if seen is None else seen.tpot_s.percentile(95.0),
        requests_per_s=rate,
        utilization_fraction=_utilization(question, deployment),
        provider=None if it.cost is None else it.cost.provider,
        instance_type=None if it.cost is None else it.cost.instance_type,
        on_pareto_front=_on_pareto_front(it, kept),
    )


def _utilization(question: RecommendQuestion, deployment: Deployment) -> float:
    """Return the asked load over what the replicas carry within limits."""
    load, capacity = question.load, deployment.capacity
    if load.request_rate_per_s is not None and capacity.max_request_rate_per_s:
        return load.request_rate_per_s / (deployment.replicas * capacity.max_request_rate_per_s)
    return concurrency_of(load) / (deployment.replicas * capacity.max_concurrent_requests)


def _on_pareto_front(it: _Candidate, kept: list[_Candidate]) -> bool:
    """Return whether nothing else is at least as good in price, GPUs and bits of weight, and better in one."""
    mine = _merits(it)
    return not any(
        all(theirs <= ours for theirs, ours in zip(_merits(other), mine, strict=True)) and _merits(other) != mine
        for other in kept
    )


def _merits(it: _Candidate) -> tuple[float, float, float]:
    price = float("inf") if it.cost is None else it.cost.usd_per_hour
    bits = {"bf16": 16, "fp16": 16, "fp8": 8, "int8": 8}.get(it.weight_format, 4)
    return price, float(it.deployment.gpus), -float(bits)
