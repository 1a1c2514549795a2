"""A logged start-up as values: what was served, with which settings, and what the engine printed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from service.calibration.logs import sglang, tensorrt_llm, vllm
from service.calibration.logs.engines import LOGS
from service.calibration.logs.rows import Row, UnstatedError, gib_of, remarks
from service.engine import EngineName, KvCacheDtype, SpeculativeMethod, WeightFormat

FORMATS: Final[tuple[tuple[str, WeightFormat], ...]] = (
    ("nvfp4", "nvfp4"),
    ("mxfp4", "mxfp4"),
    ("fp8", "fp8"),
    ("int8", "int8"),
    ("awq", "int4"),
    ("gptq", "int4"),
    ("int4", "int4"),
)
METHODS: Final[Mapping[str, SpeculativeMethod]] = {"mtp": "mtp", "eagle": "eagle", "eagle3": "eagle3", "ngram": "ngram"}
KEPT_DEFAULT: Final = re.compile(
    r"default (flags|util|gpu_memory_utilization|kv_cache_free)|vLLM default|fraction default", re.IGNORECASE
)
TEXT_ONLY: Final = re.compile(r"language[-_]model[-_]only")
SKIPS_PROFILING: Final = re.compile(r"skip[-_]mm[-_]profiling")
PINNED_POOL: Final = re.compile(r"kv-cache-memory(?:-bytes)?[ =](\d+)|pinned at ([\d.]+e\d+) bytes")
# `mtp n=3`, `qwen3_5_mtp n=4`, `MTP (num_speculative_tokens=2)`, `MTP (2)`
DRAFTER: Final = re.compile(r"(?:[a-z0-9_]+_)?(?P<method>mtp|eagle3?|ngram)(?![\w/])")
DRAFTED_TOKENS: Final = re.compile(r"(?:\b[nk]=|num_speculative_tokens=|\()(\d+)")
OWN_DEFAULT: Final = re.compile(r"repository default")
PATCHED: Final = re.compile(r"[Mm]onkey-?patch|\bpatched\b")
TWO_KINDS: Final = re.compile(r"\w \+ \w")
SEVERAL_GPUS: Final = re.compile(r"x\s?\d+$|\d+\s?x\b|fleet", re.IGNORECASE)

Tower = Literal["profiled", "unprofiled", "absent"]  # what became of the encoder of a multimodal model


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """What an engine printed of its memory on one GPU, in GiB unless named otherwise; None where it did not."""

    weights: float | None
    loaded_weights: float | None  # the same, or the size of a compiled engine
    activation: float | None
    non_torch: float | None
    graphs: float | None
    graph_estimate: float | None
    cache: float | None
    cache_tokens: int | None
    free_before_load: float | None
    execution_context: float | None
    buffers: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupLog:
    """One published start-up as its source states it; None where it states nothing."""

    case: str
    engine: EngineName
    stated_version: str
    version: str | None  # as stated, or what else in the source tells
    model: str
    format_words: str
    weight_format: WeightFormat | None
    gpu: str
    gpu_gib: float | None
    tensor_parallel_size: int | None
    pipeline_parallel_size: int
    expert_parallel: bool
    utilization: float | None
    keeps_default_utilization: bool
    kv_cache_dtype: KvCacheDtype | None
    pinned_pool_bytes: int | None
    max_model_len: int | None
    max_num_batched_tokens: int | None
    max_num_seqs: int | None
    enforce_eager: bool
    drafts: tuple[SpeculativeMethod, int] | None
    tower: Tower
    printed: Printed


def read_startup(row: Row) -> StartupLog:
    """Return a start-up as values.

    Raises:
        UnstatedError: the source leaves open what was served.
    """
    if "approximate values" in str(row.get("notes")):
        raise UnstatedError("the source gives approximate values only")
    drafts = _drafts(row)
    _check_kind(row)
    formats, gpu = str(row.get("quantization") or "").lower(), str(row.get("gpu") or "")
    pinned = PINNED_POOL.search(remarks(row))
    return StartupLog(
        case=str(row["id"]),
        engine=row["engine"],
        stated_version=str(row.get("engine_version") or "not stated"),
        version=_version(row),
        model=str(row["model"]).split(" (", maxsplit=1)[0].removesuffix(" NVFP4").removesuffix(" AWQ").strip(),
        format_words=formats,
        weight_format=next((known for word, known in FORMATS if word in formats), None),
        gpu=gpu,
        gpu_gib=row.get("gpu_total_gib"),
        tensor_parallel_size=_tensor_parallel_size(row),
        pipeline_parallel_size=int(row.get("pp") or 1),
        expert_parallel=bool(row.get("ep")),
        utilization=row.get("gpu_memory_utilization") or row.get("sglang_mem_fraction_static"),
        keeps_default_utilization=pinned is not None or KEPT_DEFAULT.search(str(row.get("notes") or "")) is not None,
        kv_cache_dtype="fp8" if str(row.get("kv_cache_dtype") or "auto").lower().startswith("fp8") else None,
        pinned_pool_bytes=None if pinned is None else int(float(pinned[1] or pinned[2])),
        max_model_len=row.get("max_model_len"),
        max_num_batched_tokens=row.get("max_num_batched_tokens"),
        max_num_seqs=row.get("max_num_seqs"),
        enforce_eager=bool(row.get("enforce_eager")),
        drafts=drafts,
        tower=_tower(row),
        printed=_printed(row),
    )


def _check_kind(row: Row) -> None:
    """Raise where no catalog can know what ran."""
    if OWN_DEFAULT.search(str(row.get("model"))):
        raise UnstatedError("the model is not in the log")
    if PATCHED.search(f"{row.get('engine_version')} {row.get('notes')}"):
        raise UnstatedError("a patched build")
    if TWO_KINDS.search(str(row.get("gpu") or "")):
        raise UnstatedError("the GPUs are of two kinds")


def _drafts(row: Row) -> tuple[SpeculativeMethod, int] | None:
    """Return by what tokens are drafted, and how many; None without drafts.

    Drafters with weights of their own, such as DFlash, DSpark and Gemma's assistants, follow from no config here.
    """
    stated = str(row.get("spec_decode") or "").lower()
    if not stated:
        return None
    method = DRAFTER.match(stated)
    if method is None or "assistant" in stated:
        raise UnstatedError("speculative decoding: the drafter's weights and buffers are not stated")
    count = DRAFTED_TOKENS.search(stated)
    if count is None:
        raise UnstatedError("speculative decoding: how many tokens are drafted is not stated")
    return METHODS[method["method"]], int(count[1])


def _version(row: Row) -> str | None:
    """Return the stated version; else what the engine's own logs tell otherwise."""
    stated = str(row.get("engine_version") or "")
    if stated[:1].isdigit() and not stated.startswith(("0.0.", "0.1.")):
        return stated
    return LOGS[row["engine"]].unstated_version(row)


def _tensor_parallel_size(row: Row) -> int | None:
    """Return the ranks, one where there is one GPU; None where there are several and nothing is said."""
    if not row.get("tp") and SEVERAL_GPUS.search(str(row.get("gpu") or "several x2")):
        return None
    return int(row.get("tp") or 1)


def _tower(row: Row) -> Tower:
    """Return whether the source says that only the language model is served, or that its tower is not profiled."""
    if TEXT_ONLY.search(remarks(row)) is not None:
        return "absent"
    return "profiled" if SKIPS_PROFILING.search(remarks(row)) is None else "unprofiled"


def _printed(row: Row) -> Printed:
    weights = row.get("weights_gib")
    return Printed(
        weights=gib_of(row, "weights_gib"),
        loaded_weights=tensorrt_llm.engine_gib(row) or (None if weights is None else float(weights)),
        activation=gib_of(row, "activation_peak_gib"),
        non_torch=gib_of(row, "non_torch_gib"),
        graphs=gib_of(row, "cuda_graph_gib"),
        graph_estimate=vllm.graph_estimate_gib(row),
        cache=_cache_gib(row),
        cache_tokens=row.get("kv_cache_tokens"),
        free_before_load=sglang.free_before_load_gib(row),
        execution_context=tensorrt_llm.execution_context_gib(row),
        buffers=tensorrt_llm.buffers_gib(row),
    )


def _cache_gib(row: Row) -> float | None:
    """Return the pool as printed: at once, in its two halves, or in the refusal to start."""
    if row.get("k_cache_gib") and "mamba" not in str(row.get("quote", "")).lower():
        return float(row["k_cache_gib"] + row["v_cache_gib"])
    return gib_of(row, "kv_cache_gib") or gib_of(row, "available_kv_gib_at_failure")
