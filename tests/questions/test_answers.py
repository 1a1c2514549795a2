"""An answer is the engine's result and the revision, in the contract's order."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import get_args

import pytest

from service.questions.answers import Answer, Row, flat, numbers
from service.questions.asked import Question
from service.questions.registry import QUESTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A block."""

    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A result."""

    feasible: bool
    gpu: str
    part: Part | None
    share: float
    rules_version: str


class FoundAnswer(Answer[Found]):
    """What was found."""

    def rows(self) -> Sequence[Row]:
        return [self.document]

    def lines(self) -> Sequence[str]:
        return []


ANSWER = FoundAnswer(Found(feasible=True, gpu="h100", part=Part(size_bytes=3), share=1, rules_version="v"), 7)


def test_the_json_is_the_result_with_the_revision_before_the_rules_version() -> None:
    assert ANSWER.json == (
        '{"feasible":true,"gpu":"h100","part":{"size_bytes":3},"share":1.0,"catalog_revision":7,"rules_version":"v"}'
    )
    assert ANSWER.document["part"] == {"size_bytes": 3}


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_every_answer_has_the_fields_of_its_result(question: Question) -> None:
    (result,) = get_args(question.answer.__orig_bases__[0])  # type: ignore[attr-defined]

    names = [field.name for field in fields(result)]
    at = names.index("rules_version")
    assert list(question.answer.body.model_fields) == [*names[:at], "catalog_revision", *names[at:]]
    assert all(info.is_required() for info in question.answer.body.model_fields.values())


def test_scalars_are_told_by_their_paths_and_lists_are_not() -> None:
    document = {"a": 1, "b": {"c": None, "d": {"e": "x"}}, "f": [1], "g": True}

    assert dict(flat(document)) == {"a": 1, "b.c": None, "b.d.e": "x", "g": True}
    assert dict(numbers(document)) == {"a": 1.0, "g": 1.0}


def test_a_monitor_tells_answers_apart_by_what_they_name() -> None:
    assert ANSWER.labels() == {"gpu": "h100"}
    assert dict(ANSWER.gauges()) == {"feasible": 1, "part.size_bytes": 3, "share": 1, "catalog_revision": 7}
