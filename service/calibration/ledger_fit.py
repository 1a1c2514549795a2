"""The ledger's constants, derived again from published start-up logs.

`sizer fit-ledger --data DIR` prints each beside the value in `engine_rules.yaml`, with its sample and
error. Only what a log lets one separate is fitted; the rest of the table counts buffers in the
engines' sources. One constant is fitted at a time, with the others as the table has them.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from service.calibration.startups import Skipped, Startup, is_recent, logged_cache_gib, resolve_startup
from service.catalog.engine_rules import KIB, constants
from service.catalog.snapshot import Snapshot
from service.engine.arithmetic import GIB
from service.engine.engines.rules import EngineRules, gib, has_unified_memory
from service.engine.formats.elements import HALF_BYTES
from service.engine.memory.activation import (
    activation_bytes,
    forward_bytes,
    lasting_bytes,
    sampled_logits,
    workspace_bytes,
)
from service.engine.memory.ledger import LARGEST_GRAPH_BATCH, largest_captured_batch, layers_by_kind, non_torch_bytes

STARTUPS = ("vllm_startups.jsonl", "vllm_startups_2.jsonl")
SIGNIFICANT_DIGITS = 2
PRINTED_DECIMALS = 3
PRINTED_ESTIMATE = re.compile(r"([\d.]+) GiB \(estimated\)|CUDA graph estimate ([\d.]+) GiB")
FREE_BEFORE_LOAD = re.compile(r"begin\.? avail mem=([\d.]+) GB")
TRT_EXECUTION = re.compile(r"([\d.]+) MiB for execution context")
TRT_BUFFERS = re.compile(r"([\d.]+) GB (?:for )?(?:runtime buffers|decoder)")
Sample = Callable[[Startup], float | None]
Statistic = Callable[[Sequence[float]], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """One constant as the logs have it, in the unit of the table."""

    name: str
    value: float
    sample_size: int
    error: float  # median distance of the sample from the value


def fit(folder: Path, catalog: Snapshot) -> tuple[Fitted, ...]:
    """Return every constant that start-up logs determine."""
    files = [folder / name for name in STARTUPS if (folder / name).is_file()]
    rows = [
        json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    resolved = [resolve_startup(row, catalog) for row in rows]
    # A drafter captures and holds more than the model that the constants describe.
    startups = [it for it in resolved if not isinstance(it, Skipped) and not it.settings.num_speculative_tokens]
    samples = {
        name: [value for it in startups if (value := sample(it)) is not None] for name, (_, sample) in SAMPLES.items()
    }
    return tuple(_fitted(name, SAMPLES[name][0], values) for name, values in samples.items() if values)


def text_of(found: Iterable[Fitted]) -> str:
    """Return the constants beside the table's, for a terminal."""
    lines = [f"{'constant':22} {'fitted':>8} {'table':>8} {'unit':8} {'rows':>4}  median error"]
    for it in found:
        known = constants()[it.name]
        lines.append(
            f"{it.name:22} {it.value:8g} {known.value:8g} {known.unit:8} {it.sample_size:4}  {it.error:g} {known.unit}"
        )
    stated = [name for name, known in constants().items() if known.sample_size == 0]
    return "\n".join([*lines, f"stated, not fitted: {', '.join(stated)}"]) + "\n"


def _fitted(name: str, statistic: Statistic, sample: Sequence[float]) -> Fitted:
    value = statistic(sample)
    error = significant(round(median(abs(it - value) for it in sample), PRINTED_DECIMALS))
    return Fitted(name=name, value=value, sample_size=len(sample), error=error)


def significant(value: float) -> float:
    """Return a value rounded to the digits that the samples support."""
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def middle(sample: Sequence[float]) -> float:
    """Return the median, rounded."""
    return significant(median(sample))


def upper(share: float) -> Statistic:
    """Return the statistic that at least this share of a sample does not exceed: rounded up, the safe side."""

    def statistic(sample: Sequence[float]) -> float:
        value = sorted(sample)[math.ceil(share * len(sample)) - 1]
        rounded = significant(value)
        step = 10.0 ** (math.floor(math.log10(abs(value))) - SIGNIFICANT_DIGITS + 1)
        return rounded if rounded >= value else significant(rounded + step)

    return statistic


def _sampler_dominates(startup: Startup) -> bool:
    """Return whether the sampler is the peak, whatever else is alive."""
    architecture, layout, settings = startup.architecture, startup.layout, startup.settings
    sampler = startup.rules.sampler_bytes_per_logit * sampled_logits(architecture, settings)
    forward = forward_bytes(architecture, layout, settings)
    if not startup.rules.keeps_workspaces:
        forward += workspace_bytes(architecture, layout, settings, startup.rules, startup.device)
    return sampler > forward and (architecture.encoder is None or architecture.encoder.max_tokens_per_item == 0)


def _beside_sampler_gib(startup: Startup) -> float | None:
    """Return what a printed peak leaves beside the sampler's logits, where those are the peak."""
    logged = startup.row.get("activation_peak_gib")
    is_vllm = startup.rules.memory_share == "total" and not startup.rules.peak_includes_graphs
    if not logged or not is_vllm or not is_recent(startup) or not _sampler_dominates(startup):
        return None
    lasting = lasting_bytes(startup.architecture, startup.layout, startup.settings, startup.rules, startup.device)
    logits = sampled_logits(startup.architecture, startup.settings)
    return float(logged - (startup.rules.sampler_bytes_per_logit * logits + lasting) / GIB)


def _batch_gib(startup: Startup) -> float:
    """Return the hidden states of one batch."""
    width = startup.architecture.hidden_size * startup.architecture.residual_streams * HALF_BYTES
    return startup.settings.max_num_batched_tokens * width / GIB


def _activation_base_gib(name: str) -> Sample:
    """What lies beside the sampler - hidden states, for the versions that use a constant."""

    def sample(startup: Startup) -> float | None:
        beside = _beside_sampler_gib(startup)
        if beside is None or startup.rules.activation_base_bytes != gib(constants()[name].value):
            return None
        return beside - constants()["hidden_copies"].value * _batch_gib(startup)

    return sample


def _captured_gib(startup: Startup) -> float | None:
    """What capturing took; adapters double it, a negative figure is memory freed meanwhile."""
    logged = startup.row.get("cuda_graph_gib") or 0
    is_truth = startup.rules.graph_accounting == "outside" and is_recent(startup) and startup.rules.engine == "vllm"
    is_whole = startup.layout.pipeline_parallel_size == 1 and not has_unified_memory(startup.gpu)
    return float(logged) if logged > 0 and is_truth and is_whole else None


def _estimated_gib(startup: Startup) -> float | None:
    """Return the engine's own estimate, as printed beside the truth."""
    said = f"{startup.row.get('quote')} {startup.row.get('notes')}"
    printed = PRINTED_ESTIMATE.search(said)
    is_first = startup.rules.graph_accounting == "outside" and startup.layout.pipeline_parallel_size == 1
    return float(printed[1] or printed[2]) if printed is not None and is_first else None


def _graph_kib(figure: Sample, base: str, dense: str, *, of_experts: bool, first: bool) -> Sample:
    """(graphs - base - dense layers) / (layers of a kind x largest captured batch)."""

    def sample(startup: Startup) -> float | None:
        value = figure(startup)
        is_first = startup.rules.graphs_on_hopper.base_bytes == gib(constants()["graph_base_first"].value)
        kinds = layers_by_kind(startup.architecture)
        if value is None or is_first != first or bool(kinds.experts) != of_experts:
            return None
        sizes = largest_captured_batch(startup.settings)
        above = (value - constants()[base].value * sizes / LARGEST_GRAPH_BATCH) * KIB * KIB
        others = kinds.dense + kinds.recurrent
        if not of_experts:
            return above / (others * sizes)
        return (above - others * sizes * constants()[dense].value) / (kinds.experts * sizes)

    return sample


def _context_gib(name: str) -> Sample:
    """Non-torch memory as printed, of one GPU without peers, for the versions that use a constant."""

    def sample(startup: Startup) -> float | None:
        logged, layout = startup.row.get("non_torch_gib"), startup.layout
        is_alone = layout.tensor_parallel_size == 1 and layout.pipeline_parallel_size == 1
        if not logged or not is_alone or startup.rules.memory_share != "total" or has_unified_memory(startup.gpu):
            return None
        predicted = non_torch_bytes(startup.gpu, layout, startup.rules)
        if predicted != gib(constants()[name].value) or startup.row.get("gpu") is None:
            return None
        return float(logged) if not startup.rules.sampler_state_bytes_per_logit else None

    return sample


def _unexplained_gib(startup: Startup) -> float | None:
    """Budget - weights - activation - cache: non-torch, and what the other terms miss."""
    cache = logged_cache_gib(startup.row)
    if cache is None or startup.rules.memory_share != "total" or not is_recent(startup):
        return None
    budget = startup.settings.gpu_memory_utilization * startup.gpu.memory_bytes
    peak = activation_bytes(startup.architecture, startup.layout, startup.settings, startup.rules, startup.device)
    return float((budget - startup.rank_weight_bytes - peak) / GIB - cache)


def _implied_base_gib(name: str) -> Sample:
    """What a budget leaves unexplained beside non-torch memory and the constant, for the versions that use it."""

    def sample(startup: Startup) -> float | None:
        rules, value = startup.rules, constants()[name].value
        unexplained = _unexplained_gib(startup)
        if unexplained is None or rules.engine != "vllm" or rules.activation_base_bytes != gib(value):
            return None
        return unexplained - non_torch_bytes(startup.gpu, startup.layout, rules) / GIB + value

    return sample


def _non_torch_unified_gib(startup: Startup) -> float | None:
    """Return what is unexplained beyond one GPU's share where the host draws on the same memory."""
    is_alone = startup.layout.tensor_parallel_size == 1 and startup.rules.graph_accounting == "outside"
    unexplained = _unexplained_gib(startup) if is_alone and has_unified_memory(startup.gpu) else None
    context = startup.rules.context_bytes["other"] / GIB
    return None if unexplained is None else unexplained - context


def _connected_context_gib(startup: Startup) -> float | None:
    """Non-torch memory as printed, of one rank of a pipeline."""
    logged, layout = startup.row.get("non_torch_gib"), startup.layout
    is_pipeline = layout.pipeline_parallel_size > 1 and layout.tensor_parallel_size == 1
    return float(logged) if logged and is_pipeline and startup.rules.connected_context_bytes is not None else None


def _peers_gib(name: str, bytes_of: Callable[[EngineRules], int]) -> Sample:
    """Non-torch memory as printed - one GPU's share, for the versions whose peers' buffers a constant speaks for."""

    def sample(startup: Startup) -> float | None:
        logged = startup.row.get("non_torch_gib")
        if not logged or startup.layout.tensor_parallel_size == 1 or not is_recent(startup):
            return None
        buffers = gib(constants()[name].value)
        context = non_torch_bytes(startup.gpu, startup.layout, startup.rules) - buffers
        if bytes_of(startup.rules) != buffers or context not in _contexts(startup.rules):
            return None
        return float(logged) - context / GIB

    return sample


def _missed_gib(name: str) -> Sample:
    """Promised - logged pool, for the versions whose margin a constant is; 0 where there was more."""

    def sample(startup: Startup) -> float | None:
        cache = logged_cache_gib(startup.row)
        is_own = startup.rules.engine == "vllm" and startup.rules.margin_bytes == gib(constants()[name].value)
        # One log of a compressed past (DeepSeek V4) misses 2.6 GiB, for reasons not known.
        if cache is None or not is_own or not is_recent(startup) or layers_by_kind(startup.architecture).selecting:
            return None
        return max(startup.memory.kv_cache_bytes / GIB - cache, 0.0)

    return sample


def _contexts(rules: EngineRules) -> set[int]:
    return {*rules.context_bytes.values(), rules.connected_context_bytes or 0}


def _sglang_peers_gib(startup: Startup) -> float | None:
    """Memory - free memory before weights are loaded - context."""
    said = f"{startup.row.get('quote')} {startup.row.get('notes')}"
    before = FREE_BEFORE_LOAD.search(said)
    if startup.rules.engine != "sglang" or before is None:
        return None
    return startup.gpu.memory_bytes / GIB - float(before[1]) - constants()["sglang_context"].value


def _trt_logit_bytes(name: str) -> Sample:
    """(runtime buffers + decoder) / (sequences x vocabulary), for the versions that use a constant."""

    def sample(startup: Startup) -> float | None:
        buffers = [float(it) for it in TRT_BUFFERS.findall(str(startup.row.get("quote") or ""))]
        if not buffers or startup.rules.sampler_bytes_per_logit != constants()[name].value:
            return None
        return sum(buffers) * GIB / sampled_logits(startup.architecture, startup.settings)

    return sample


def _trt_context_gib(startup: Startup) -> float | None:
    """Memory - engine - execution context - buffers - cache / fraction."""
    said = str(startup.row.get("quote") or "")
    execution, buffers = TRT_EXECUTION.search(said), TRT_BUFFERS.findall(said)
    cache = logged_cache_gib(startup.row)
    if startup.rules.memory_share != "free" or execution is None or cache is None:
        return None
    allocated = startup.rank_weight_bytes / GIB + float(execution[1]) / KIB + sum(float(it) for it in buffers)
    return startup.gpu.memory_bytes / GIB - allocated - cache / startup.settings.gpu_memory_utilization


SAMPLES: dict[str, tuple[Statistic, Sample]] = {
    "activation_base_first": (upper(2 / 3), _implied_base_gib("activation_base_first")),
    "activation_base": (upper(9 / 10), _activation_base_gib("activation_base")),
    "graph_dense_first": (
        middle,
        _graph_kib(_captured_gib, "graph_base_first", "graph_dense_first", of_experts=False, first=True),
    ),
    "graph_expert_first": (
        middle,
        _graph_kib(_captured_gib, "graph_base_first", "graph_dense_first", of_experts=True, first=True),
    ),
    "graph_dense_layer": (
        middle,
        _graph_kib(_captured_gib, "graph_base", "graph_dense_layer", of_experts=False, first=False),
    ),
    "graph_expert_layer": (
        middle,
        _graph_kib(_captured_gib, "graph_base", "graph_dense_layer", of_experts=True, first=False),
    ),
    "graph_estimate_dense": (
        middle,
        _graph_kib(_estimated_gib, "graph_estimate_base", "graph_estimate_dense", of_experts=False, first=False),
    ),
    "graph_estimate_expert": (
        middle,
        _graph_kib(_estimated_gib, "graph_estimate_base", "graph_estimate_dense", of_experts=True, first=False),
    ),
    "context_turing": (upper(4 / 5), _context_gib("context_turing")),
    "context_ampere": (upper(4 / 5), _context_gib("context_ampere")),
    "context_hopper": (upper(4 / 5), _context_gib("context_hopper")),
    "context_hopper_since": (upper(4 / 5), _context_gib("context_hopper_since")),
    "connected_context": (middle, _connected_context_gib),
    "peers_counted": (upper(4 / 5), _peers_gib("peers_counted", lambda rules: rules.non_torch_bytes_with_peers)),
    "peers": (upper(4 / 5), _peers_gib("peers", lambda rules: rules.non_torch_bytes_with_peers)),
    "fused_reduce": (upper(3 / 4), _peers_gib("fused_reduce", lambda rules: rules.fused_reduce_bytes)),
    "non_torch_unified": (middle, _non_torch_unified_gib),
    "margin_first": (upper(19 / 20), _missed_gib("margin_first")),
    "margin_captured": (upper(19 / 20), _missed_gib("margin_captured")),
    "sglang_peers": (middle, _sglang_peers_gib),
    "trtllm_context": (middle, _trt_context_gib),
    "trtllm_buffers": (middle, _trt_logit_bytes("trtllm_buffers")),
    "trtllm_first_buffers": (middle, _trt_logit_bytes("trtllm_first_buffers")),
}
