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
from service.engine.engines.rules import gib, has_unified_memory
from service.engine.formats.elements import HALF_BYTES
from service.engine.memory.activation import (
    activation_bytes,
    forward_bytes,
    kept_bytes,
    sampled_logits,
    workspace_bytes,
)
from service.engine.memory.ledger import largest_captured_batch, non_torch_bytes

STARTUPS = "vllm_startups.jsonl"
SIGNIFICANT_DIGITS = 2
PRINTED_DECIMALS = 3
PRINTED_ESTIMATE = re.compile(r"([\d.]+) GiB \(estimated\)")
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
    text = (folder / STARTUPS).read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines() if line.strip()]
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
    return "\n".join([*lines, f"counted in the engines' sources, not fitted: {', '.join(stated)}"]) + "\n"


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
    sampler = constants()["logit_bytes_sorting"].value * sampled_logits(startup.architecture, startup.settings)
    forward = forward_bytes(startup.architecture, startup.layout, startup.settings)
    workspace = workspace_bytes(startup.architecture, startup.layout, startup.settings, startup.rules)
    return sampler > forward + workspace


def _is_sorting(startup: Startup) -> bool:
    """Return whether the version sorts; where none is stated, whether the row that stands in for it does."""
    rules = startup.rules.also_holds_for or startup.rules
    return rules.sampler_bytes_per_logit == constants()["logit_bytes_sorting"].value


def _sorted_logit_bytes(startup: Startup) -> float | None:
    """(activation - kept) / logits, where the sorting sampler is the peak."""
    logged = startup.row.get("activation_peak_gib")
    if not logged or not _is_sorting(startup) or not _sampler_dominates(startup):
        return None
    kept = kept_bytes(startup.architecture, startup.settings, startup.rules)
    return float((logged * GIB - kept) / sampled_logits(startup.architecture, startup.settings))


def _hidden_copies(startup: Startup) -> float | None:
    """(activation - sampler) / (batch x hidden x 2), on the same rows."""
    logged = startup.row.get("activation_peak_gib")
    if not logged or not _is_sorting(startup) or not _sampler_dominates(startup):
        return None
    sampler = constants()["logit_bytes_sorting"].value * sampled_logits(startup.architecture, startup.settings)
    row_bytes = startup.architecture.hidden_size * startup.architecture.residual_streams * HALF_BYTES
    return float((logged * GIB - sampler) / (startup.settings.max_num_batched_tokens * row_bytes))


def _captured_gib(startup: Startup) -> float | None:
    """What capturing took; adapters double it, and a negative figure is memory freed meanwhile."""
    logged = startup.row.get("cuda_graph_gib") or 0
    has_adapters = "LoRA" in str(startup.row.get("notes"))
    return None if logged <= 0 or has_adapters or startup.rules.engine != "vllm" else float(logged)


def _graph_base_gib(startup: Startup) -> float | None:
    return None if startup.architecture.num_expert_layers else _captured_gib(startup)


def _graph_dense_kib(startup: Startup) -> float | None:
    """(graphs - base) / (layers x largest captured batch), dense models."""
    captured = _graph_base_gib(startup)
    if captured is None:
        return None
    above_kib = (captured - constants()["graph_base"].value) * KIB * KIB
    return above_kib / (len(startup.architecture.layers) * largest_captured_batch(startup.settings))


def _graph_expert_kib(startup: Startup) -> float | None:
    """(graphs - base - dense layers) / (layers of experts x largest captured batch)."""
    captured, experts = _captured_gib(startup), startup.architecture.num_expert_layers
    if captured is None or not experts:
        return None
    sizes = largest_captured_batch(startup.settings)
    dense_kib = (len(startup.architecture.layers) - experts) * sizes * constants()["graph_dense_layer"].value
    return ((captured - constants()["graph_base"].value) * KIB * KIB - dense_kib) / (experts * sizes)


def _unexplained_gib(startup: Startup) -> float | None:
    """Budget - weights - activation - cache: graphs and non-torch, and what the other terms miss."""
    cache = logged_cache_gib(startup.row)
    if cache is None or startup.rules.memory_share != "total" or not is_recent(startup):
        return None
    budget = startup.settings.gpu_memory_utilization * startup.gpu.memory_bytes
    peak = activation_bytes(startup.architecture, startup.layout, startup.settings, startup.rules)
    return float((budget - startup.rank_weight_bytes - peak) / GIB - cache)


def _non_torch_base_gib(name: str) -> Sample:
    """What a budget leaves unexplained on one GPU, or the figure as printed where it holds graphs too."""

    def sample(startup: Startup) -> float | None:
        rules, is_alone = startup.rules, startup.layout.tensor_parallel_size == 1
        if (
            rules.non_torch_base_bytes != gib(constants()[name].value)
            or not is_alone
            or has_unified_memory(startup.gpu)
        ):
            return None
        logged = startup.row.get("non_torch_gib") if is_recent(startup) else None
        return logged if rules.graph_accounting == "inside" else _unexplained_gib(startup)

    return sample


def _non_torch_unified_gib(startup: Startup) -> float | None:
    """Return what is unexplained beyond one GPU's share where the host draws on the same memory."""
    is_alone = startup.layout.tensor_parallel_size == 1 and startup.rules.graph_accounting == "outside"
    unexplained = _unexplained_gib(startup) if is_alone and has_unified_memory(startup.gpu) else None
    return None if unexplained is None else unexplained - startup.rules.non_torch_base_bytes / GIB


def _non_torch_peers_gib(name: str) -> Sample:
    """Logged non-torch memory - one GPU's share, for the versions that use a constant."""

    def sample(startup: Startup) -> float | None:
        logged = startup.row.get("non_torch_gib")
        if not logged or startup.layout.tensor_parallel_size == 1 or not is_recent(startup):
            return None
        if startup.rules.non_torch_bytes_with_peers != gib(constants()[name].value):
            return None
        return float(logged) - startup.rules.non_torch_base_bytes / GIB

    return sample


def _graph_estimate_kib(startup: Startup) -> float | None:
    """(estimate - base - layers) / largest captured batch, for dense models with graphs inside the budget."""
    if startup.rules.graph_accounting != "inside" or startup.architecture.num_expert_layers:
        return None
    estimate = _estimated_gib(startup)
    if estimate is None:
        return None
    sizes = largest_captured_batch(startup.settings)
    above_kib = (estimate - startup.rules.graph_base_bytes / GIB) * KIB * KIB
    return above_kib / sizes - len(startup.architecture.layers) * constants()["graph_dense_layer"].value


def _estimated_gib(startup: Startup) -> float | None:
    """Return the engine's estimate of its graphs: as printed, or what its budget implies."""
    if printed := PRINTED_ESTIMATE.search(str(startup.row.get("quote") or "")):
        return float(printed[1])
    unexplained = _unexplained_gib(startup)
    return (
        None if unexplained is None else unexplained - non_torch_bytes(startup.gpu, startup.layout, startup.rules) / GIB
    )


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
    "logit_bytes_sorting": (middle, _sorted_logit_bytes),
    "hidden_copies": (middle, _hidden_copies),
    "graph_base": (min, _graph_base_gib),
    "graph_dense_layer": (middle, _graph_dense_kib),
    "graph_expert_layer": (upper(3 / 4), _graph_expert_kib),
    "graph_estimate_size": (upper(2 / 3), _graph_estimate_kib),
    "non_torch_base_first": (upper(3 / 4), _non_torch_base_gib("non_torch_base_first")),
    "non_torch_base": (middle, _non_torch_base_gib("non_torch_base")),
    "non_torch_peers_counted": (upper(3 / 4), _non_torch_peers_gib("non_torch_peers_counted")),
    "non_torch_peers": (upper(3 / 4), _non_torch_peers_gib("non_torch_peers")),
    "non_torch_unified": (middle, _non_torch_unified_gib),
    "sglang_peers": (middle, _sglang_peers_gib),
    "trtllm_context": (middle, _trt_context_gib),
    "trtllm_buffers": (middle, _trt_logit_bytes("trtllm_buffers")),
    "trtllm_first_buffers": (middle, _trt_logit_bytes("trtllm_first_buffers")),
}
