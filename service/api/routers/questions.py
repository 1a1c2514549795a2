"""`/size`, `/capacity` and `/recommend`: look up, compute, convert."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Body, Query
from starlette.responses import Response

from service.api.answers import CapacityAnswer, RecommendAnswer, SizeAnswer
from service.api.dependencies import SnapshotDep
from service.api.examples import (
    CAPACITY_QUESTIONS,
    RECOMMEND_QUESTIONS,
    SIZE_QUESTIONS,
    answer_content,
)
from service.api.formats import respond
from service.api.lookups import capacity_question, recommend_question, size_question
from service.api.problems import problem_responses
from service.api.questions import CapacityBody, CapacityQuery, RecommendBody, RecommendQuery, SizeBody, SizeQuery
from service.catalog.snapshot import Snapshot
from service.engine.capacity import capacity
from service.engine.recommend import recommend
from service.engine.sizing import size

router = APIRouter(tags=["questions"])
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
async def get_size(query: Annotated[SizeQuery, Query()], snapshot: SnapshotDep) -> Response:
    """Return the fewest GPUs of one type that carry the load, the memory ledger, and every assumption."""
    return _size(query, snapshot)


@router.post(
    "/size",
    operation_id="post_size",
    summary="How many GPUs of this type?",
    response_model=SizeAnswer,
    responses={**PROBLEMS, 200: answer_content("size")},
)
async def post_size(
    body: Annotated[SizeBody, Body(openapi_examples=SIZE_QUESTIONS)], snapshot: SnapshotDep
) -> Response:
    """Answer as GET does; a `model_config` may be pasted instead of naming a model."""
    return _size(body, snapshot)


@router.get(
    "/capacity",
    operation_id="get_capacity",
    summary="How much load do these GPUs carry?",
    response_model=CapacityAnswer,
    responses={**PROBLEMS, 200: answer_content("capacity")},
)
async def get_capacity(query: Annotated[CapacityQuery, Query()], snapshot: SnapshotDep) -> Response:
    """Return the requests that fit, the engine's start-up numbers, and a table of context lengths."""
    return _capacity(query, snapshot)


@router.post(
    "/capacity",
    operation_id="post_capacity",
    summary="How much load do these GPUs carry?",
    response_model=CapacityAnswer,
    responses={**PROBLEMS, 200: answer_content("capacity")},
)
async def post_capacity(
    body: Annotated[CapacityBody, Body(openapi_examples=CAPACITY_QUESTIONS)], snapshot: SnapshotDep
) -> Response:
    """Answer as GET does; a `model_config` may be pasted instead of naming a model."""
    return _capacity(body, snapshot)


@router.get(
    "/recommend",
    operation_id="get_recommend",
    summary="Which GPU, layout and precision?",
    response_model=RecommendAnswer,
    responses={**PROBLEMS, 200: answer_content("recommend")},
)
async def get_recommend(query: Annotated[RecommendQuery, Query()], snapshot: SnapshotDep) -> Response:
    """Return ways to carry the load, best first, and what was left out and why."""
    return _recommend(query, snapshot)


@router.post(
    "/recommend",
    operation_id="post_recommend",
    summary="Which GPU, layout and precision?",
    response_model=RecommendAnswer,
    responses={**PROBLEMS, 200: answer_content("recommend")},
)
async def post_recommend(
    body: Annotated[RecommendBody, Body(openapi_examples=RECOMMEND_QUESTIONS)], snapshot: SnapshotDep
) -> Response:
    """Answer as GET does; a `model_config` may be pasted instead of naming a model."""
    return _recommend(body, snapshot)


def _size(query: SizeQuery, snapshot: Snapshot) -> Response:
    sizing = size(size_question(query, snapshot))
    return respond(SizeAnswer.from_engine(sizing, snapshot.revision), query)


def _capacity(query: CapacityQuery, snapshot: Snapshot) -> Response:
    found = capacity(capacity_question(query, snapshot))
    return respond(CapacityAnswer.from_engine(found, snapshot.revision), query)


def _recommend(query: RecommendQuery, snapshot: Snapshot) -> Response:
    found = recommend(recommend_question(query, snapshot))
    return respond(RecommendAnswer.from_engine(found, snapshot.revision), query)
