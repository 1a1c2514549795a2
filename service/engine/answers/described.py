"""What every answer about one deployment says: its shape, memory, latency, price, flags and warnings."""

from typing import Final, TypedDict

from service.engine.answers.advice import doubtful_limits
from service.engine.answers.builds import build_warnings
from service.engine.answers.exchange import exchange_warnings
from service.engine.answers.idle import idle_warnings
from service.engine.answers.results import PerReplica, Saturation
from service.engine.engines.device import Device
from service.engine.engines.rules import EngineRules
from service.engine.facts import Checkpoint
from service.engine.fleet.aims import aim_of
from service.engine.fleet.arguments import names_drafter, unnamed_settings, where_it_lies
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.fleet.command import launch
from service.engine.fleet.costs import fleet_of, price_notes
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.figures import Figures
from service.engine.fleet.questions import CapacityQuestion, SizeQuestion, StatedSettings
from service.engine.fleet.results import Cost
from service.engine.fleet.token_prices import with_token_prices
from service.engine.inputs import EngineName, KvCacheDtype, Layout, Load, StatedLayout, WeightFormat, is_scaled
from service.engine.memory.activation import fewest_batched_tokens
from service.engine.memory.parameters import num_parameters
from service.engine.memory.plan import MemoryPlan, model_weights, pool_error_bytes
from service.engine.memory.results import KvCache, MemoryPerGpu, ModelWeights
from service.engine.memory.weights import rank_weights
from service.engine.time.replica import Replica
from service.engine.time.results import Latency, LoadState

UNNAMED = {"weight_format": ": the catalog has no such checkpoint, so convert the model's own first"}
FAR_APART: Final = 1.5  # times; weights of one model in one format differ by their towers and heads, and no more
NO_TIME_WARNING = "sized from memory alone: nobody can tell the time of a step on this GPU"


class Described(TypedDict):
    """The fields that `Sizing` and `Capacity` share, by name."""

    feasible: bool
    gpus: int
    replicas: int
    gpus_per_replica: int
    model: str
    gpu: str
    engine: EngineName
    weight_format: WeightFormat
    kv_cache_dtype: KvCacheDtype
    layout: Layout
    shortfall_bytes: int
    weights: ModelWeights
    memory_per_gpu: MemoryPerGpu
    safe_margin_bytes: int
    kv_cache: KvCache
    per_replica: PerReplica
    latency: Latency | None
    at_load: LoadState | None
    saturation: Saturation
    cost: Cost | None
    command: str | None
    engine_args: tuple[str, ...]
    warnings: tuple[str, ...]
    rules_version: str


def described(question: SizeQuestion | CapacityQuestion, deployment: Deployment, told: Figures) -> Described:
    """Return what is said of a deployment, whatever was asked.

    Args:
        question: what was asked.
        deployment: the answer, with its times where anybody tells them.
        told: its figures under load.
    """
    plan, replica, replicas = deployment.plan, deployment.replica, deployment.replicas
    feasible = replicas * told.of_one.max_concurrent_requests > 0
    is_timed = question.timers is not None
    started = launch(deployment, question.flags)
    cost = _cost(question, deployment, told) if feasible else None
    return Described(
        feasible=feasible,
        gpus=deployment.gpus,
        replicas=replicas,
        gpus_per_replica=plan.layout.gpus_per_replica,
        model=question.model.id,
        gpu=question.gpu.id,
        engine=question.rules.engine,
        weight_format=deployment.resolved.checkpoint.weight_format,
        kv_cache_dtype=deployment.resolved.kv_cache_dtype,
        layout=plan.layout,
        shortfall_bytes=0 if feasible else plan.shortfall_bytes,
        memory_per_gpu=plan.memory,
        safe_margin_bytes=pool_error_bytes(plan),
        kv_cache=plan.kv_cache,
        per_replica=_per_replica(told),
        latency=told.latency,
        at_load=told.at_load,
        saturation=_saturation(told, replicas),
        warnings=(
            *doubtful_limits(question.limits),
            *warnings_of(plan, replica, question.settings, question.layout, deployment.gpus, is_timed=is_timed),
            *(started.notes if feasible else ()),
            *(_price_notes(question, deployment, cost) if feasible else ()),
        ),
        command=started.command if feasible else None,
        engine_args=started.engine_args,
        cost=cost,
        weights=model_weights(plan),
        rules_version=question.rules.rules_version,
    )


def _cost(question: SizeQuestion | CapacityQuestion, deployment: Deployment, told: Figures) -> Cost | None:
    """Return what the deployment costs, an hour and a million tokens; None where nobody rents it out."""
    cost = aim_of("cost", question.gpu, question.offers).cost(deployment.layout, deployment.replicas)
    if cost is None:
        return None
    at_most = told.rates.of_all if told.rates else None
    return with_token_prices(cost, deployment.load, _answered_per_s(deployment.load, told.at_load, at_most), at_most)


def _answered_per_s(load: Load, at_load: LoadState | None, at_most: float | None) -> float | None:
    """Return the requests of the asked load that are answered; None where nobody asked for any. [1/s].

    Of a benchmark those of its whole run, ramp and drain included: as many as it prints, and are paid for.
    """
    rate, answered = load.request_rate_per_s, at_load.requests_per_s if at_load else None
    if rate is None or load.num_prompts is not None:
        return answered
    return answered if at_most is not None and rate > at_most else rate


def _price_notes(
    question: SizeQuestion | CapacityQuestion, deployment: Deployment, cost: Cost | None
) -> tuple[str, ...]:
    """Return what a reader of the price must know; nothing where this is one of two pools, which are priced as one."""
    if deployment.load.phase != "both":
        return ()
    return price_notes(cost, (fleet_of(deployment.plan, deployment.replicas),), question)


def _per_replica(told: Figures) -> PerReplica:
    """Return what one replica carries."""
    return PerReplica(
        max_concurrent_requests=told.of_one.max_concurrent_requests,
        requests_per_s=told.rates.of_one if told.rates else None,
        output_tokens_per_s=told.output_tokens_per_s,
    )


def _saturation(told: Figures, replicas: int) -> Saturation:
    """Return the load at which limits break, and the rate at which the queue grows without end."""
    return Saturation(
        concurrent_requests=replicas * told.of_one.max_concurrent_requests,
        request_rate_per_s=told.rates.of_all if told.rates else None,
        queue_diverges_at_requests_per_s=told.queue_diverges_at_requests_per_s,
    )


def warnings_of(
    plan: MemoryPlan,
    replica: Replica | None,
    stated: StatedSettings,
    layout: StatedLayout,
    gpus: int,
    *,
    is_timed: bool,
) -> tuple[str, ...]:
    """Return what a reader of a deployment must know, and add.

    Args:
        plan: its memory.
        replica: its times; None where nobody tells them.
        stated: the settings that were asked for.
        layout: the parts of it that were.
        gpus: of all replicas. [count]
        is_timed: somebody was asked for times.
    """
    is_timed = is_timed and plan.holds_one_request  # what does not start takes no time
    return (*_time_warnings(replica, is_timed=is_timed), *_extra_warnings(plan, stated, layout, gpus))


def _time_warnings(replica: Replica | None, *, is_timed: bool) -> tuple[str, ...]:
    """Return what a reader of the latency must know."""
    if replica is None:
        return (NO_TIME_WARNING,) if is_timed else ()
    basis = replica.timing.basis
    if not basis.note:
        return ()
    percent = round(100 * basis.expected_error_fraction)
    return (f"latency is a {basis.name} estimate, expected within {percent} %: {basis.note}",)


def _extra_warnings(plan: MemoryPlan, stated: StatedSettings, layout: StatedLayout, gpus: int) -> tuple[str, ...]:
    """Return what a reader of a deployment must add, with drafts, adapters or settings that no flag names."""
    drafts = "engine_args do not name the drafter; add the engine's own speculative decoding options"
    spread = "decode_context_parallel_size: step times are those without, and the exchange; no kernels were measured"
    adapters = "adapters count in memory; what their kernels add to a step is not known"
    packed = "the kernel for selected latents reads caches spread over ranks in packed form only: kv_cache_dtype=fp8"
    scaled = "the cache has scales beside its elements: times are those of one in fp8, with kernels that read one"
    given = (
        "kv_cache_memory_bytes takes the place of gpu_memory_utilization, which is neither counted nor in engine_args"
    )
    settings, device, hosted = plan.settings, plan.device, plan.model.architecture.hosted_bytes
    hosting = f"each replica keeps {hosted / 1e9:.0f} GB of tables in its host's memory, pinned, beside its GPUs'"
    is_unnamed = bool(settings.num_speculative_tokens) and not names_drafter(plan)
    unnamed = tuple(
        f"engine_args have no flag for {name}{UNNAMED.get(name, '')}" for name in unnamed_settings(plan, stated)
    )
    return (
        _unread_warnings(plan.rules)
        + _recipe_warnings(plan.checkpoint)
        + unnamed
        + idle_warnings(plan, stated, layout)
        + where_it_lies(plan, stated)
        + _stated_weights(plan)
        + (given,) * (stated.gpu_memory_utilization is not None and _is_given(plan, stated))
        + (drafts,) * is_unnamed
        + (adapters,) * bool(settings.max_loras)
        + (spread,) * (plan.layout.decode_context_parallel_size > 1)
        + exchange_warnings(plan, gpus)
        + (scaled,) * is_scaled(settings.kv_cache_dtype)
        + (packed,) * _spreads_unpacked_latents(plan)
        + (hosting,) * bool(hosted)
        + _image_warnings(plan, device)
        + build_warnings(plan)
    )


def _is_given(plan: MemoryPlan, stated: StatedSettings) -> bool:
    """Return whether a stated pool stands in the command, in the place of a share of memory."""
    pool = "kv_cache_memory_bytes"
    return stated.kv_cache_memory_bytes is not None and pool not in unnamed_settings(plan, stated)


def _stated_weights(plan: MemoryPlan) -> tuple[str, ...]:
    """Return that the caller's figure of all weights may be of another format, or of another model or unit."""
    model, own = plan.model, own_checkpoint(plan.model)
    asked, told = plan.checkpoint.weight_format, []
    if model.weight_bytes is not None and asked != own.weight_format:
        other = f"weight_bytes is counted as stated, in {asked} too, where the config is of {own.weight_format}"
        told.append(f"{other}: num_parameters in its place is counted in the format asked")
    if model.weight_bytes is not None:
        loaded = rank_weights(model.architecture, layout=Layout(), quantization=own.quantization).loaded_bytes
        told += _far_apart("weight_bytes", model.weight_bytes, loaded)
    elif model.num_parameters is not None:
        told += _far_apart("num_parameters", model.num_parameters, num_parameters(model.architecture))
    return tuple(told)


def _far_apart(name: str, stated: int, counted: int) -> list[str]:
    """Return that a figure is not near what the config's own matrices come to."""
    if max(stated, counted) <= FAR_APART * min(stated, counted):
        return []
    return [f"{name} is {stated}, and the matrices of the config come to {counted}: it is counted as stated"]


def _unread_warnings(rules: EngineRules) -> tuple[str, ...]:
    """Return what a reader must know where a version is stated that nobody has read."""
    if rules.unread is None:
        return ()
    engine = rules.serving_engine
    return (
        f"{engine.title} {rules.unread} is newer than {engine.newest}, the newest that is known: its rules hold here",
    )


def _recipe_warnings(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Return what to know of a recipe that engines do not read, or that nobody stated of a named repository."""
    if not checkpoint.is_assumed:
        return checkpoint.cautions
    told = f"which modules {checkpoint.hf_id or 'the named repository'} keeps in 16 bits is not known"
    return (f"{told} ({checkpoint.source}): paste its config.json as model_config",)


def _image_warnings(plan: MemoryPlan, device: Device) -> tuple[str, ...]:
    """Return what a reader must know of images: read by request alone, or larger than a stated token budget."""
    architecture = plan.model.architecture
    if device.plan.has_own_classes and architecture.encoder is not None and architecture.reads_text_in_sglang:
        return ("SGLang serves text alone of this model; with --enable-multimodal it has less memory for the cache",)
    least, budget = fewest_batched_tokens(architecture, device), plan.settings.max_num_batched_tokens
    if budget >= least:
        return ()
    told = f"max_num_batched_tokens {budget} is less than the {least} tokens of an image, which {device.engine}"
    return (f"{told} reads whole: it starts for text alone (language_model_only=true), or with at least as many",)


def _spreads_unpacked_latents(plan: MemoryPlan) -> bool:
    """Return whether a 16-bit cache of selected latents is spread over ranks, which the plan allows and no kernel runs.

    Source: vLLM 0.33 `v1/attention/backends/mla/flashmla_sparse.py`.
    """
    is_spread = plan.layout.decode_context_parallel_size > 1 and plan.settings.kv_cache_dtype != "fp8"
    needs = (need for mixer in plan.model.architecture.mixers for need in mixer.kernel_needs)
    return is_spread and plan.device.is_vllm_on_cuda and any(need.kind == "sparse" for need in needs)
