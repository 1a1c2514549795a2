"""Logged start-ups against the ledger: what the engine said it had for the cache, and what we say."""

from dataclasses import dataclass, replace
from typing import Any

from service.catalog.engine_rules import rules_for
from service.catalog.errors import NotInCatalogError
from service.catalog.snapshot import Snapshot
from service.engine.arithmetic import GIB
from service.engine.config.quantization import standard_quantization
from service.engine.errors import EngineError
from service.engine.inputs import EngineSettings, Gpu, KvCacheDtype, Layout, WeightFormat
from service.engine.kv_cache import plan_kv_cache
from service.engine.ledger import memory_per_gpu
from service.engine.questions import Checkpoint, ModelFacts
from service.engine.rules import batch_defaults
from service.engine.weights import rank_weights

FORMATS: tuple[tuple[str, WeightFormat], ...] = (
    ("nvfp4", "nvfp4"),
    ("mxfp4", "mxfp4"),
    ("fp8", "fp8"),
    ("int8", "int8"),
    ("awq", "int4"),
    ("gptq", "int4"),
    ("int4", "int4"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One start-up: what was logged, what is predicted. [bytes] for memory, tokens for tokens."""

    case: str
    engine_version: str
    quantity: str  # kv_cache_bytes, weight_bytes, activation_bytes
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


def compare_startup(row: dict[str, Any], catalog: Snapshot) -> list[Comparison] | Skipped:
    """Return the comparisons of one logged start-up, or why there is none."""
    case = str(row["id"])
    if row["engine"] != "vllm":
        return Skipped(case=case, reason=f"engine {row['engine']} has no measured terms")
    if row.get("spec_decode"):
        return Skipped(case=case, reason="speculative decoding")
    try:
        return _compared(case, row, catalog) or Skipped(case=case, reason="states no memory")
    except (NotInCatalogError, EngineError, _UnstatedError) as error:
        return Skipped(case=case, reason=str(error))


def _compared(case: str, row: dict[str, Any], catalog: Snapshot) -> list[Comparison]:
    model, gpu = _model(row, catalog), _gpu(row, catalog)
    checkpoint = _checkpoint(row, model)
    settings, layout = _settings(row, gpu, model, checkpoint), _layout(row)
    weights = rank_weights(model.architecture, layout=layout, quantization=checkpoint.quantization).loaded_bytes
    memory = memory_per_gpu(
        architecture=model.architecture,
        rank_weight_bytes=weights,
        gpu=gpu,
        layout=layout,
        settings=settings,
        rules=rules_for("vllm", _version(row)),
    )
    version = str(row.get("engine_version") or "not stated")

    def pair(quantity: str, measured_gib: float, predicted: int) -> Comparison:
        return Comparison(
            case=case, engine_version=version, quantity=quantity, measured=measured_gib * GIB, predicted=predicted
        )

    found: list[Comparison] = []
    if row.get("kv_cache_gib"):
        found.append(pair("kv_cache_bytes", row["kv_cache_gib"], memory.kv_cache_bytes))
    elif row.get("kv_cache_tokens") and row.get("max_model_len"):
        tokens = plan_kv_cache(
            model.architecture, layout=layout, settings=settings, available_bytes=memory.kv_cache_bytes
        ).tokens
        found.append(
            Comparison(
                case=case,
                engine_version=version,
                quantity="kv_cache_tokens",
                measured=row["kv_cache_tokens"],
                predicted=tokens,
            )
        )
    if row.get("weights_gib"):
        found.append(pair("weight_bytes", row["weights_gib"], weights))
    if row.get("activation_peak_gib"):
        found.append(pair("activation_bytes", row["activation_peak_gib"], memory.activation_bytes))
    return found


class _UnstatedError(ValueError):
    """The source did not state what a comparison needs."""


def _model(row: dict[str, Any], catalog: Snapshot) -> ModelFacts:
    name = str(row["model"]).split(" (")[0].strip()
    for candidate in (name, name.split("/")[-1], name.split("/")[-1].lower().removesuffix("-fp8")):
        try:
            return catalog.model(candidate)
        except NotInCatalogError:
            continue
    return catalog.model(name)


def _gpu(row: dict[str, Any], catalog: Snapshot) -> Gpu:
    total = row.get("gpu_total_gib")
    name = str(row.get("gpu") or "").lower()
    said = set(name.replace("-", " ").replace("(", " ").replace(",", " ").split())
    found = None
    for known in sorted(catalog.gpus.values(), key=lambda it: -len(it.id)):
        words = known.id.replace("-", " ").split()
        if set(words[:2]) <= said:
            found = known
            break
    for short in ("h200", "h100", "b200", "a100", "l40s", "l4", "t4", "rtx 5090", "rtx 3090", "rtx 4090", "a800"):
        if found is None and set(short.split()) <= said:
            found = catalog.gpu(short.replace(" ", "-"))
    if found is None and total is None:
        raise _UnstatedError("the GPU is not stated or not in the catalog")
    base = found or catalog.gpu("h100")
    return base if total is None else replace(base, memory_bytes=int(total * GIB))


def _version(row: dict[str, Any]) -> str | None:
    version = str(row.get("engine_version") or "")
    return version if version[:1].isdigit() else None


def _checkpoint(row: dict[str, Any], model: ModelFacts) -> Checkpoint:
    stated = str(row.get("quantization") or "").lower()
    wanted = next((form for word, form in FORMATS if word in stated), None)
    if "bitsandbytes" in stated:
        raise _UnstatedError("bitsandbytes checkpoints keep modules by name")
    own = next(it for it in model.checkpoints if it.is_default)
    if wanted is None or wanted == own.weight_format:
        return own
    if "online" in stated:
        return replace(own, weight_format=wanted, quantization=standard_quantization(wanted), is_default=True)
    for checkpoint in model.checkpoints:
        if checkpoint.weight_format == wanted:
            return checkpoint
    return replace(own, weight_format=wanted, quantization=standard_quantization(wanted), is_default=True)


def _layout(row: dict[str, Any]) -> Layout:
    if not row.get("tp"):
        raise _UnstatedError("tensor parallelism is not stated")
    return Layout(
        tensor_parallel_size=int(row["tp"]),
        pipeline_parallel_size=int(row.get("pp") or 1),
        expert_parallel=bool(row.get("ep")),
    )


def _settings(row: dict[str, Any], gpu: Gpu, model: ModelFacts, checkpoint: Checkpoint) -> EngineSettings:
    if row.get("gpu_memory_utilization") is None:
        raise _UnstatedError("utilization is not stated")
    batched, sequences = batch_defaults(rules_for("vllm", _version(row)), gpu)
    stated = str(row.get("kv_cache_dtype") or "auto").lower()
    dtype: KvCacheDtype = "fp8" if stated.startswith("fp8") else (checkpoint.kv_cache_dtype or "auto")
    return EngineSettings(
        gpu_memory_utilization=float(row["gpu_memory_utilization"]),
        kv_cache_dtype=dtype,
        max_model_len=int(row.get("max_model_len") or model.architecture.default_max_model_len),
        max_num_batched_tokens=int(row.get("max_num_batched_tokens") or batched),
        max_num_seqs=int(row.get("max_num_seqs") or sequences),
        enforce_eager=bool(row.get("enforce_eager")),
    )
