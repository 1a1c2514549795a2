"""Every question's two routes: GET with a query string and POST with a body give the same bytes."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Depends, Query, Request
from starlette.responses import Response

from service.api.dependencies import ReceptionDep, SnapshotDep, stated_once
from service.api.media import JsonRoute, format_accepted, response_of
from service.api.problems import problem_responses
from service.api.reception import ClientLeftError, Reception
from service.catalog.snapshot import Snapshot
from service.questions.asked import Asked, Question

PROBLEMS = problem_responses(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
CLIENT_LEFT: Final = 499
PASTED = "; a `model_config` may be pasted instead of naming a model"


def questions_router(questions: Iterable[Question]) -> APIRouter:
    """Return the routes of the questions."""
    router = APIRouter(tags=["questions"], dependencies=[Depends(stated_once)], route_class=JsonRoute)
    for question in questions:
        _add(router, question)
    return router


def _add(router: APIRouter, question: Question) -> None:
    """Add the routes of one question."""

    async def answered(request: Request, asked: Any, snapshot: Snapshot, reception: Reception) -> Response:
        try:
            answer = await reception.written(request, question, as_accepted(request, asked), snapshot)
        except ClientLeftError:
            return Response(status_code=CLIENT_LEFT)  # to nobody
        return response_of(answer)

    async def by_query(request: Request, asked: Any, snapshot: SnapshotDep, reception: ReceptionDep) -> Response:
        return await answered(request, asked, snapshot, reception)

    async def by_body(request: Request, asked: Any, snapshot: SnapshotDep, reception: ReceptionDep) -> Response:
        return await answered(request, asked, snapshot, reception)

    examples: Any = question.examples
    by_query.__annotations__["asked"] = Annotated[question.query, Query()]
    by_body.__annotations__["asked"] = Annotated[question.body, Body(openapi_examples=examples)]
    shared: dict[str, Any] = {
        "summary": question.summary,
        "response_model": question.answer.body,
        "responses": {**PROBLEMS, 200: answer_content(question)},
    }
    router.get(f"/{question.name}", operation_id=f"get_{question.name}", description=question.description, **shared)(
        by_query
    )
    router.post(
        f"/{question.name}",
        operation_id=f"post_{question.name}",
        description="Answer as GET does" + (PASTED if "model_config" in question.fields else "") + ".",
        **shared,
    )(by_body)


def as_accepted(request: Request, asked: Asked) -> Asked:
    """Return a question in the format that Accept names, where the question names none."""
    accepted = format_accepted(request.headers.get("accept", "").encode("latin-1"))
    if accepted is None or "format" in asked.model_fields_set:
        return asked
    return asked.model_copy(update={"format": accepted})


def answer_content(question: Question) -> Mapping[str, Any]:
    """Return the 200 entry of a question: an abridged answer, and the formats it may come in."""
    return {
        "description": "The answer. With `field` or another `format`, the same as text, CSV, YAML or gauges.",
        "content": {
            "application/json": {"x-abridged": question.abridged},
            "text/plain": {"schema": {"type": "string"}, "example": "2\n"},
            "text/csv": {"schema": {"type": "string"}, "example": "feasible,gpus\nTrue,2\n"},
            "application/yaml": {"schema": {"type": "string"}, "example": "feasible: true\ngpus: 2\n"},
        },
    }
