"""Poses what was measured to the engine, and answers with what it would have said."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any, Final

from pydantic import ValidationError

from service.catalog.measurement_rows import Setting
from service.catalog.snapshot import Snapshot
from service.engine.arithmetic import GIB
from service.engine.errors import EngineError
from service.measurements import own_settings
from service.measurements.drafted import with_chance
from service.measurements.keeping import LOADS
from service.measurements.observed import Doubt, Observed, Stored, UnreadableTextError
from service.measurements.reading import read_measurement
from service.measurements.terms import Explanation, Term, changes, distance, distances, terms, worth_telling
from service.questions.asked import Desk
from service.questions.capacity import CAPACITY, OF_LENGTHS, CapacityBody
from service.questions.misread import misread
from service.questions.refusals import Fault, RefusalError

SAME_MEMORY: Final = 0.012  # how far a driver's total is from the catalog's figure of the same card [fraction]
MOST_CANDIDATES: Final = 8
WHOLE: Final = ("pipeline_parallel_size", "data_parallel_size")
SPELLED: Final = frozenset({"model", "gpu", "weight_format"})  # as people write them
OF_A_LOAD: Final = frozenset({"ttft_s.mean", "ttft_s.p50", "tpot_s.mean", "tpot_s.p50", "end_to_end_s.mean"})
TIMED: Final = frozenset({"request_rate_per_s", "ttft_s", "tpot_s", "arrival", "num_prompts"})  # read in time alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A setting that the text states."""

    name: str
    value: Setting
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A measurement beside its prediction."""

    what: str  # whose text it is
    kind: str
    model: str
    gpu: str
    settings: tuple[Said, ...]
    question: Mapping[str, Setting]  # as it was posed to /capacity
    terms: tuple[Term, ...]
    error_fraction: float | None  # mean distance of the terms that judge; None: none of them was measured
    explanations: tuple[Explanation, ...]
    assumptions: tuple[Mapping[str, Any], ...]
    warnings: tuple[str, ...]
    catalog_revision: int
    stored: Stored | None = None  # None: nothing was to be stored


def check(text: str, beside: Mapping[str, Setting], catalog: Snapshot, desk: Desk) -> Checked:
    """Return what a text measured beside what is predicted of it.

    Args:
        text: a start-up log, or a benchmark's result.
        beside: fields of /capacity that the text does not say, or says otherwise; they come first.
        catalog: the catalog to answer from.
        desk: where questions are answered.

    Raises:
        RefusalError: the text is no measurement, or with it alone nothing can be asked.
        EngineError: the engine refuses the question.
    """
    try:
        observed = read_measurement(text)
    except UnreadableTextError as error:
        raise RefusalError("invalid-request", str(error), Fault("text", str(error), error.accepted)) from error
    stated = {**observed.settings, **beside}
    doubts = [each for each in observed.doubts if not any(field in stated for field in each.fields)]
    for doubt in doubts:
        for figure in doubt.figures:
            observed.figures.pop(figure, None)
    asked = _question(observed, beside, doubts, catalog)
    if observed.kind == "start-up log" and not TIMED & asked.keys():
        desk = desk.without_times()  # no term of it is of time, which is most of the work
    asked, own, answer = _as_run(observed, asked, catalog, desk)
    compared = terms(observed.figures, answer)
    now = distance(compared, observed.kind)
    return Checked(
        what=observed.what,
        kind=observed.kind,
        model=answer["model"],
        gpu=answer["gpu"],
        settings=tuple(_said(observed)),
        question=asked,
        terms=compared,
        error_fraction=now,
        explanations=_explained(observed, asked, compared, catalog, desk) if now else (),
        assumptions=own_settings.told(answer["assumptions"], own),
        warnings=(
            *_overruled(observed, beside),
            *(doubt.sentence for doubt in doubts),
            *_failed(compared),
            *own_settings.sampled_otherwise(_body(asked), observed.sampler_line, desk.sources(catalog)),
            *answer["warnings"],
        ),
        catalog_revision=catalog.revision,
    )


def _said(observed: Observed) -> list[Said]:
    lines = observed.setting_lines
    return [Said(name=name, value=value, line=lines.get(name, 1)) for name, value in observed.settings.items()]


def _overruled(observed: Observed, beside: Mapping[str, Setting]) -> Iterator[str]:
    """Yield what a text says otherwise than what was stated beside it, which was compared."""
    for said in _said(observed):
        stated = beside.get(said.name, said.value)
        is_same = str(said.value) == str(stated) or str(said.value).startswith(f"{stated}.")  # 0.31 means 0.31.0 too
        if said.name not in SPELLED and not is_same:
            yield f"line {said.line} says {said.name} {said.value}, and the question {stated}, which was compared"


def _failed(compared: tuple[Term, ...]) -> Iterator[str]:
    """Yield what a start had too little of, which has no share of itself to be off by, beside what was predicted."""
    for term in compared:
        if term.measured < 0 and term.predicted is not None:
            predicted = f"{term.predicted / GIB:.2f} GiB are predicted" if term.predicted > 0 else "none is predicted"
            yield f"line {term.line} says that the start failed for want of {-term.measured / GIB:.2f} GiB; {predicted}"


def _as_run(
    observed: Observed, asked: dict[str, Setting], catalog: Snapshot, desk: Desk
) -> tuple[dict[str, Setting], dict[str, Setting], Mapping[str, Any]]:
    """Return the question with the settings the server ran with, those of them nobody stated, and the answer.

    A benchmark that the engine's own settings leave no room for ran with others, nobody says which.
    """
    answer = _answered(asked, catalog, desk)
    has_failed = any(figure.value < 0 for figure in observed.figures.values())
    own = own_settings.own_settings(_body(asked), answer, desk.sources(catalog), has_failed=has_failed)
    if own:
        as_run = {**asked, **own}
        of_own = _answered(as_run, catalog, desk)
        if of_own["feasible"] or observed.kind == "start-up log":
            return as_run, own, of_own
    return asked, {}, answer


def _question(
    observed: Observed, beside: Mapping[str, Setting], doubts: Sequence[Doubt], catalog: Snapshot
) -> dict[str, Setting]:
    """Return the question that a text poses, with what was stated beside it.

    Raises:
        RefusalError: neither says which model or which GPU.
    """
    asked: dict[str, Setting] = {
        name: value for name, value in observed.settings.items() if name in CAPACITY.fields and name != "weight_format"
    }
    stated_format = observed.settings.get("weight_format")
    if isinstance(stated_format, str) and "weight_format" not in beside:
        asked |= _format(asked, stated_format)
    if any(load in beside for load in LOADS):
        asked = {name: value for name, value in asked.items() if name not in (*LOADS, "burstiness")}
    asked |= beside
    for doubt in doubts:
        asked |= doubt.assumed
    asked |= _spread(observed, asked)
    if observed.kind == "start-up log" and "num_speculative_tokens" in asked:
        asked.setdefault("speculative_acceptance_fraction", 0.0)  # nothing is drafted yet, and no term asks for it
    if observed.kind == "start-up log" and "tensor_parallel_size" in asked:
        asked = dict.fromkeys(WHOLE, 1) | asked  # arguments name what is not the engine's own; other GPUs are copies
    asked = with_chance(asked, observed)
    if str(asked.get("num_speculative_tokens", 0)) != "0" and "speculative_acceptance_fraction" not in asked:
        detail = "the text says that tokens are drafted, and not how likely one of them is accepted"
        raise RefusalError("invalid-request", detail, Fault("question.speculative_acceptance_fraction", detail, "it"))
    is_timed = "num_prompts" in asked or (observed.kind == "benchmark" and OF_A_LOAD & observed.figures.keys())
    if is_timed and not any(load in asked for load in LOADS):
        detail = "the text says neither how many requests ran at once nor their rate"
        raise RefusalError("invalid-request", detail, Fault(f"question.{LOADS[0]}", detail, f"it, or {LOADS[1]}"))
    for field in ("model", "gpu"):
        if field not in asked:
            detail = f"the text does not say which {field} it was"
            raise RefusalError("invalid-request", detail, Fault(field, detail, _candidates(field, observed, catalog)))
    return asked


def _spread(observed: Observed, asked: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return how lengths spread, where totals tell that they do and nobody says how."""
    is_unsaid = observed.lengths_vary and "num_prompts" in asked and not OF_LENGTHS & asked.keys()
    return {"length_distribution": "uniform"} if is_unsaid else {}


def _format(asked: Mapping[str, Setting], stated: str) -> dict[str, Setting]:
    """Return the format that an engine's `quantization` states, where it says one by itself."""
    probe = {"model": "-", "gpu": "-", "weight_format": stated}
    try:
        meant = CapacityBody.model_validate(probe).weight_format
    except ValidationError:
        return {}  # compressed-tensors, modelopt: the checkpoint says what is in it
    return {"weight_format": meant} if meant and "model" in asked else {}


def _candidates(field: str, observed: Observed, catalog: Snapshot) -> str:
    """Return what would be accepted: with the memory that a driver reports, the cards that have as much."""
    total = observed.figures.get("gpu_total_bytes")
    if field == "model" or total is None:
        return f"question.{field}, as /capacity takes it"
    same = (gpu.id for gpu in catalog.gpus.values() if abs(gpu.memory_bytes / total.value - 1) <= SAME_MEMORY)
    listed = ", ".join(list(same)[:MOST_CANDIDATES])
    return f"question.gpu; of this memory: {listed}" if listed else "question.gpu, as /capacity takes it"


def _answered(asked: Mapping[str, Setting], catalog: Snapshot, desk: Desk) -> Mapping[str, Any]:
    return desk.answer(CAPACITY, _body(asked), catalog).document


def _body(asked: Mapping[str, Setting]) -> CapacityBody:
    try:
        return CapacityBody.model_validate(dict(asked))
    except ValidationError as error:
        refusal = misread(error.errors(), CAPACITY.fields)
        faults = (Fault(f"question.{fault.field}", fault.detail, fault.accepted) for fault in refusal.faults)
        raise RefusalError(refusal.kind, refusal.detail, *faults) from error


def _explained(
    observed: Observed, asked: Mapping[str, Setting], compared: Sequence[Term], catalog: Snapshot, desk: Desk
) -> tuple[Explanation, ...]:
    """Return the changes of one setting after which the prediction would be what was measured.

    A change after which less is predicted than without it, as where there is no room for a cache, explains nothing.
    """
    now = distances(compared, observed.kind)
    facts = catalog.model_entries.get(catalog.called_models.read(str(asked["model"])).model_id)
    formats = sorted({each.weight_format for each in facts.checkpoints}) if facts else []
    tried = []
    for change in changes(asked, observed.kind, formats):
        try:
            answer = _answered({**asked, **change}, catalog, desk)
        except (RefusalError, EngineError):
            continue
        left = distances(terms(observed.figures, answer), observed.kind)
        if now.keys() <= left.keys():
            tried.append((change, mean(left.values())))
    return worth_telling(mean(now.values()), tried)


def lines_of(checked: Checked) -> list[str]:
    """Return a check as a person reads it in a terminal."""
    told = [f"{checked.what}: {checked.model} on {checked.gpu}"]
    for term in checked.terms:
        if term.predicted is None or term.error_fraction is None:
            predicted = "not predicted" if term.predicted is None else f"predicted {term.predicted:g}"
            told.append(f"line {term.line}: {term.name} {term.measured:g}, {predicted}")
        else:
            told.append(
                f"line {term.line}: {term.name} {term.measured:g}, predicted {term.predicted:g} "
                f"({100 * term.error_fraction:+.1f} %)"
            )
    for each in checked.explanations:
        change = ", ".join(f"{name}={value}" for name, value in each.change.items())
        told.append(
            f"with {change} the difference is {100 * each.error_fraction:.1f} %, not "
            f"{100 * each.error_fraction_now:.1f} %"
        )
    if checked.stored is not None:
        told.append(
            f"stored as {checked.stored.changes}" if checked.stored.id else f"not stored: {checked.stored.why_not}"
        )
    return [*told, *(f"warning: {sentence}" for sentence in checked.warnings)]


def document_of(checked: Checked) -> dict[str, Any]:
    """Return a check as JSON values."""
    return asdict(checked)
