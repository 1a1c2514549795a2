"""Answers, kept: the same question on the same catalog is computed once."""

import json
from functools import lru_cache

from service.api.answers import CapacityAnswer, RecommendAnswer, SizeAnswer
from service.api.lookups import capacity_question, recommend_question, size_question
from service.api.questions import (
    CapacityBody,
    CapacityQuery,
    Question,
    RecommendBody,
    RecommendQuery,
    SizeBody,
    SizeQuery,
)
from service.catalog.snapshot import Snapshot
from service.engine.answers.capacity import capacity
from service.engine.answers.recommend import recommend
from service.engine.answers.size import size
from service.engine.time.steps import StepTimers

MOST_ANSWERS = 256
# How an answer is written does not change it.
WRITING = frozenset({"format", "field"})


def sized(query: SizeQuery | SizeBody, snapshot: Snapshot, timers: StepTimers) -> SizeAnswer:
    """Return the answer to `/size`."""
    return _sized(_canonical(query), snapshot, timers)


def capacity_found(query: CapacityQuery | CapacityBody, snapshot: Snapshot, timers: StepTimers) -> CapacityAnswer:
    """Return the answer to `/capacity`."""
    return _capacity_found(_canonical(query), snapshot, timers)


def recommended(query: RecommendQuery | RecommendBody, snapshot: Snapshot, timers: StepTimers) -> RecommendAnswer:
    """Return the answer to `/recommend`."""
    return _recommended(_canonical(query), snapshot, timers)


def _canonical(query: Question) -> str:
    return json.dumps(query.model_dump(by_alias=True, exclude=set(WRITING), exclude_unset=True), sort_keys=True)


@lru_cache(maxsize=MOST_ANSWERS)
def _sized(canonical: str, snapshot: Snapshot, timers: StepTimers) -> SizeAnswer:
    question = size_question(SizeBody.model_validate(json.loads(canonical)), snapshot, timers)
    return SizeAnswer.from_engine(size(question), snapshot.revision)


@lru_cache(maxsize=MOST_ANSWERS)
def _capacity_found(canonical: str, snapshot: Snapshot, timers: StepTimers) -> CapacityAnswer:
    question = capacity_question(CapacityBody.model_validate(json.loads(canonical)), snapshot, timers)
    return CapacityAnswer.from_engine(capacity(question), snapshot.revision)


@lru_cache(maxsize=MOST_ANSWERS)
def _recommended(canonical: str, snapshot: Snapshot, timers: StepTimers) -> RecommendAnswer:
    question = recommend_question(RecommendBody.model_validate(json.loads(canonical)), snapshot, timers)
    return RecommendAnswer.from_engine(recommend(question), snapshot.revision)
