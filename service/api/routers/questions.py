"""`/size`, `/capacity` and `/recommend`: look up, compute, convert."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Query
from starlette.responses import Response

from service.api.answers import CapacityAnswer, RecommendAnswer, SizeAnswer
from service.api.computed import capacity_found, recommended, sized
from service.api.dependencies import SnapshotDep, TimersDep, stated_once
from service.api.examples import (
    CAPACITY_QUESTIONS,
    RECOMMEND_QUESTIONS,
    SIZE_QUESTIONS,
    answer_content,
)
from service.api.formats import respond
from service.api.problems import problem_responses
from service.api.questions import CapacityBody, CapacityQuery, RecommendBody, RecommendQuery, SizeBody, SizeQuery
from service.catalog.snapshot import Snapshot
from service.engine.time.steps import StepTimers

router = APIRouter(tags=["questions"], dependencies=[Depends(stated_once)])
PROBLEMS = problem_responses(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)


@router.get(
    "/size",
    operation_id="get_size",
    summary="How many GPUs of this type?",
    response_model=SizeAnswer,
    responses={**PROBLEMS, 200: answer_content("size")},
)
def get_size(query: Annotated[SizeQuery, Query()], snapshot: SnapshotDep, timers: TimersDep) -> Response:
    """Return the fewest GPUs of one type that carry the load, the memory ledger, and every assumption."""
    return _size(query, snapshot, timers)


@router.post(
    "/size",
    operation_id="post_size",
    summary="How many GPUs of this type?",
    response_model=SizeAnswer,
    responses={**PROBLEMS, 200: answer_content("size")},
)
def post_size(
    body: Annotated[SizeBody, Body(openapi_examples=SIZE_QUESTIONS)], snapshot: SnapshotDep, timers: TimersDep
) -> Response:
    """Answer as GET does; a `model_config` may be pasted instead of naming a model."""
    return _size(body, snapshot, timers)


@router.get(
    "/capacity",
    operation_id="get_capacity",
    summary="How much load do these GPUs carry?",
    response_model=CapacityAnswer,
    responses={**PROBLEMS, 200: answer_content("capacity")},
)
def get_capacity(query: Annotated[CapacityQuery, Query()], snapshot: SnapshotDep, timers: TimersDep) -> Response:
    """Return the requests that fit, the engine's start-up numbers, and a table of context lengths."""
    return _capacity(query, snapshot, timers)


@router.post(
    "/capacity",
    operation_id="post_capacity",
    summary="How much load do these GPUs carry?",
    response_model=CapacityAnswer,
    responses={**PROBLEMS, 200: answer_content("capacity")},
)
def post_capacity(
    body: Annotated[CapacityBody, Body(openapi_examples=CAPACITY_QUESTIONS)], snapshot: SnapshotDep, timers: TimersDep
) -> Response:
    """Answer as GET does; a `model_config` may be pasted instead of naming a model."""
    return _capacity(body, snapshot, timers)


@router.get(
    "/recommend",
    operation_id="get_recommend",
    summary="Which GPU, layout and precision?",
    response_model=RecommendAnswer,
    responses={**PROBLEMS, 200: answer_content("recommend")},
)
def get_recommend(query: Annotated[RecommendQuery, Query()], snapshot: SnapshotDep, timers: TimersDep) -> Response:
    """Return ways to carry the load, best first, and what was left out and why."""
    return _recommend(query, snapshot, timers)


@router.post(
    "/recommend",
    operation_id="post_recommend",
    summary="Which GPU, layout and precision?",
    response_model=RecommendAnswer,
    responses={**PROBLEMS, 200: answer_content("recommend")},
)
def post_recommend(
    body: Annotated[RecommendBody, Body(openapi_examples=RECOMMEND_QUESTIONS)], snapshot: SnapshotDep, timers: TimersDep
) -> Response:
    """Answer as GET does; a `model_config` may be pasted instead of naming a model."""
    return _recommend(body, snapshot, timers)


def _size(query: SizeQuery, snapshot: Snapshot, timers: StepTimers) -> Response:
    return respond(sized(query, snapshot, timers), query)


def _capacity(query: CapacityQuery, snapshot: Snapshot, timers: StepTimers) -> Response:
    return respond(capacity_found(query, snapshot, timers), query)


def _recommend(query: RecommendQuery, snapshot: Snapshot, timers: StepTimers) -> Response:
    return respond(recommended(query, snapshot, timers), query)
