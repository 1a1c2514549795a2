"""`recommend`: this model, this load; which GPU, layout and precision?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from service.engine.arithmetic import GIB
from service.engine.assumptions import recommend_assumptions
from service.engine.costs import Fleet, cheapest, usd_per_million_tokens
from service.engine.deployments import Deployment, best, deployments, resolve_size
from service.engine.errors import EngineError
from service.engine.inputs import Gpu, KvCacheDtype, WeightFormat
from service.engine.questions import Objective, Offer, RecommendQuestion, SettingsWish, SizeQuestion
from service.engine.replicas import concurrency_of
from service.engine.results import Cost, Option, Recommendation, Rejection
from service.engine.sizing import NO_TIME_WARNING


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
    `gpus`; GPUs per replica (the fewer requests share a replica, the faster) for `latency`.
    """
    kept: list[_Candidate] = []
    rejected: list[Rejection] = []
    for gpu, wish in _combinations(question):
        outcome = _try(question, gpu, wish)
        if isinstance(outcome, Rejection):
            rejected.append(outcome)
        else:
            kept.append(outcome)
    ordered = sorted(kept, key=lambda it: _order(question.objective, it))
    options = tuple(_option(question, it, rank, kept) for rank, it in enumerate(ordered[: question.limit], start=1))
    return Recommendation(
        feasible=bool(options),
        model=question.model.id,
        engine=question.rules.engine,
        options=options,
        rejected=tuple(rejected),
        assumptions=recommend_assumptions(question),
        warnings=(NO_TIME_WARNING,),
        rules_version=question.rules.rules_version,
    )


def _combinations(question: RecommendQuestion) -> Iterator[tuple[Gpu, SettingsWish]]:
    """Yield every GPU with every weight format and cache dtype in question."""
    formats = question.weight_formats or ((question.settings.weight_format,) if question.settings.weight_format else ())
    own = tuple(dict.fromkeys(it.weight_format for it in question.model.checkpoints))
    dtypes: tuple[KvCacheDtype | None, ...] = question.kv_cache_dtypes or (question.settings.kv_cache_dtype,)
    for gpu in question.gpus:
        for weight_format in formats or own:
            for dtype in dtypes:
                yield gpu, replace(question.settings, weight_format=weight_format, kv_cache_dtype=dtype)


def _try(question: RecommendQuestion, gpu: Gpu, wish: SettingsWish) -> _Candidate | Rejection:
    """Return the cheapest deployment of one combination, or why there is none."""
    size_question = SizeQuestion(
        model=question.model,
        gpu=gpu,
        load=question.load,
        limits=question.limits,
        layout=question.layout,
        headroom=question.headroom,
        settings=wish,
        rules=question.rules,
    )
    try:
        chosen = best(deployments(size_question))
        resolved = resolve_size(size_question)
    except EngineError as error:
        return _rejection(gpu, wish, error.detail)
    if lacks_format(gpu, resolved.checkpoint.weight_format):
        return _rejection(gpu, wish, f"{gpu.name} has no kernels for {resolved.checkpoint.weight_format} weights")
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


def _order(objective: Objective, it: _Candidate) -> tuple[float, float, float, str, str, str]:
    price = float("inf") if it.cost is None else it.cost.usd_per_hour
    gpus = float(it.deployment.gpus)
    per_replica = float(it.deployment.capacity.max_concurrent_requests)
    keys = {
        "cost": (price, gpus, per_replica),
        "gpus": (gpus, price, per_replica),
        "latency": (per_replica, price, gpus),
    }
    return (*keys[objective], it.gpu.id, it.weight_format, it.kv_cache_dtype)


def _option(question: RecommendQuestion, it: _Candidate, rank: int, kept: list[_Candidate]) -> Option:
    deployment = it.deployment
    carried = deployment.replicas * deployment.capacity.max_concurrent_requests
    rate = question.load.request_rate_per_s
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
        ttft_p95_s=None,
        tpot_p95_s=None,
        requests_per_s=rate,
        utilization_fraction=concurrency_of(question.load) / carried,
        provider=None if it.cost is None else it.cost.provider,
        instance_type=None if it.cost is None else it.cost.instance_type,
        on_pareto_front=_on_pareto_front(it, kept),
    )


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
