"""What every question is, and the desk that answers them: the pinned revision, the canonical form, kept answers."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from hashlib import sha256
from itertools import islice
from operator import attrgetter
from threading import Condition
from typing import Annotated, Any, ClassVar, Final, Self

from cachetools import LRUCache, cachedmethod
from pydantic import Field, ModelWrapValidatorHandler, model_validator

from service.catalog.snapshot import Snapshot
from service.engine.fleet.results import Assumption
from service.engine.time.steps import StepTimers
from service.questions.alike import AlikeAnswers
from service.questions.answers import Answer
from service.questions.fields import names_of
from service.questions.misnamed import with_all_names
from service.questions.parts.writing import Writing
from service.questions.refusals import MOST_FAULTS, Fault, RefusalError
from service.questions.remembered import MOST_VALUES, Remembered
from service.questions.sources import UNHEEDED, Corrections, PastedModels, Sources
from service.questions.spoken import Kinds, as_meant, kinds_of
from service.questions.values import WHOLE

MOST_ANSWERS = 4096
MOST_ANSWERS_BYTES = 40 << 20
# Bytes of memory for one of an answer as JSON: the text, and the values it was written from (1.8 on 300 answers of
# `/size` that were let go, by tracemalloc; up to 2.0 of other questions by the sizes of their objects). So 1,000 stay.
BYTES_PER_JSON_BYTE = 3
Key = tuple[str, bytes, int, date]  # a question's name, its canonical form, the catalog's revision, the day
# Neither how an answer is written nor which catalog it must be from changes it.
BESIDE_THE_QUESTION = frozenset({*Writing.model_fields, "catalog_revision"})
OUTSIDE: Final = set(BESIDE_THE_QUESTION)
IN_ORDER: Final = json.JSONEncoder(sort_keys=True).encode


class Asked(Writing, ABC):
    """A question as it was asked: its fields, and its way to an answer."""

    catalog_revision: Annotated[int, Field(ge=0, le=1 << 62), WHOLE] | None = Field(
        default=None, description="answer only from this catalog revision [number]", examples=[1]
    )
    readings: ClassVar[tuple[Assumption, ...]] = ()  # of one that has values understood other than literally, its own
    written_kinds: ClassVar[Kinds] = {}  # of its fields, found when the class is made

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Find out which of the class's fields may be written in more than one way."""
        cls.written_kinds = kinds_of(cls)

    @model_validator(mode="before")
    @classmethod
    def _few_unknown(cls, data: object) -> object:
        """Leave out all but the first unknown fields: they are refused in any case, and there may be very many."""
        if not isinstance(data, dict) or len(data) <= MOST_FAULTS:
            return data
        known = set(names_of(cls))
        unknown = islice((name for name in data if name not in known), MOST_FAULTS)
        return {name: data[name] for name in (*known.intersection(data), *unknown)}

    @model_validator(mode="wrap")
    @classmethod
    def _as_meant(cls, data: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Read values as people write them, and remember what was read so."""
        if not isinstance(data, dict):
            return handler(data)
        meant, readings = as_meant(cls.written_kinds, data)
        asked = handler(meant)
        if readings:
            asked.__dict__["readings"] = readings  # a question is frozen once it is read
        return asked

    @abstractmethod
    def answer(self, sources: Sources) -> Answer[Any]:
        """Look up what was named, compute, and return the answer.

        Raises:
            RefusalError: the question is not answered.
            EngineError: the engine refuses it.
        """

    @property
    def is_of_memory_alone(self) -> bool:
        """Return whether it is answered without step times, for which one may have to wait."""
        return False

    @property
    def kind(self) -> frozenset[str]:
        """Return which fields were stated: questions that state the same ones cost about the same."""
        return frozenset(self.model_fields_set)

    def stated(self) -> dict[str, Any]:
        """Return what was asked, by field, without what is at its default."""
        return self._asked_fields

    def canonical(self) -> str:
        """Return the question as one text: the same for every way to ask the same."""
        return self._canonical

    @cached_property
    def _asked_fields(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude=OUTSIDE, exclude_defaults=True)

    @cached_property
    def _canonical(self) -> str:
        stated, readings = self.stated(), self.readings
        read = [[reading.name, reading.source] for reading in readings]
        return IN_ORDER([stated, read] if read else stated)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question, whole: what HTTP makes routes of, and the command line a command."""

    name: str  # its path, its command, the end of its operation ids
    summary: str
    description: str
    query: type[Asked]  # as a query string states it
    body: type[Asked]  # as a JSON body and a command line state it
    answer: type[Answer[Any]]
    examples: Mapping[str, Mapping[str, Any]]  # questions that can be pasted, by name: summary and value
    abridged: Mapping[str, Any]  # what an answer looks like

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the names of every field, as a caller writes them."""
        return names_of(self.body)


def key_of(question: Question, asked: Asked, catalog: Snapshot, today: date) -> Key:
    """Return what an answer is kept under: everything it depends on."""
    return question.name, sha256(asked.canonical().encode()).digest(), catalog.revision, today


def check_revision(asked: Asked, catalog: Snapshot) -> None:
    """Hold a question to the revision it wants its answer from.

    Raises:
        RefusalError: it is another one.
    """
    pinned = asked.catalog_revision
    if pinned is not None and pinned != catalog.revision:
        detail = f"the catalog is at revision {catalog.revision}"
        raise RefusalError("other-revision", detail, Fault("catalog_revision", detail, str(catalog.revision)))


def unheeded(readings: Iterable[Assumption]) -> tuple[str, ...]:
    """Return what a name says that decides nothing, by field: a caller may count on it."""
    told = dict.fromkeys((each.name, each.source) for each in readings if each.source and UNHEEDED in each.source)
    return tuple(f"{field}: {source}: gpu_count of /capacity does, and tensor_parallel_size" for field, source in told)


class Desk:
    """Answers questions, and keeps the answers: the same question on the same catalog is computed once."""

    def __init__(
        self,
        timers: StepTimers | None,
        *,
        corrections: Corrections | None = None,
        most_answers: int = MOST_ANSWERS,
        most_bytes: int = MOST_ANSWERS_BYTES,
        most_values: int = MOST_VALUES,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        """Start without any answer; at most so many are kept, of so many bytes in all, each for its day.

        Of models, so many values are remembered.
        """
        share = most_bytes // most_answers
        self.kept: LRUCache[Key, Answer[Any]] = LRUCache(
            most_bytes, getsizeof=lambda answer: max(share, BYTES_PER_JSON_BYTE * len(answer.json))
        )
        self.waiting = Condition()
        self._timers, self._corrections = timers, corrections
        self._today = today
        self._pasted_models, self._alike, self._remembered = PastedModels(), AlikeAnswers(), Remembered(most_values)
        self._revision = 0

    def answer(self, question: Question, asked: Asked, catalog: Snapshot) -> Answer[Any]:
        """Return the answer from one catalog; the same question asked meanwhile waits for this one.

        Raises:
            RefusalError: another revision is pinned, or the question is not answered.
            EngineError: the engine refuses it.
        """
        check_revision(asked, catalog)
        self._forget_what_was_taken_back(catalog.revision)
        return self._answer(question, asked, catalog, self._today())

    def new_answer(self, key: Key, asked: Asked, catalog: Snapshot) -> Answer[Any]:
        """Return the answer that is to be kept under a key, waiting for nobody who may be computing the same.

        Raises:
            RefusalError: the question is not answered.
            EngineError: the engine refuses it.
        """
        answer = self._computed(asked, catalog, key[-1])
        with self.waiting, suppress(ValueError):  # it is larger than all that is kept
            self.kept[key] = answer
        return answer

    def key(self, question: Question, asked: Asked, catalog: Snapshot) -> Key:
        """Return what an answer of today is kept under."""
        return key_of(question, asked, catalog, self._today())

    def kept_answer(self, key: Key, catalog: Snapshot) -> Answer[Any] | None:
        """Return an answer that was computed before; None where none was, or it was forgotten."""
        self._forget_what_was_taken_back(catalog.revision)
        with self.waiting:
            return self.kept.get(key)

    def _forget_what_was_taken_back(self, revision: int) -> None:
        """Forget everything when revisions go backwards: a restored database counts on from there, otherwise."""
        if revision < self._revision:
            with self.waiting:
                self.kept.clear()
            self._alike = AlikeAnswers()
        self._revision = revision

    def sources(self, catalog: Snapshot, today: date | None = None) -> Sources:
        """Return what questions look things up in, on one catalog."""
        return Sources(
            catalog=catalog,
            timers=self._timers,
            pasted_models=self._pasted_models,
            corrections=self._corrections,
            alike=self._alike,
            today=today or self._today(),
        )

    def without_times(self) -> "Desk":
        """Return a desk that answers of memory alone, and corrects as this one does."""
        return Desk(None, corrections=self._corrections, today=self._today)

    @cachedmethod(
        attrgetter("kept"),
        key=lambda _self, question, asked, catalog, today: key_of(question, asked, catalog, today),
        condition=attrgetter("waiting"),
    )
    def _answer(self, _question: Question, asked: Asked, catalog: Snapshot, today: date) -> Answer[Any]:
        return self._computed(asked, catalog, today)

    def _computed(self, asked: Asked, catalog: Snapshot, today: date) -> Answer[Any]:
        sources = self.sources(catalog, today)
        try:
            answer = asked.answer(sources)
        except RefusalError as refusal:
            raise with_all_names(refusal, asked.stated(), catalog) from refusal
        finally:
            self._remembered.note(sources.asked_about)
        readings = [*sources.readings, *asked.readings]
        told = answer.with_readings(readings, unheeded(readings))
        # A pasted config may have a megabyte, and is not echoed.
        told.asked = {name: value for name, value in asked.stated().items() if not isinstance(value, dict)}
        return told
