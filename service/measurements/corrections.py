"""What stored measurements change: derived from their figures and what is predicted of their own question."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from math import log
from typing import Any, Final

from pydantic import ValidationError

from service.catalog.engine_rules import rules_for
from service.catalog.measurement_rows import MeasurementEntry
from service.engine.answers.capacity import capacity
from service.engine.answers.results import Capacity
from service.engine.engines.measured_here import Deployment, Measured, MeasuredMemory, MeasuredSteps
from service.engine.engines.rules import EngineRules, as_measured, default_utilization
from service.engine.errors import EngineError
from service.engine.fleet.questions import CapacityQuestion
from service.engine.kept import Kept
from service.measurements.learnt import (
    LEDGER,
    cache_bytes,
    latencies_left,
    memory_left,
    next_steps,
    unexplained_bytes,
    with_terms,
)
from service.questions.capacity import CapacityBody
from service.questions.refusals import RefusalError
from service.questions.sources import Sources

ROUNDS: Final = 8
NEAR_ENOUGH: Final = 0.005  # a difference that another round is not worth [fraction]
MOST_KEPT: Final = 4_096
MOST_UNEXPLAINED: Final = 0.08  # of a GPU's memory: beyond it the text is of another deployment [fraction]
MOST_WEIGHT: Final = 0.25  # of the weights: beyond it they are in another format, or shared otherwise [fraction]
MOST_LEFT: Final = 0.02  # of the pool, which no change explains [fraction]
MOST_FACTOR: Final = 4.0  # of step times: beyond it the text is of another deployment
MOST_TOLD: Final = 1_000.0  # such a factor: a slip of units
LIKELY: Final = "a setting is likely not stated, or stated wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What a measurement changes, or why it changes nothing."""

    measured: Measured | None
    why_not: str = ""


class StoredMeasurements:
    """Derives corrections, and keeps them by what they follow from; implements `Corrections`."""

    def __init__(self) -> None:
        """Start with nothing derived."""
        self._kept: Kept[Learnt] = Kept(MOST_KEPT)

    def of(self, sources: Sources, rules: EngineRules, model_id: str) -> tuple[Measured, ...]:
        """Return what callers measured of a model under an engine's rules."""
        learnt = (
            self.learnt(entry, sources)
            for entry in sources.catalog.measurements.get(model_id, ())
            if _rules_version(entry.question) == rules.rules_version
        )
        return tuple(each.measured for each in learnt if each.measured is not None)

    def learnt(self, entry: MeasurementEntry, sources: Sources) -> Learnt:
        """Return what one measurement changes: the same for the same figures, model and GPU."""
        model, gpu = sources.catalog.built_models.get(entry.model), sources.catalog.gpus.get(entry.gpu)
        if model is None or isinstance(model, EngineError) or gpu is None:
            return Learnt(measured=None, why_not="the catalog has no such model or GPU any more")
        key = (entry.id, model.key, gpu.key, sources.timers is None)
        return self._kept.get_or(key, lambda: _learnt(entry, sources))


def _rules_version(question: Mapping[str, Any]) -> str | None:
    """Return under which rules a question was asked; None where there are none any more."""
    try:
        return rules_for(question.get("engine", "vllm"), question.get("engine_version")).rules_version
    except (EngineError, KeyError):
        return None


def _learnt(entry: MeasurementEntry, sources: Sources) -> Learnt:
    try:
        asked = CapacityBody.model_validate({**entry.question, "use_measurements": False})
        question = asked.looked_up(replace(sources, readings=[]))
        if entry.kind == "start-up log":
            return _memory(entry, replace(question, timers=None))
        return _steps(entry, question)
    except (RefusalError, EngineError, ValidationError) as error:
        return Learnt(measured=None, why_not=f"its question is refused now: {str(error)[:200]}")


def _figures(entry: MeasurementEntry) -> dict[str, float]:
    return {name: figure.value for name, figure in entry.figures.items()}


def _deployment(told: Capacity) -> Deployment:
    return Deployment(
        model=told.model,
        gpu=told.gpu,
        layout=told.layout,
        weight_format=told.weight_format,
        kv_cache_dtype=told.kv_cache_dtype,
    )


def _told(question: CapacityQuestion, measured: Iterable[Measured]) -> tuple[Capacity, dict[str, Any]]:
    told = capacity(replace(question, rules=as_measured(question.rules, tuple(measured))))
    return told, asdict(told)


def _memory(entry: MeasurementEntry, question: CapacityQuestion) -> Learnt:
    """Return by how much a ledger is changed so that it says what the start-up said."""
    told, document = _told(question, ())
    figures = _figures(entry)
    if not LEDGER & figures.keys() and cache_bytes(figures, document) is None:
        return Learnt(measured=None, why_not="it states no term of memory that the ledger has")
    nothing = MeasuredMemory(id=entry.id, source="", of=_deployment(told), error_fraction=0.0)
    change = with_terms(nothing, figures, document)
    if abs(change.weight_bytes) > MOST_WEIGHT * told.memory_per_gpu.weight_bytes:
        part = 100 * (1 + change.weight_bytes / told.memory_per_gpu.weight_bytes)
        ranks = told.layout.tensor_parallel_size
        why = f"its weights are {part:.0f} % of {told.weight_format}'s on {ranks} ranks: {LIKELY}"
        return Learnt(measured=None, why_not=why)
    share = _share(question)
    if question.settings.kv_cache_memory_bytes is None:
        for _ in range(2):
            _, document = _told(question, (change,))
            more = unexplained_bytes(figures, document, share)
            change = replace(change, unexplained_bytes=change.unexplained_bytes + more)
    _, document = _told(question, (change,))
    left = round(memory_left(figures, document), 6)
    part = change.unexplained_bytes / told.memory_per_gpu.total_bytes
    if abs(part) > MOST_UNEXPLAINED or left > MOST_LEFT:
        return Learnt(measured=None, why_not=f"{100 * part:.0f} % of the GPU's memory is not explained: {LIKELY}")
    pool = document["memory_per_gpu"]["kv_cache_bytes"]
    taken = told.memory_per_gpu.kv_cache_bytes - pool
    source = _said_of(entry, change)
    return Learnt(measured=replace(change, error_fraction=left, source=source, cache_bytes=pool, taken_bytes=taken))


def _share(question: CapacityQuestion) -> float:
    """Return what a byte outside the framework takes from the pool. [fraction]."""
    if question.rules.memory_share == "total":
        return 1.0
    stated = question.settings.gpu_memory_utilization
    return default_utilization(question.rules, question.gpu) if stated is None else stated


def _steps(entry: MeasurementEntry, question: CapacityQuestion) -> Learnt:
    """Return the factors with which the simulated benchmark shows what was measured: the best of some rounds."""
    if question.timers is None:
        return Learnt(measured=None, why_not="nobody tells time here")
    told, document = _told(question, ())
    if told.latency is None:
        return Learnt(measured=None, why_not="nobody tells the time of a step on this GPU, or the load is not stated")
    figures = _figures(entry)
    change = MeasuredSteps(id=entry.id, source="", of=_deployment(told), error_fraction=float("inf"))
    best = change
    for _ in range(ROUNDS):
        left = latencies_left(figures, document)
        if left is None:
            return Learnt(measured=None, why_not="it states no latency and no rate that is predicted")
        if left < best.error_fraction:
            best = replace(change, error_fraction=left)
        if left <= NEAR_ENOUGH:
            break
        change = next_steps(change, figures, document)
        _, document = _told(question, (change,))
    factors = best.prefill_factor, best.decode_factor
    if max(factors) > MOST_FACTOR or min(factors) < 1 / MOST_FACTOR:
        return Learnt(measured=None, why_not=f"{_far_off(*factors)}: {LIKELY}")
    return Learnt(measured=replace(best, source=_said_of(entry, best)))


def _far_off(prefill: float, decode: float) -> str:
    """Return which of two factors is further from one, and by how much, to the largest that is worth a figure."""
    name, factor = max(("reading prompts", prefill), ("decoding", decode), key=lambda each: abs(log(each[1])))
    times, word = (factor, "slower") if factor > 1 else (1 / factor, "faster")
    return f"{name} is {'over 1,000' if times > MOST_TOLD else format(times, '.1f')} times {word} than predicted"


def _said_of(entry: MeasurementEntry, change: Measured) -> str:
    """Return whose measurement it is, its rows, and what follows, for a reader."""
    rows = ", ".join(f"line {figure.line} {name} {figure.value:g}" for name, figure in entry.figures.items())
    what = f"measurement {entry.id}, {entry.what} stored on {entry.stored_at:%Y-%m-%d} ({rows})"
    if isinstance(change, MeasuredSteps):
        return (
            f"{what}: prompts x {change.prefill_factor:.3f}, decoding x {change.decode_factor:.3f}, "
            f"{1e3 * change.request_overhead_s:+.0f} ms a request"
        )
    mib = 1 << 20
    return (
        f"{what}: weights {change.weight_bytes / mib:+.0f} MiB, peak x {change.activation_factor:.3f}, non-torch "
        f"{change.non_torch_bytes / mib:+.0f} MiB, graphs x {change.graph_factor:.3f}, unexplained "
        f"{change.unexplained_bytes / mib:+.0f} MiB"
    )
