"""What every answer is: the engine's result with the catalog revision. Each block is written once, in the engine."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from service.engine.fleet.results import Assumption

Row = Mapping[str, Any]
REVISION = "catalog_revision"
REVISION_STANDS_BEFORE = "rules_version"


class Result(Protocol):
    """What the engine returns for a question: a dataclass that says whether there is a number to read."""

    @property
    def feasible(self) -> bool:
        """Return whether the question has an answer to act on."""


ResultT = TypeVar("ResultT", bound=Result)


class Answer(ABC, Generic[ResultT]):
    """An answer of one question; `class ToyAnswer(Answer[Toy])` has the fields of the dataclass `Toy`.

    `body` is what the contract shows of it. No field has a default, so that generated clients see every one as present.
    """

    body: ClassVar[type[BaseModel]]
    is_scaled_by: ClassVar[bool] = False  # autoscalers read a number out of its JSON

    def __init_subclass__(cls) -> None:
        """Make the body of the result's fields."""
        super().__init_subclass__()
        (result,) = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]
        cls.body = _body_of(cls, result)

    def __init__(self, result: ResultT, catalog_revision: int, json: str | None = None) -> None:
        """Keep the result, and its JSON where somebody has written it."""
        self._make: Callable[[], ResultT] = lambda: result
        self.catalog_revision = catalog_revision
        if json is not None:
            self.__dict__["json"] = json
        self.asked: Mapping[str, Any] = {}

    @classmethod
    def written(cls, make: Callable[[], ResultT], json: str, catalog_revision: int) -> Self:
        """Return an answer whose JSON is written, and whose result is made when somebody looks into it."""
        answer = cls.__new__(cls)
        answer._make, answer.catalog_revision, answer.asked = make, catalog_revision, {}
        answer.__dict__["json"] = json
        return answer

    @cached_property
    def result(self) -> ResultT:
        """Return what the engine found."""
        return self._make()

    @cached_property
    def json(self) -> str:
        """Return the answer as JSON, written when it is first asked for."""
        stated = {name: getattr(self.result, name) for name in self.body.model_fields if name != REVISION}
        return self.body(**stated, catalog_revision=self.catalog_revision).model_dump_json()

    def with_readings(self, readings: Sequence[Assumption], warned: Sequence[str] = ()) -> Self:
        """Return the answer with what was understood other than literally at the head of what it rests on."""
        if not readings or "assumptions" not in self.body.model_fields:
            return self
        result: Any = self.result
        warned = warned if "warnings" in self.body.model_fields else ()
        return self._resting_on((*dict.fromkeys(readings), *result.assumptions), warned)

    def with_measured(self, measured: Sequence[Assumption], warned: Sequence[str] = ()) -> Self:
        """Return the answer with what was measured in the place of what the question then stated, and its warnings."""
        if not measured:
            return self
        names = {assumption.name for assumption in measured}
        rest: Any = self.result
        assumptions = (*measured, *(stated for stated in rest.assumptions if stated.name not in names))
        return self._resting_on(assumptions, warned)

    def _resting_on(self, assumptions: Sequence[Assumption], warned: Sequence[str] = ()) -> Self:
        result: Any = self.result
        changed = replace(result, assumptions=tuple(assumptions))
        if warned:
            changed = replace(changed, warnings=(*warned, *result.warnings))
        answer = type(self)(changed, self.catalog_revision)
        answer.asked = self.asked
        return answer

    def asked_rows(self) -> Sequence[Row]:
        """Return the rows, each with the question that was asked, and what the whole answer warns of."""
        scalars = {f"asked.{name}": value for name, value in self.asked.items()}
        told = {
            name: " ".join(map(str, value)) if isinstance(value, list) else value for name, value in scalars.items()
        }
        warned = {"warnings": "; ".join(self.document["warnings"])} if "warnings" in self.document else {}
        return [{**row, **(warned if "warnings" not in row else {}), **told} for row in self.rows()]

    def asked_line(self) -> str:
        """Return the question on one line, as a query string states it."""
        stated = (f"{name}={_as_asked(value)}" for name, value in self.asked.items() if not isinstance(value, list))
        lists = (
            f"{name}={value}" for name, values in self.asked.items() if isinstance(values, list) for value in values
        )
        return f"asked: {'&'.join((*stated, *lists))}"

    @property
    def digest(self) -> str:
        """Return what tells this question from every other: a part of the hash of what was asked."""
        asked = json.dumps([type(self).__name__, self.asked], sort_keys=True)
        return sha256(asked.encode()).hexdigest()[:12]

    @property
    def document(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        document: dict[str, Any] = json.loads(self.json)
        return document

    @property
    def is_feasible(self) -> bool:
        """Return whether there is a number to read."""
        return self.result.feasible

    def why_none(self) -> Sequence[str]:
        """Return what would make the question feasible, or why each option was left out."""
        result: Any = self.result
        left_out = [f"{each.gpu}: {each.reason}" for each in getattr(result, "rejected", ())]
        return (*getattr(result, "would_fit", ()), *left_out)

    @abstractmethod
    def rows(self) -> Sequence[Row]:
        """Return what a spreadsheet wants: flat rows with the same columns."""

    @abstractmethod
    def lines(self) -> Sequence[str]:
        """Return the answer as a person reads it in a terminal."""

    def gauges(self) -> Iterator[tuple[str, float]]:
        """Yield every number with its path, as a monitor reads it."""
        return numbers(self.document)

    def groups(self) -> Iterator[tuple[Mapping[str, str], Iterator[tuple[str, float]]]]:
        """Yield the numbers in groups, each with what a monitor tells it from the answer's others by."""
        yield {}, self.gauges()

    def labels(self) -> dict[str, str]:
        """Return what a monitor tells the answers apart by."""
        document = self.document
        return {name: document[name] for name in ("model", "gpu") if name in document}


def _body_of(answer: type, result: type) -> type[BaseModel]:
    """Return the model of a body: the result's fields, and the revision before the rules' version, or last."""
    types = get_type_hints(result)
    blocks: dict[str, Any] = {field.name: (types[field.name], ...) for field in fields(result)}
    last = {name: blocks.pop(name) for name in (REVISION_STANDS_BEFORE,) if name in blocks}
    body: type[BaseModel] = create_model(
        answer.__name__,
        __config__=ConfigDict(frozen=True, protected_namespaces=()),
        __doc__=answer.__doc__,
        __module__=answer.__module__,
        **(blocks | {REVISION: (int, ...)} | last),
    )
    return body


def flat(document: Row, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every scalar with its dotted path; lists are left to their own formats."""
    for name, value in document.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            yield f"{prefix}{name}", value


def numbers(document: Row) -> Iterator[tuple[str, float]]:
    """Yield every number with its dotted path; true is 1."""
    return ((path, float(value)) for path, value in flat(document) if isinstance(value, int | float))


def _as_asked(value: object) -> str:
    """Return a value as a query string states it: a truth as JSON writes it.

    >>> _as_asked(True), _as_asked(0.5)
    ('true', '0.5')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)
