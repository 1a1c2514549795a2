"""Everything an answer rests on, with origin and source: so that it can be trusted or disputed."""

from collections.abc import Iterator
from dataclasses import replace

from service.engine.answers.exchange import exchange_notes
from service.engine.answers.layout_notes import layouts_of_options
from service.engine.answers.noted import amount, length, load_notes, note, spread, stated_or_default
from service.engine.answers.priced import priced
from service.engine.answers.rests import memory_measured_here, steps_measured_here, terms_source
from service.engine.engines.measured_here import MEASURED_HERE
from service.engine.engines.registry import engine_named
from service.engine.engines.rules import EngineRules
from service.engine.facts import ModelFacts, text_alone_source
from service.engine.fleet.arguments import made_from
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.fleet.combinations import formats_left_out
from service.engine.fleet.contexts import unasked_context
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.questions import CapacityQuestion, RecommendQuestion, SizeQuestion, StatedSettings
from service.engine.fleet.results import Assumption, Origin, Scalar
from service.engine.fleet.settings import Resolved, resolved_drafts
from service.engine.fleet.shortlist import FORMATS_SOURCE, SHORTLIST_SOURCE
from service.engine.inputs import EngineSettings, Headroom, Limits
from service.engine.memory.plan import MemoryPlan, keeps_separate_pools
from service.engine.memory.separate_pools import MAMBA_FULL_MEMORY_RATIO, states_per_request, windows_ratio
from service.engine.time.confidence import MEDIAN
from service.engine.time.replica import Replica

MEDIAN_SOURCE = (
    "times are medians, as likely too long as too short; state confidence=0.9 for a count that holds nine times in ten"
)
GIVEN_POOL_SOURCE = "the pool is given, so gpu_memory_utilization does not size it"
POOLS_SOURCE = "SGLang server_args.py: how pools of separate kinds of layers share the memory"
STATES_SOURCE = "SGLang kv_cache_configurator.py: 1, 2 more for prefixes, 2 more with extra_buffer (since 0.5.14)"
PLAN_SOURCE = "no such rules are known for the stated version: the cache's blocks, layouts and weights follow this one"
FLOOR_SOURCE = "no limits are stated: somebody is taken to read along; service_class=batch drops these limits"
SHORTENED_SOURCE = "shortened to what the pool holds"
ASKED_LENGTHS_SOURCE = (
    "the longest request of the asked lengths and a quarter more, in steps of 256 tokens: a context that the pool is "
    "sure to hold, and that no single user fills; state max_model_len to serve longer ones"
)
WHOLE_CONTEXT_SOURCE = "requests of the longest context served; an eighth of it, at most 512 tokens, is output"


def size_assumptions(question: SizeQuestion, deployment: Deployment) -> tuple[Assumption, ...]:
    """Return what a sizing rests on, but for its layout."""
    return (
        *_shared(deployment.resolved, deployment.plan),
        *load_notes(question.load),
        *_limits(question.limits),
        *_time(deployment.replica),
        *_headroom(question.headroom),
        *_confidence(question.confidence, deployment),
    )


def _confidence(stated: float | None, deployment: Deployment) -> tuple[Assumption, ...]:
    """Return with which probability times hold."""
    if stated is not None:
        return (note("confidence", stated, "request", None),)
    return () if deployment.replica is None else (note("confidence", MEDIAN, "default", MEDIAN_SOURCE),)


def capacity_assumptions(question: CapacityQuestion, deployment: Deployment) -> tuple[Assumption, ...]:
    """Return what a capacity rests on, but for its GPUs and layout."""
    stated = (
        (note("context_tokens", deployment.plan.context_tokens, "default", WHOLE_CONTEXT_SOURCE),)
        if question.input_tokens is None and question.output_tokens is None
        else (
            length("input_tokens", question.input_tokens),
            length("output_tokens", question.output_tokens),
        )
    )
    is_benchmark = question.load.num_prompts is not None
    lengths = engine_named(question.rules.engine).benchmark_lengths if is_benchmark else "uniform"
    return (
        *_shared(deployment.resolved, deployment.plan),
        *stated,
        *amount(question.load),
        *spread(question.load, lengths),
        *_limits(question.limits),
        *_time(deployment.replica),
        *(() if question.confidence is None else _confidence(question.confidence, deployment)),
        *priced(question),
    )


def recommend_assumptions(question: RecommendQuestion, limits: Limits) -> tuple[Assumption, ...]:
    """Return what every option of a recommendation rests on.

    Args:
        question: what was asked.
        limits: those that hold, assumed where none were asked for.
    """
    return (
        note("model_config", question.model.id, "catalog", question.model.source),
        *layouts_of_options(question),
        *_rules_notes(question.rules),
        *_stated_settings(question.model, question.settings, question.rules),
        *resolved_drafts(question.model, question.settings)[1],
        *_adapters(question.settings),
        *load_notes(question.load),
        *(_floor(limits) if limits.are_stated and not question.limits.are_stated else _limits(question.limits)),
        *_headroom(question.headroom),
        *(() if question.confidence is None else (note("confidence", question.confidence, "request", None),)),
        stated_or_default("service_class", question.service_class, "interactive", FLOOR_SOURCE),
        stated_or_default("objective", question.objective, "cost", "cheapest first unless asked otherwise"),
        *((note("gpus", len(question.gpus), "chosen", SHORTLIST_SOURCE),) if question.is_shortlist else ()),
        *priced(question),
        *_formats_left_out(question),
    )


def _formats_left_out(question: RecommendQuestion) -> tuple[Assumption, ...]:
    """Return which formats of the model a list that names no GPUs leaves out on some of them, and how to have them."""
    formats = formats_left_out(question)
    if not formats:
        return ()
    every = ",".join(dict.fromkeys(each.weight_format for each in question.model.checkpoints))
    return (note("weight_formats_left_out", ", ".join(formats), "chosen", FORMATS_SOURCE.format(formats=every)),)


def _shared(resolved: Resolved, plan: MemoryPlan) -> tuple[Assumption, ...]:
    memory, model, gpu, rules = plan.memory, resolved.model, resolved.gpu, resolved.rules
    source = terms_source(plan) if rules.measured else rules.measured_source
    measured = {
        "activation_bytes": memory.activation_bytes,
        "cuda_graph_bytes": memory.cuda_graph_bytes,
        "non_torch_bytes": memory.non_torch_bytes,
    }
    return (
        note("model_config", model.id, "catalog", model.source),
        _checkpoint(resolved, plan),
        note("gpu_memory_bytes", gpu.memory_bytes, "catalog", gpu.source),
        *_rules_notes(rules),
        *_settings_notes(resolved.assumptions, plan.settings),
        _served_context(resolved, plan),
        *_pool(plan),
        *_adapters(plan.settings),
        *exchange_notes(plan),
        *(note(name, value, "measured", source) for name, value in measured.items()),
        *(memory_measured_here(plan) if rules.measured else ()),
    )


def _checkpoint(resolved: Resolved, plan: MemoryPlan) -> Assumption:
    """Return what is loaded: a published checkpoint, or the model's own that the engine converts meanwhile."""
    loaded = resolved.checkpoint
    if loaded in resolved.model.checkpoints or (own := made_from(plan, resolved.stated)) is None:
        return note("checkpoint", loaded.hf_id, "catalog", loaded.source)
    made = f"the engine makes {loaded.weight_format} of it while it loads"
    return note("checkpoint", own, "catalog", f"{made}; {own_checkpoint(resolved.model).source or 'as stated'}")


def _settings_notes(assumptions: tuple[Assumption, ...], settings: EngineSettings) -> Iterator[Assumption]:
    """Yield what settings rest on; a share that follows from the layout is that of the layout."""
    for assumption in assumptions:
        is_share = assumption.name == "gpu_memory_utilization" and assumption.origin == "default"
        yield replace(assumption, value=settings.gpu_memory_utilization) if is_share else assumption


def _rules_notes(rules: EngineRules) -> Iterator[Assumption]:
    """Yield which version's rules size the memory, and whose rules plan the caches where that version has none."""
    yield _rules_note(rules)
    if rules.planned_as is not None:
        yield note("plan_rules", rules.planned_as, "default", PLAN_SOURCE)


def _served_context(resolved: Resolved, plan: MemoryPlan) -> Assumption:
    """Return the longest context served: as stated, by the lengths asked for, or the model's own."""
    served = plan.settings.max_model_len
    if resolved.stated.max_model_len is not None:
        return note("max_model_len", served, "request", None)
    if served < resolved.settings.max_model_len:
        return note("max_model_len", served, "chosen", SHORTENED_SOURCE)
    if served < unasked_context(plan.model.architecture, plan.rules):
        return note("max_model_len", served, "chosen", ASKED_LENGTHS_SOURCE)
    return note("max_model_len", served, "default", "the model's longest context")


def _rules_note(rules: EngineRules) -> Assumption:
    """Return which version's rules apply: the stated one's, else the newest."""
    if rules.is_version_stated:
        return note("rules_version", rules.rules_version, "request", rules.source)
    newest = f"{rules.source}; engine_version is not stated, so the newest rules apply"
    return note("rules_version", rules.rules_version, "default", newest)


def _pool(plan: MemoryPlan) -> tuple[Assumption, ...]:
    """Return the blocks of the cache, and its size where it was given."""
    size, given = plan.kv_cache.block_size, plan.settings.kv_cache_memory_bytes
    is_own = size != plan.settings.block_size
    return (
        note("block_size", size, "default", "the engine's own choice for this model")
        if is_own
        else note("block_size", size, "request", None),
        *((note("kv_cache_memory_bytes", given, "request", GIVEN_POOL_SOURCE),) if given is not None else ()),
        *_ratios(plan),
    )


def _ratios(plan: MemoryPlan) -> Iterator[Assumption]:
    """Yield how separate pools share the memory, where the engine keeps any."""
    if not keeps_separate_pools(plan.model.architecture, plan.rules):
        return
    if plan.kv_cache.state_bytes_per_request:
        if plan.settings.enable_prefix_caching:
            yield note("mamba_full_memory_ratio", float(MAMBA_FULL_MEMORY_RATIO), "default", POOLS_SOURCE)
        yield note("states_per_request", states_per_request(plan.settings), "default", STATES_SOURCE)
    ratio = windows_ratio(plan.model.architecture, plan.settings)
    if ratio is not None and any(group.window_tokens for group in plan.kv_cache.groups):
        origin: Origin = "default" if plan.settings.swa_full_tokens_ratio is None else "request"
        yield note("swa_full_tokens_ratio", float(ratio), origin, POOLS_SOURCE)


def _stated_settings(model: ModelFacts, stated: StatedSettings, rules: EngineRules) -> Iterator[Assumption]:
    """Yield the engine settings of every option: as stated, or left to the engine, which decides by GPU."""
    values: dict[str, Scalar] = {
        "weight_format": stated.weight_format,
        "kv_cache_dtype": stated.kv_cache_dtype,
        "gpu_memory_utilization": stated.gpu_memory_utilization,
        "kv_cache_memory_bytes": stated.kv_cache_memory_bytes,
        "max_model_len": stated.max_model_len,
        "max_num_batched_tokens": stated.max_num_batched_tokens,
        "max_num_seqs": stated.max_num_seqs,
        "block_size": stated.block_size,
        "enable_prefix_caching": stated.enable_prefix_caching,
    }
    switches: dict[str, Scalar] = {
        "quantization": stated.quantization,
        "enforce_eager": stated.enforce_eager or None,
        "language_model_only": stated.language_model_only or None,
        "swa_full_tokens_ratio": stated.swa_full_tokens_ratio,
        "mamba_cache_dtype": None if stated.mamba_cache_dtype == "auto" else stated.mamba_cache_dtype,
        "mamba_ssm_cache_dtype": None if stated.mamba_ssm_cache_dtype == "auto" else stated.mamba_ssm_cache_dtype,
    }
    for name, value in switches.items():
        if value is not None:
            yield note(name, value, "request", text_alone_source(model) if name == "language_model_only" else None)
    for name, value in values.items():
        if value is not None:
            yield note(name, value, "request", None)
    unstated = ", ".join(name for name, value in values.items() if value is None)
    if unstated:
        yield note("engine_settings", unstated, "default", f"by checkpoint and GPU, as /size lists; {rules.source}")


def _headroom(headroom: Headroom) -> tuple[Assumption, ...]:
    return (
        stated_or_default("headroom_fraction", headroom.headroom_fraction, 0.0, "nothing is kept free unless asked"),
        stated_or_default("spare_replicas", headroom.spare_replicas, 0, "no spare unless asked"),
    )


def _adapters(settings: EngineSettings | StatedSettings) -> tuple[Assumption, ...]:
    if not settings.max_loras:
        return ()
    return (
        note("max_loras", settings.max_loras, "request", None),
        stated_or_default("max_lora_rank", settings.max_lora_rank, 16, "the engine's default"),
    )


def _limits(limits: Limits) -> tuple[Assumption, ...]:
    if not limits.are_stated:
        return ()
    stated = (("ttft_s", limits.ttft_s), ("tpot_s", limits.tpot_s))
    return (
        *(note(name, value, "request", None) for name, value in stated if value is not None),
        stated_or_default("percentile", limits.percentile, 95.0, "limits hold for 95 of 100 requests unless asked"),
    )


def _floor(limits: Limits) -> tuple[Assumption, ...]:
    """Return the limits that are assumed of an interactive service."""
    return (
        note("ttft_s", limits.ttft_s, "default", FLOOR_SOURCE),
        note("tpot_s", limits.tpot_s, "default", FLOOR_SOURCE),
        stated_or_default("percentile", limits.percentile, 95.0, "limits hold for 95 of 100 requests unless asked"),
    )


def _time(replica: Replica | None) -> tuple[Assumption, ...]:
    """Return where step times come from."""
    if replica is None:
        return ()
    timing, serving = replica.timing, replica.serving
    basis = timing.basis
    overhead_s = timing.request_overhead.of_prompt(round(serving.traffic.inputs.mean()))
    ahead, is_own = serving.settings.steps_planned_ahead, replica.plan.rules.async_scheduling is None
    why = ", by engine version" if is_own else ""
    return (
        *(steps_measured_here(basis) if basis.name == MEASURED_HERE else ()),
        note("step_times", basis.name, "measured" if basis.is_measured else "default", basis.source),
        note("request_overhead_s", overhead_s, "measured", basis.overhead_source),
        note("steps_planned_ahead", ahead, "default" if is_own else "request", "asynchronous scheduling" + why),
    )
