"""The desk: pinned revisions, the canonical form, and answers that are computed once and kept within bounds."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.questions.answers import Answer, Row
from service.questions.asked import BYTES_PER_JSON_BYTE, Asked, Desk, Question
from service.questions.refusals import MOST_FAULTS, RefusalError
from service.questions.registry import QUESTIONS
from service.questions.size import SIZE
from service.questions.sources import Sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How often anything was computed."""

    feasible: bool
    times: int
    padding: str


class CountAnswer(Answer[Counted]):
    """How often."""

    def rows(self) -> Sequence[Row]:
        return [self.document]

    def lines(self) -> Sequence[str]:
        return [str(self.result.times)]


TIMES: list[float] = []


class Count(Asked):
    """How often was anything computed?"""

    name: str = "a"
    length: int = 0
    seconds: float = 0.0

    def answer(self, sources: Sources) -> CountAnswer:
        TIMES.append(self.seconds)
        time.sleep(self.seconds)
        result = Counted(feasible=True, times=len(TIMES), padding="x" * self.length)
        return CountAnswer(result, sources.catalog.revision)


COUNT = Question(
    name="count", summary="", description="", query=Count, body=Count, answer=CountAnswer, examples={}, abridged={}
)


def times(desk: Desk, catalog: Snapshot, **asked: Any) -> int:
    """Return how often anything had been computed when this answer was."""
    counted = desk.answer(COUNT, Count(**asked), catalog).result
    assert isinstance(counted, Counted)
    return counted.times


def test_the_same_question_is_computed_once_however_it_is_written(catalog: Snapshot) -> None:
    desk = Desk(None)

    first = times(desk, catalog, name="same")

    assert times(desk, catalog, name="same", format="csv", field="times", catalog_revision=0, length=0) == first
    assert times(desk, catalog, name="other") != first


def test_a_new_revision_is_answered_anew_and_an_older_one_forgets_what_came_after(catalog: Snapshot) -> None:
    desk = Desk(None)
    fifth, sixth = replace(catalog, revision=5), replace(catalog, revision=6)

    at_five, at_six = times(desk, fifth), times(desk, sixth)
    restored = times(desk, fifth)

    assert at_five < at_six < restored
    assert times(desk, sixth) > restored


def test_another_revision_than_the_pinned_one_is_refused_even_of_a_kept_answer(catalog: Snapshot) -> None:
    desk = Desk(None)
    times(desk, catalog, name="kept")

    with pytest.raises(RefusalError) as refused:
        times(desk, catalog, name="kept", catalog_revision=catalog.revision + 1)

    assert (refused.value.kind, refused.value.faults[0].field) == ("other-revision", "catalog_revision")
    assert refused.value.faults[0].accepted == str(catalog.revision)


def test_one_answer_is_forgotten_at_a_time_the_least_lately_asked_first(catalog: Snapshot) -> None:
    desk = Desk(None, most_answers=3)
    kept = {name: times(desk, catalog, name=name) for name in ("a", "b", "c")}
    assert times(desk, catalog, name="a") == kept["a"]

    times(desk, catalog, name="d")

    assert len(desk.kept) == 3
    assert times(desk, catalog, name="a") == kept["a"]
    assert times(desk, catalog, name="c") == kept["c"]
    assert times(desk, catalog, name="b") != kept["b"]


def test_kept_answers_are_bounded_by_their_bytes(catalog: Snapshot) -> None:
    most_bytes = 20 * BYTES_PER_JSON_BYTE * 1000
    desk = Desk(None, most_answers=1000, most_bytes=most_bytes)

    for number in range(50):
        times(desk, catalog, name=str(number), length=1000)

    assert 15 <= len(desk.kept) < 20
    assert sum(BYTES_PER_JSON_BYTE * len(answer.json) for answer in desk.kept.values()) <= most_bytes
    times(desk, catalog, name="larger than everything", length=30_000)
    assert 15 <= len(desk.kept) < 20


def test_a_question_asked_by_many_at_once_is_computed_once(catalog: Snapshot) -> None:
    desk = Desk(None)
    answered: list[int] = []
    threads = [
        threading.Thread(target=lambda: answered.append(times(desk, catalog, name="many", seconds=0.2)))
        for _ in range(8)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(answered) == 8
    assert len(set(answered)) == 1


def test_defaults_stated_or_not_are_one_question() -> None:
    question = {"model": "m", "gpu": "g", "concurrent_requests": 1, "input_tokens": 1, "output_tokens": 1}

    plain = SIZE.query.model_validate(question)
    stated = SIZE.body.model_validate({**question, "percentile": 95, "engine": "vllm", "format": "yaml"})

    assert plain.canonical() == stated.canonical()
    assert plain.canonical() != SIZE.query.model_validate({**question, "percentile": 99}).canonical()


def test_of_very_many_unknown_fields_a_few_are_read() -> None:
    many = {f"unknown_{number}": "x" for number in range(100_000)}

    with pytest.raises(ValueError, match="unknown_0") as refused:
        Count.model_validate({**many, "length": "x"})

    errors = refused.value.errors()  # type: ignore[attr-defined]
    assert len(errors) == MOST_FAULTS + 1
    assert errors[0]["loc"] == ("length",)


def test_an_answer_is_kept_for_its_day(catalog: Snapshot) -> None:
    days = iter([date(2026, 11, 1), date(2026, 11, 1), date(2026, 11, 2)])
    desk = Desk(None, today=lambda: next(days))

    first, again, tomorrow = (times(desk, catalog, name="dated") for _ in range(3))

    assert first == again != tomorrow


@pytest.mark.parametrize(("gpu", "is_told"), [("4xh100", True), ("h100", False), ("p5.4xlarge", False)])
def test_a_count_in_a_name_that_decides_nothing_is_warned_of(catalog: Snapshot, gpu: str, *, is_told: bool) -> None:
    fields = {"model": "llama-3.1-8b", "gpu": gpu, "concurrent_requests": 1, "input_tokens": 9, "output_tokens": 9}
    for name in ("size", "replicas"):
        question = next(each for each in QUESTIONS if each.name == name)
        for _ in range(2):  # the second time it is remembered
            told = Desk(timers=None).answer(question, question.body.model_validate(fields), catalog)
            warned = [each for each in told.document["warnings"] if each.startswith("gpu: ")]
            assert [("the count of 4 decides nothing here" in each) for each in warned] == [True] * is_told
