"""Logged start-ups against the ledger: what the engine said it had for the cache, and what we say."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from service.calibration.images import FLASHINFER_BYTES, as_installed
from service.calibration.logs.rows import Row, Skipped, UnstatedError
from service.calibration.logs.startups import StartupLog, read_startup
from service.calibration.names import gpu_of_words, model_of_checkpoint
from service.catalog.engine_rules import rules_for, version_numbers
from service.catalog.errors import NotInCatalogError
from service.catalog.snapshot import Snapshot
from service.engine import (
    GIB,
    Checkpoint,
    EngineError,
    EngineName,
    EngineRules,
    Gpu,
    Layout,
    LedgerTerms,
    MemoryPlan,
    ModelFacts,
    StatedSettings,
    ledger_terms,
    plan_replica,
    standard_quantization,
    text_only,
)

FIRST_RECENT: Final = (0, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One start-up: what was logged, what is predicted. [bytes] for memory, tokens for tokens."""

    case: str
    engine: EngineName
    engine_version: str
    quantity: str  # kv_cache_bytes, weight_bytes, activation_bytes, ...
    measured: float
    predicted: float

    @property
    def error_fraction(self) -> float:
        """Return predicted / measured - 1; negative where less was promised than there was."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    """One logged start-up, and the memory plan of the same deployment."""

    log: StartupLog
    plan: MemoryPlan
    terms: LedgerTerms
    knows_checkpoint: bool  # False where the logged weights stand in for ours

    @property
    def rules(self) -> EngineRules:
        """Return the row that speaks for the version and this model."""
        return self.terms.rules

    @property
    def gpu(self) -> Gpu:
        """Return the GPU, with the memory that was logged."""
        return self.plan.gpu

    @property
    def layout(self) -> Layout:
        """Return how the replica was spread."""
        return self.plan.layout

    @property
    def is_recent(self) -> bool:
        """Return whether the rules that apply speak for vLLM 0.10 or newer, whatever the source stated."""
        return self.log.version is not None and version_numbers(self.log.version) >= FIRST_RECENT


def compare_startup(row: Row, catalog: Snapshot) -> list[Comparison] | Skipped:
    """Return the comparisons of one logged start-up, or why there is none."""
    startup = resolve_startup(row, catalog)
    if isinstance(startup, Skipped):
        return startup
    return list(_comparisons(startup)) or Skipped(case=startup.log.case, reason="states no memory")


def resolve_startup(row: Row, catalog: Snapshot) -> Startup | Skipped:
    """Return a logged start-up with its gaps filled by the version's defaults, or why it cannot be compared.

    A start-up counts when it states its model, GPU and utilization (or that it kept the default one).
    """
    try:
        return _planned(read_startup(row), catalog)
    except (NotInCatalogError, EngineError, UnstatedError) as error:
        return Skipped(case=str(row["id"]), reason=str(error))


def _planned(log: StartupLog, catalog: Snapshot) -> Startup:
    named, is_own = model_of_checkpoint(log.model, catalog)
    gpu, layout = gpu_of_words(log.gpu, log.gpu_gib, catalog), _layout(log)
    rules = as_installed(rules_for(log.engine, log.version), log.version, log.stated_version)
    knows_checkpoint = is_own and "bitsandbytes" not in log.format_words
    weights = log.printed.loaded_weights
    if not knows_checkpoint and weights is None:
        raise UnstatedError("neither this checkpoint nor its loaded weights are known")
    model = _as_served(log, named)
    if weights is not None and not knows_checkpoint:
        model = replace(model, weight_bytes=int(weights * GIB) * layout.gpus_per_replica)
    plan = plan_replica(model, gpu, layout, _stated(log), rules)
    if not log.format_words and weights is None and plan.memory.weight_bytes > gpu.memory_bytes:
        raise UnstatedError("the weights as published do not fit, so it ran another format, which is not stated")
    terms = ledger_terms(plan)
    sampled = _as_sampled(log, terms)
    if sampled is not rules:
        plan = plan_replica(model, gpu, layout, _stated(log), sampled)
        terms = ledger_terms(plan)
    startup = Startup(log=log, plan=plan, terms=terms, knows_checkpoint=knows_checkpoint)
    _check_sequences(startup)
    return startup


def _as_sampled(log: StartupLog, terms: LedgerTerms) -> EngineRules:
    """Return the rules by which a start-up sampled: a peak below that of a sort says that FlashInfer did.

    Source:
        vLLM 0.8 to 0.11.0 `v1/sample/ops/topk_topp_sampler.py`: it samples where it is installed, as in the image.
    """
    rules, logged = terms.rules, (log.printed.activation or 0.0) * GIB
    is_other = FLASHINFER_BYTES * terms.sampled_logits <= logged
    if rules.memory_share == "total" and is_other and logged < rules.sampler_bytes_per_logit * terms.sampled_logits:
        return replace(rules, sampler_bytes_per_logit=FLASHINFER_BYTES)
    return rules


def _layout(log: StartupLog) -> Layout:
    if log.tensor_parallel_size is None:
        raise UnstatedError("tensor parallelism is not stated")
    return Layout(
        tensor_parallel_size=log.tensor_parallel_size,
        pipeline_parallel_size=log.pipeline_parallel_size,
        expert_parallel=log.expert_parallel,
    )


def _as_served(log: StartupLog, model: ModelFacts) -> ModelFacts:
    """Return the model in the format that ran, without its tower where only the language model is served."""
    served = replace(model, checkpoints=(_checkpoint(log, model),))
    encoder = model.architecture.encoder
    if log.tower == "absent":
        return text_only(served)
    if encoder is not None and log.tower == "unprofiled":
        unprofiled = replace(encoder, max_tokens_per_item=0, unbounded_tokens=0)
        return replace(served, architecture=replace(model.architecture, encoder=unprofiled))
    return served


def _checkpoint(log: StartupLog, model: ModelFacts) -> Checkpoint:
    """Return the checkpoint that ran: the published one is what it is, however the source describes it."""
    wanted, is_online = log.weight_format, "online" in log.format_words
    own = next(checkpoint for checkpoint in model.checkpoints if checkpoint.is_default)
    names_own = own.hf_id is not None and own.hf_id.lower() == log.model.lower()
    if wanted is None or wanted == own.weight_format or (names_own and not is_online):
        return own
    published = [checkpoint for checkpoint in model.checkpoints if checkpoint.weight_format == wanted]
    if published and not is_online:
        return replace(published[0], is_default=True)
    return replace(own, weight_format=wanted, quantization=standard_quantization(wanted), is_default=True)


def _stated(log: StartupLog) -> StatedSettings:
    if log.utilization is None and not log.keeps_default_utilization:
        raise UnstatedError("utilization is not stated")
    method, drafted = log.drafts or (None, 0)
    return StatedSettings(
        kv_cache_dtype=log.kv_cache_dtype,
        gpu_memory_utilization=log.utilization,
        kv_cache_memory_bytes=log.pinned_pool_bytes,
        max_model_len=log.max_model_len,
        max_num_batched_tokens=log.max_num_batched_tokens,
        max_num_seqs=log.max_num_seqs,
        num_speculative_tokens=drafted,
        speculative_method=method,
        enforce_eager=log.enforce_eager,
        # Pools printed in tokens hold states of prefixes, whatever the version's own default: to the token on 0.27.2.
        enable_prefix_caching=True if log.printed.cache is None else None,
    )


def _check_sequences(startup: Startup) -> None:
    """Raise where the printed peak is too small for the logits of the default sequences: fewer were asked for."""
    logged = startup.log.printed.activation
    if not logged or startup.log.max_num_seqs or startup.rules.memory_share != "total":
        return
    if logged * GIB < FLASHINFER_BYTES * startup.terms.sampled_logits:
        raise UnstatedError("fewer sequences than the default were asked for, and how many is not stated")


def _comparisons(startup: Startup) -> Iterator[Comparison]:
    """Yield every figure that was printed beside ours."""
    printed, memory, rules = startup.log.printed, startup.plan.memory, startup.rules
    activation, non_torch = _printed_terms(startup)
    cache = printed.cache if startup.log.pinned_pool_bytes is None else None
    figures = {
        "kv_cache_bytes": (cache, memory.kv_cache_bytes),
        "weight_bytes": (printed.weights if startup.knows_checkpoint else None, memory.weight_bytes),
        "activation_bytes": (printed.activation, activation),
        "non_torch_bytes": (printed.non_torch, non_torch),
    }
    if rules.graph_accounting == "outside" and (printed.graphs or 0) > 0:
        figures["cuda_graph_bytes"] = (printed.graphs, memory.cuda_graph_bytes)
    for quantity, (measured, predicted) in figures.items():
        if measured:
            yield _comparison(startup, quantity, measured * GIB, predicted)
    if not cache and printed.cache_tokens and startup.log.max_model_len:
        yield _comparison(startup, "kv_cache_tokens", printed.cache_tokens, startup.plan.kv_cache.tokens)


def _comparison(startup: Startup, quantity: str, measured: float, predicted: float) -> Comparison:
    return Comparison(
        case=startup.log.case,
        engine=startup.log.engine,
        engine_version=startup.log.stated_version,
        quantity=quantity,
        measured=measured,
        predicted=predicted,
    )


def _printed_terms(startup: Startup) -> tuple[int, int]:
    """Return activation and non-torch memory as the version prints them.

    Newer versions print lasting buffers with the consumed memory, and their graph estimate with the peak.
    """
    memory, rules = startup.plan.memory, startup.rules
    if not rules.peak_includes_graphs:
        return memory.activation_bytes, memory.non_torch_bytes
    graphs = memory.cuda_graph_bytes if rules.graph_accounting == "inside" else 0
    lasting = startup.terms.lasting_bytes
    return memory.activation_bytes - lasting + graphs, memory.non_torch_bytes + lasting
