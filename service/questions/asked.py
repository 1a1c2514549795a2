"""What every question is, and the desk that answers them: the pinned revision, the canonical form, kept answers."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from operator import attrgetter
from threading import Condition
from typing import Annotated, Any

from cachetools import LRUCache, cachedmethod
from pydantic import Field, model_validator

from service.catalog.snapshot import Snapshot
from service.engine.time.steps import StepTimers
from service.questions.answers import Answer
from service.questions.fields import names_of
from service.questions.parts.writing import Writing
from service.questions.refusals import MOST_FAULTS, Fault, RefusalError
from service.questions.sources import PastedModels, Sources
from service.questions.values import WHOLE

MOST_ANSWERS = 4096
MOST_ANSWERS_BYTES = 64 << 20
# Bytes of memory for one of an answer as JSON: the text, and the values it was written from (8.1 on 90 answers).
BYTES_PER_JSON_BYTE = 8
# Neither how an answer is written nor which catalog it must be from changes it.
BESIDE_THE_QUESTION = frozenset({*Writing.model_fields, "catalog_revision"})


class Asked(Writing, ABC):
    """A question as it was asked: its fields, and its way to an answer."""

    catalog_revision: Annotated[int, Field(ge=0, le=1 << 62), WHOLE] | None = Field(
        default=None, description="answer only from this catalog revision", examples=[1]
    )

    @model_validator(mode="before")
    @classmethod
    def _few_unknown(cls, data: object) -> object:
        """Leave out all but the first unknown fields: they are refused in any case, and there may be very many."""
        if not isinstance(data, dict) or len(data) <= MOST_FAULTS:
            return data
        known = set(names_of(cls))
        unknown = islice((name for name in data if name not in known), MOST_FAULTS)
        return {name: data[name] for name in (*known.intersection(data), *unknown)}

    @abstractmethod
    def answer(self, sources: Sources) -> Answer[Any]:
        """Look up what was named, compute, and return the answer.

        Raises:
            RefusalError: the question is not answered.
            EngineError: the engine refuses it.
        """

    def canonical(self) -> str:
        """Return the question as one text: the same for every way to ask the same."""
        stated = self.model_dump(by_alias=True, exclude=set(BESIDE_THE_QUESTION), exclude_defaults=True)
        return json.dumps(stated, sort_keys=True)


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


class Desk:
    """Answers questions, and keeps the answers: the same question on the same catalog is computed once."""

    def __init__(
        self, timers: StepTimers | None, *, most_answers: int = MOST_ANSWERS, most_bytes: int = MOST_ANSWERS_BYTES
    ) -> None:
        """Start without any answer; at most so many are kept, of so many bytes in all."""
        share = most_bytes // most_answers
        self.kept: LRUCache[tuple[str, bytes, int], Answer[Any]] = LRUCache(
            most_bytes, getsizeof=lambda answer: max(share, BYTES_PER_JSON_BYTE * len(answer.json))
        )
        self.waiting = Condition()
        self._timers = timers
        self._pasted_models = PastedModels()
        self._revision = 0

    def answer(self, question: Question, asked: Asked, catalog: Snapshot) -> Answer[Any]:
        """Return the answer from one catalog; the same question asked meanwhile waits for this one.

        Raises:
            RefusalError: another revision is pinned, or the question is not answered.
            EngineError: the engine refuses it.
        """
        pinned = asked.catalog_revision
        if pinned is not None and pinned != catalog.revision:
            detail = f"the catalog is at revision {catalog.revision}"
            raise RefusalError("other-revision", detail, Fault("catalog_revision", detail, str(catalog.revision)))
        self._forget_what_was_taken_back(catalog.revision)
        return self._answer(question, asked, catalog)

    def _forget_what_was_taken_back(self, revision: int) -> None:
        """Forget everything when revisions go backwards: a restored database counts on from there, otherwise."""
        if revision < self._revision:
            with self.waiting:
                self.kept.clear()
        self._revision = revision

    @cachedmethod(
        attrgetter("kept"),
        key=lambda _self, question, asked, catalog: (
            question.name,
            sha256(asked.canonical().encode()).digest(),
            catalog.revision,
        ),
        condition=attrgetter("waiting"),
    )
    def _answer(self, _question: Question, asked: Asked, catalog: Snapshot) -> Answer[Any]:
        answer = asked.answer(Sources(catalog=catalog, timers=self._timers, pasted_models=self._pasted_models))
        answer.asked = json.loads(asked.canonical())
        return answer
