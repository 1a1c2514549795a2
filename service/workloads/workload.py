"""A named workload: the fields of a question, checked against every question that may be asked about it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import StringConstraints, ValidationError
from rapidfuzz import process

from service.questions.asked import BESIDE_THE_QUESTION, Asked, Question
from service.questions.capacity import CAPACITY
from service.questions.misread import misread
from service.questions.parts.part import CONTRADICTION
from service.questions.recommend import RECOMMEND
from service.questions.refusals import Fault, RefusalError
from service.questions.replicas import REPLICAS
from service.questions.size import SIZE
from service.workloads.errors import NoWorkloadError
from service.workloads.load_from import LoadFrom

WorkloadName = Annotated[str, StringConstraints(max_length=128, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
# What may be asked about a workload.
ASKED_OF_ONE: Final[tuple[Question, ...]] = (SIZE, CAPACITY, RECOMMEND, REPLICAS)
LOAD_FROM: Final = "load_from"
LOADS: Final = frozenset({"concurrent_requests", "request_rate_per_s"})  # one of them is the load
INCOMPLETE: Final = frozenset({"missing", CONTRADICTION})  # what one question lacks, another may not need


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One version of a question under a name."""

    name: str
    version: int
    question: Mapping[str, Any]
    changed_at: datetime

    @property
    def load_from(self) -> LoadFrom | None:
        """Return where its load is read; None where it is stated."""
        stated = self.question.get(LOAD_FROM)
        return None if stated is None else LoadFrom.model_validate(stated)


def asked_of(
    workload: Workload, question: Question, overrides: Mapping[str, Any], *, writing: Mapping[str, Any]
) -> Asked:
    """Return a question about a workload: its own fields, with those of the query string in their place.

    Args:
        workload: whose fields are asked, as far as the question knows them.
        question: which question.
        overrides: fields as the query string states them; a load replaces the load.
        writing: fields that say how the answer is written, unless the query string says so.

    Raises:
        RefusalError: together they are no such question.
    """
    own = _own(workload.question, question)
    if LOADS & overrides.keys():
        own = {name: value for name, value in own.items() if name not in LOADS}
    try:
        return question.body.model_validate({**writing, **own, **overrides})
    except ValidationError as error:
        raise misread(error.errors(), question.fields) from error


def answered_by(
    fields: Mapping[str, Any],
    questions: Sequence[Question] = ASKED_OF_ONE,
    *,
    misnamed: Callable[[], Iterable[Fault]] = tuple,
) -> tuple[str, ...]:
    """Return the names of the questions that these fields are enough for.

    Args:
        fields: what is kept under a name.
        questions: those that may be asked.
        misnamed: finds faults of names that the catalog does not have, told beside all else that is wrong.

    Raises:
        RefusalError: a field is unknown or at fault, or no question can be asked.
    """
    known = _known(questions)
    wrong: list[Any] = [{"type": "extra_forbidden", "loc": (name,)} for name in fields if name not in known]
    source = load_source(fields)
    if source is not None:
        fields = {**fields, source.field: 1}
    errors = {question.name: _fault_in(fields, question) for question in questions}
    answering = tuple(name for name, error in errors.items() if error is None)
    at_fault = [error for error in errors.values() if error is not None]
    told = next((error for error in at_fault if not _is_incomplete(error)), None)
    if told is None and not answering:
        told = at_fault[0]
    wrong += [] if told is None else told.errors()
    if wrong:
        raise misread(wrong, known, misnamed=misnamed())
    return answering


def asked_with(fields: Mapping[str, Any], questions: Sequence[Question] = ASKED_OF_ONE) -> Iterator[Asked]:
    """Yield each of the questions that these fields are enough for."""
    source = load_source(fields)
    if source is not None:
        fields = {**fields, source.field: 1}
    for question in questions:
        with suppress(ValidationError):
            yield question.body.model_validate(_own(fields, question))


def is_asked(workload: Workload, question: Question) -> bool:
    """Return whether a question is asked about a workload: its fields are enough, or at fault, which is then told."""
    source, fields = workload.load_from, workload.question
    error = _fault_in(fields if source is None else {**fields, source.field: 1}, question)
    return error is None or not _is_incomplete(error)


def _fault_in(fields: Mapping[str, Any], question: Question) -> ValidationError | None:
    """Return what a question finds wrong with those of the fields that it knows."""
    try:
        question.body.model_validate(_own(fields, question))
    except ValidationError as error:
        return error
    return None


def _own(fields: Mapping[str, Any], question: Question) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name in question.fields}


def _is_incomplete(error: ValidationError) -> bool:
    return all(fault["type"] in INCOMPLETE for fault in error.errors())


def load_source(fields: Mapping[str, Any]) -> LoadFrom | None:
    """Return where the load is read; None where it is stated.

    Raises:
        RefusalError: that is at fault, or a load is stated as well.
    """
    if LOAD_FROM not in fields:
        return None
    stated = [name for name in fields if name in LOADS]
    if stated:
        detail = f"{stated[0]} and {LOAD_FROM} were both stated"
        raise RefusalError("invalid-request", detail, Fault(LOAD_FROM, detail, "one of them"))
    try:
        return LoadFrom.model_validate(fields[LOAD_FROM])
    except ValidationError as error:
        faults = [{**fault, "loc": (LOAD_FROM, *fault["loc"])} for fault in error.errors()]
        raise misread(faults, tuple(f"{LOAD_FROM}.{name}" for name in LoadFrom.model_fields)) from error


def _known(questions: Sequence[Question]) -> tuple[str, ...]:
    """Return every name that some question knows, without those that say how one answer is written."""
    names = dict.fromkeys((*(name for question in questions for name in question.fields), LOAD_FROM))
    return tuple(name for name in names if name not in BESIDE_THE_QUESTION)


def called(workloads: Mapping[str, Workload], name: str) -> Workload:
    """Return the workload of a name.

    Raises:
        NoWorkloadError: there is none; the nearest names are told.
    """
    if name in workloads:
        return workloads[name]
    close = process.extract(name, list(workloads), limit=3, score_cutoff=70)
    raise NoWorkloadError(name, tuple(near for near, _, _ in close))
