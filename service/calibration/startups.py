"""Logged start-ups against the ledger: what the engine said it had for the cache, and what we say."""

import re
from dataclasses import dataclass, replace
from typing import Any

from service.calibration.stand_ins import SAME_SHAPE
from service.catalog.engine_rules import rules_for, version_numbers
from service.catalog.errors import NotInCatalogError
from service.catalog.snapshot import Snapshot
from service.engine.arithmetic import GIB
from service.engine.engines.device import Device, device_of
from service.engine.engines.rules import EngineRules, batch_defaults, default_utilization
from service.engine.errors import EngineError, RefusedStartError
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.formats.quantization import standard_quantization
from service.engine.inputs import EngineName, EngineSettings, Gpu, KvCacheDtype, Layout, WeightFormat
from service.engine.layers import Architecture
from service.engine.memory.activation import lasting_bytes, sampled_logits
from service.engine.memory.drafts import draft_of
from service.engine.memory.ledger import memory_per_gpu, rules_of_model
from service.engine.memory.plan import keeps_separate_pools
from service.engine.memory.results import MemoryPerGpu
from service.engine.memory.separate_pools import plan_separate_pools
from service.engine.memory.shared_pool import plan_kv_cache
from service.engine.memory.weights import rank_weights

FORMATS: tuple[tuple[str, WeightFormat], ...] = (
    ("nvfp4", "nvfp4"),
    ("mxfp4", "mxfp4"),
    ("fp8", "fp8"),
    ("int8", "int8"),
    ("awq", "int4"),
    ("gptq", "int4"),
    ("int4", "int4"),
)
FIRST_RECENT = (0, 10)
SMALLEST_SAMPLER_BYTES = 14  # of one logit, in any version that profiles sampling
FIRST_GENERATION_VERSION = "0.6"
# The newest release on some days, for sources that give a date instead of a version.
# Source: `uv pip compile --exclude-newer DAY` for vllm, 2026-11-21.
NEWEST_ON_DAY = (
    ("20261101", "0.32.0"),
    ("20260829", "0.28.0"),
    ("20260816", "0.27.1"),
    ("20260801", "0.26.0"),
    ("20260601", "0.22.0"),
    ("20260510", "0.20.2"),
    ("20260301", "0.16.0"),
    ("20250722", "0.9.2"),
)
FIRST_DAY_OF_TENSORRT_LLM_0_20 = "2025-06-01"
DAY = re.compile(r"20\d{6}")
ENGINE_SIZE = re.compile(r"Loaded engine size: (\d+) MiB")
MIB_PER_GIB = 1024
KEPT_DEFAULT = re.compile(
    r"default (flags|util|gpu_memory_utilization|kv_cache_free)|vLLM default|fraction default", re.IGNORECASE
)
# What others append to a model's name when they convert its weights.
CONVERSION = re.compile(
    r"[-_. ](fp8|nvfp4|mxfp4|awq|gptq|int4|int8|w4a16|w8a8|quantized|bnb|autoround)\b.*$", re.IGNORECASE
)
TEXT_ONLY = re.compile(r"language[-_]model[-_]only")
PINNED_POOL = re.compile(r"kv-cache-memory(?:-bytes)?[ =](\d+)|pinned at ([\d.]+e\d+) bytes")
# `mtp n=3`, `qwen3_5_mtp n=4`, `MTP (num_speculative_tokens=2)`, `MTP (2)`
DRAFTER = re.compile(r"(?:[a-z0-9_]+_)?(?P<method>mtp|eagle3?|ngram)(?![\w/])")
DRAFTED_TOKENS = re.compile(r"(?:\b[nk]=|num_speculative_tokens=|\()(\d+)")
OWN_DEFAULT = re.compile(r"repository default")
PATCHED = re.compile(r"[Mm]onkey-?patch|\bpatched\b")
TWO_KINDS = re.compile(r"\w \+ \w")
SKIPS_PROFILING = re.compile(r"skip[-_]mm[-_]profiling")
SEVERAL_GPUS = re.compile(r"x\s?\d+$|\d+\s?x\b|fleet", re.IGNORECASE)


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
class Skipped:
    """A row that cannot be compared, and why."""

    case: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    """One logged start-up with every setting resolved, as the engine would have."""

    case: str
    engine_version: str  # as stated
    resolved_version: str | None  # what the rules were picked by
    row: dict[str, Any]
    architecture: Architecture
    gpu: Gpu
    layout: Layout
    settings: EngineSettings
    rules: EngineRules
    rank_weight_bytes: int
    knows_checkpoint: bool  # False where the logged weights stand in for ours

    @property
    def device(self) -> Device:
        """Return what the GPU is to the engine."""
        return device_of(self.gpu, self.rules)

    @property
    def memory(self) -> MemoryPerGpu:
        """Return the ledger of this start-up."""
        return memory_per_gpu(
            architecture=self.architecture,
            rank_weight_bytes=self.rank_weight_bytes,
            gpu=self.gpu,
            layout=self.layout,
            settings=self.settings,
            rules=self.rules,
        )


def compare_startup(row: dict[str, Any], catalog: Snapshot) -> list[Comparison] | Skipped:
    """Return the comparisons of one logged start-up, or why there is none."""
    startup = resolve_startup(row, catalog)
    if isinstance(startup, Skipped):
        return startup
    try:
        return _comparisons(startup) or Skipped(case=startup.case, reason="states no memory")
    except RefusedStartError as refusal:  # what a patched build ran nevertheless
        return Skipped(case=startup.case, reason=refusal.detail)


def resolve_startup(row: dict[str, Any], catalog: Snapshot) -> Startup | Skipped:
    """Return a logged start-up with its gaps filled by the version's defaults, or why it cannot be compared.

    A start-up counts when it states its model, GPU and utilization (or that it kept the default one).
    """
    case = str(row["id"])
    if "approximate values" in str(row.get("notes")):
        return Skipped(case=case, reason="the source gives approximate values only")
    try:
        return _resolved(case, row, catalog)
    except (NotInCatalogError, EngineError, _UnstatedError) as error:
        return Skipped(case=case, reason=str(error))


def _resolved(case: str, row: dict[str, Any], catalog: Snapshot) -> Startup:
    drafts = _drafts(row)
    if OWN_DEFAULT.search(str(row.get("model"))):
        raise _UnstatedError("the model is not in the log")
    if PATCHED.search(f"{row.get('engine_version')} {row.get('notes')}"):
        raise _UnstatedError("a patched build")
    if TWO_KINDS.search(str(row.get("gpu") or "")):
        raise _UnstatedError("the GPUs are of two kinds")
    found, is_own = _model(row, catalog)
    model, gpu, layout = _as_served(row, found), _gpu(row, catalog), _layout(row)
    version = _version(row)
    rules = rules_for(row["engine"], version)
    checkpoint = _checkpoint(row, model)
    knows_checkpoint = is_own and "bitsandbytes" not in str(row.get("quantization"))
    logged = _logged_weights_gib(row)
    if not knows_checkpoint and logged is None:
        raise _UnstatedError("neither this checkpoint nor its loaded weights are known")
    settings = replace(_settings(row, gpu, model, checkpoint, rules), **drafts, kv_cache_memory_bytes=_pinned(row))
    ours = rank_weights(
        model.architecture,
        layout=layout,
        quantization=checkpoint.quantization,
        draft=draft_of(model.architecture, settings),
        device=device_of(gpu, rules),
    ).loaded_bytes
    if not row.get("quantization") and logged is None and ours > gpu.memory_bytes:
        raise _UnstatedError("the weights as published do not fit, so it ran another format, which is not stated")
    _check_sequences(row, model.architecture, settings, rules)
    return Startup(
        case=case,
        engine_version=str(row.get("engine_version") or "not stated"),
        resolved_version=version,
        row=row,
        architecture=model.architecture,
        gpu=gpu,
        layout=layout,
        settings=settings,
        rules=rules_of_model(model.architecture, rules),
        rank_weight_bytes=ours if knows_checkpoint or logged is None else int(logged * GIB),
        knows_checkpoint=knows_checkpoint,
    )


def _check_sequences(
    row: dict[str, Any], architecture: Architecture, settings: EngineSettings, rules: EngineRules
) -> None:
    """Raise where the printed peak is too small for the logits of the default sequences: fewer were asked for."""
    logged = row.get("activation_peak_gib")
    if not logged or row.get("max_num_seqs") or rules.memory_share != "total":
        return
    if logged * GIB < SMALLEST_SAMPLER_BYTES * sampled_logits(architecture, settings):
        raise _UnstatedError("fewer sequences than the default were asked for, and how many is not stated")


def _logged_weights_gib(row: dict[str, Any]) -> float | None:
    """Return the loaded weights as printed; TensorRT-LLM prints the size of its engine."""
    if engine := ENGINE_SIZE.search(str(row.get("quote") or "")):
        return float(engine[1]) / MIB_PER_GIB
    return None if row.get("weights_gib") is None else float(row["weights_gib"])


def _comparisons(startup: Startup) -> list[Comparison]:
    row, memory = startup.row, startup.memory
    activation, non_torch = _printed_terms(startup, memory)
    pool = logged_cache_gib(row) if startup.settings.kv_cache_memory_bytes is None else None
    logged = {
        "kv_cache_bytes": (pool, memory.kv_cache_bytes),
        "weight_bytes": (row.get("weights_gib") if startup.knows_checkpoint else None, memory.weight_bytes),
        "activation_bytes": (row.get("activation_peak_gib"), activation),
        "non_torch_bytes": (row.get("non_torch_gib"), non_torch),
    }
    if startup.rules.graph_accounting == "outside" and (row.get("cuda_graph_gib") or 0) > 0:
        logged["cuda_graph_bytes"] = (row["cuda_graph_gib"], memory.cuda_graph_bytes)
    found = [
        _comparison(startup, quantity, measured * GIB, predicted)
        for quantity, (measured, predicted) in logged.items()
        if measured
    ]
    if not logged["kv_cache_bytes"][0] and row.get("kv_cache_tokens") and row.get("max_model_len"):
        found.append(_comparison(startup, "kv_cache_tokens", row["kv_cache_tokens"], _tokens(startup, memory)))
    return found


def _comparison(startup: Startup, quantity: str, measured: float, predicted: float) -> Comparison:
    return Comparison(
        case=startup.case,
        engine=startup.rules.engine,
        engine_version=startup.engine_version,
        quantity=quantity,
        measured=measured,
        predicted=predicted,
    )


def logged_cache_gib(row: dict[str, Any]) -> float | None:
    """Return the pool as printed: at once, in its two halves, or in the refusal to start."""
    if row.get("k_cache_gib") and "mamba" not in str(row.get("quote", "")).lower():
        return float(row["k_cache_gib"] + row["v_cache_gib"])
    found = row.get("kv_cache_gib") or row.get("available_kv_gib_at_failure")
    return None if found is None else float(found)


def is_recent(startup: Startup) -> bool:
    """Return whether the rules that apply speak for vLLM 0.10 or newer, whatever the source stated."""
    version = startup.resolved_version
    return version is not None and version_numbers(version) >= FIRST_RECENT


def _printed_terms(startup: Startup, memory: MemoryPerGpu) -> tuple[int, int]:
    """Return activation and non-torch memory as the version prints them; where none is stated, as the older did.

    Newer versions print lasting buffers with the consumed memory, and their graph estimate with the peak.
    """
    rules = startup.rules
    if not rules.peak_includes_graphs:
        return memory.activation_bytes, memory.non_torch_bytes
    graphs = memory.cuda_graph_bytes if rules.graph_accounting == "inside" else 0
    lasting = lasting_bytes(startup.architecture, startup.layout, startup.settings, rules)
    return memory.activation_bytes - lasting + graphs, memory.non_torch_bytes + lasting


def _tokens(startup: Startup, memory: MemoryPerGpu) -> int:
    if keeps_separate_pools(startup.architecture, startup.rules):
        return plan_separate_pools(
            startup.architecture,
            layout=startup.layout,
            settings=startup.settings,
            available_bytes=memory.kv_cache_bytes,
        ).tokens
    return plan_kv_cache(
        startup.architecture,
        layout=startup.layout,
        settings=startup.settings,
        available_bytes=memory.kv_cache_bytes,
        device=device_of(startup.gpu, startup.rules),
    ).tokens


class _UnstatedError(ValueError):
    """The source did not state what a comparison needs."""


def _pinned(row: dict[str, Any]) -> int | None:
    """Return the pool that was asked for outright, in bytes."""
    found = PINNED_POOL.search(f"{row.get('quote')} {row.get('notes')}")
    return None if found is None else int(float(found[1] or found[2]))


def _drafts(row: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that say how many tokens are drafted, and by what; empty without drafts.

    Drafters with weights of their own, such as DFlash, DSpark and Gemma's assistants, follow from no config here.
    """
    stated = str(row.get("spec_decode") or "").lower()
    if not stated:
        return {}
    method = DRAFTER.match(stated)
    if method is None or "assistant" in stated:
        raise _UnstatedError("speculative decoding: the drafter's weights and buffers are not stated")
    count = DRAFTED_TOKENS.search(stated)
    if count is None:
        raise _UnstatedError("speculative decoding: how many tokens are drafted is not stated")
    return {"speculative_method": method["method"], "num_speculative_tokens": int(count[1])}


def _model_name(row: dict[str, Any]) -> str:
    """Return the model without the remarks that follow it."""
    return str(row["model"]).split(" (")[0].removesuffix(" NVFP4").removesuffix(" AWQ").strip()


def _short_name(row: dict[str, Any]) -> str:
    return _model_name(row).split("/")[-1]


def _model(row: dict[str, Any], catalog: Snapshot) -> tuple[ModelFacts, bool]:
    """Return the model, and whether it is the checkpoint itself, not a fine-tune or conversion of its shape."""
    name, short = _model_name(row), _short_name(row)
    converted = CONVERSION.sub("", short)
    own = (name, short, short.lower().removesuffix("-fp8"))
    for candidate in (*own, SAME_SHAPE.get(short, name), converted, SAME_SHAPE.get(converted, name)):
        try:
            return catalog.model(candidate), candidate in own and short not in SAME_SHAPE
        except NotInCatalogError:
            continue
    return catalog.model(name), False


def _as_served(row: dict[str, Any], model: ModelFacts) -> ModelFacts:
    """Return the model without its tower where the source says that only the language model is served."""
    said, encoder = f"{row.get('quote')} {row.get('notes')}", model.architecture.encoder
    if TEXT_ONLY.search(said) is not None:
        return replace(model, architecture=replace(model.architecture, encoder=None))
    if encoder is not None and SKIPS_PROFILING.search(said) is not None:
        unprofiled = replace(encoder, max_tokens_per_item=0, unbounded_tokens=0)
        return replace(model, architecture=replace(model.architecture, encoder=unprofiled))
    return model


def _gpu(row: dict[str, Any], catalog: Snapshot) -> Gpu:
    total = row.get("gpu_total_gib")
    name = str(row.get("gpu") or "").lower()
    said = set(re.split(r"[\s(),/-]+", name))
    named = [it for it in catalog.gpus.values() if set(it.id.split("-")[:2]) <= said]
    words = {it.id: set(it.id.split("-")) for it in named}
    found = min(named, key=lambda it: (-len(words[it.id] & said), len(words[it.id] - said), it.id), default=None)
    for short in ("h200", "h100", "b200", "a100", "l40s", "l4", "t4", "rtx 5090", "rtx 3090", "rtx 4090", "a800"):
        if found is None and set(short.split()) <= said:
            found = catalog.gpu(short.replace(" ", "-"))
    if found is None and total is None:
        raise _UnstatedError("the GPU is not stated or not in the catalog")
    if found is None:
        found = min(catalog.gpus.values(), key=lambda it: (abs(it.memory_bytes - (total or 0) * GIB), it.id))
    base = _of_stated_size(found, said, catalog)
    return base if total is None else replace(base, memory_bytes=int(total * GIB))


def _of_stated_size(gpu: Gpu, said: set[str], catalog: Snapshot) -> Gpu:
    """Return the part of the same family whose memory size was said, such as `40gb`."""
    words = gpu.id.split("-")
    sizes = {word for word in said if word.endswith("gb") and word[:-2].isdigit()}
    if not sizes or sizes & set(words):
        return gpu
    family = [it for it in catalog.gpus.values() if it.id.split("-")[0] == words[0] and sizes & set(it.id.split("-"))]
    return max(family, key=lambda it: it.memory_bandwidth_bytes_per_s, default=gpu)


def _version(row: dict[str, Any]) -> str | None:
    """Return the stated version; else the newest of its day."""
    stated = str(row.get("engine_version") or "")
    if stated[:1].isdigit() and not stated.startswith(("0.0.", "0.1.")):
        return stated
    if row["engine"] == "tensorrt-llm" and str(row.get("date")) < FIRST_DAY_OF_TENSORRT_LLM_0_20:
        return "0.14"
    if row["engine"] != "vllm":
        return None
    if row.get("engine_generation") == "V0":
        return FIRST_GENERATION_VERSION
    day = (DAY.search(stated.replace("-", "")) or [str(row.get("date") or "").replace("-", "")])[0]
    day = day.ljust(len("20260101"), "9") if day else day  # a month stands for its last day
    return next((version for first_day, version in NEWEST_ON_DAY if day and day >= first_day), None)


def _checkpoint(row: dict[str, Any], model: ModelFacts) -> Checkpoint:
    stated = str(row.get("quantization") or "").lower()
    wanted = next((form for word, form in FORMATS if word in stated), None)
    own = next(it for it in model.checkpoints if it.is_default)
    # The published checkpoint is what it is, however the source describes it.
    names_own = own.hf_id is not None and own.hf_id.lower() == _model_name(row).lower()
    if wanted is None or wanted == own.weight_format or (names_own and "online" not in stated):
        return own
    if "online" in stated:
        return replace(own, weight_format=wanted, quantization=standard_quantization(wanted), is_default=True)
    for checkpoint in model.checkpoints:
        if checkpoint.weight_format == wanted:
            return checkpoint
    return replace(own, weight_format=wanted, quantization=standard_quantization(wanted), is_default=True)


def _layout(row: dict[str, Any]) -> Layout:
    if not row.get("tp") and SEVERAL_GPUS.search(str(row.get("gpu") or "several x2")):
        raise _UnstatedError("tensor parallelism is not stated")
    return Layout(
        tensor_parallel_size=int(row.get("tp") or 1),
        pipeline_parallel_size=int(row.get("pp") or 1),
        expert_parallel=bool(row.get("ep")),
    )


def _settings(
    row: dict[str, Any], gpu: Gpu, model: ModelFacts, checkpoint: Checkpoint, rules: EngineRules
) -> EngineSettings:
    batched, sequences = batch_defaults(rules, gpu)
    stated = str(row.get("kv_cache_dtype") or "auto").lower()
    dtype: KvCacheDtype = "fp8" if stated.startswith("fp8") else (checkpoint.kv_cache_dtype or "auto")
    return EngineSettings(
        gpu_memory_utilization=_utilization(row, gpu, rules),
        kv_cache_dtype=dtype,
        max_model_len=int(row.get("max_model_len") or model.architecture.default_max_model_len),
        max_num_batched_tokens=int(row.get("max_num_batched_tokens") or batched),
        max_num_seqs=int(row.get("max_num_seqs") or sequences),
        enforce_eager=bool(row.get("enforce_eager")),
    )


def _utilization(row: dict[str, Any], gpu: Gpu, rules: EngineRules) -> float:
    """Return the stated share, or the version's default where the source says it was kept."""
    stated = row.get("gpu_memory_utilization") or row.get("sglang_mem_fraction_static")
    if stated is not None:
        return float(stated)
    if KEPT_DEFAULT.search(str(row.get("notes") or "")) or _pinned(row) is not None:
        return default_utilization(rules, gpu)
    raise _UnstatedError("utilization is not stated")
