"""`/size:batch` and the others: up to a thousand questions in one request."""

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response, StreamingResponse

from service.api.batches import Batch, questions_in
from service.api.dependencies import ReceptionDep, SnapshotDep, stated_once
from service.api.media import CSV, NDJSON, types_accepted
from service.api.problems import Problem, problem_responses
from service.questions.asked import Question
from service.questions.many import MOST_QUESTIONS

PROBLEMS = problem_responses(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
DESCRIPTION = (
    f"Answer up to {MOST_QUESTIONS:,} questions in order, each with its own success or problem. The body is JSON, "
    f"a question on each line ({NDJSON}), or CSV under the names of fields. With Accept: {NDJSON} each answer is a "
    f"line that leaves when it is known; with Accept: {CSV} all of them are one table, with a row for each entry of "
    "an answer that is a list."
)

# An item that is no question has an outcome of its own, as any that is not understood.
QUESTIONS: Mapping[str, Any] = {
    "type": "array",
    "description": "each answered as if it were alone",
    "items": {"description": "the fields of one question"},
    "minItems": 1,
    "maxItems": MOST_QUESTIONS,
}


class Outcome(BaseModel):
    """What became of one question: an answer, or a problem."""

    model_config = ConfigDict(frozen=True)

    index: int
    status: int = Field(description="what the question would be answered with on its own [HTTP status]")
    answer: dict[str, Any] | None = None
    problem: Problem | None = None


class Outcomes(BaseModel):
    """What became of each question, in order."""

    model_config = ConfigDict(frozen=True)

    answers: tuple[Outcome, ...]
    succeeded: int
    failed: int


def batches_router(questions: Iterable[Question]) -> APIRouter:
    """Return the routes that answer many questions of one kind."""
    router = APIRouter(tags=["questions"], dependencies=[Depends(stated_once)])
    for question in questions:
        _add(router, question)
    return router


def example_bodies(questions: Iterable[Question]) -> Mapping[str, str]:
    """Return the first example of each question as its path takes it, alone and in a batch."""
    bodies: dict[str, str] = {}
    for question in questions:
        value = next(iter(question.examples.values()))["value"]
        bodies[f"/{question.name}"] = json.dumps(value)
        bodies[f"/{question.name}:batch"] = json.dumps({"questions": [value]})
    return bodies


def _add(router: APIRouter, question: Question) -> None:
    async def ask(request: Request, snapshot: SnapshotDep, reception: ReceptionDep) -> Response:
        questions = await questions_in(request)
        batch = Batch(reception, question, snapshot)
        types = types_accepted(request.headers.get("accept", ""))
        if NDJSON in types:
            return StreamingResponse(batch.lines(questions), media_type=NDJSON)
        if types[:1] == (CSV,):
            return Response(await batch.sheet(questions), media_type=CSV)
        return StreamingResponse(batch.document(questions), media_type="application/json")

    example = next(iter(question.examples.values()))["value"]
    abridged = {"answers": [{"index": 0, "status": 200, "answer": question.abridged}], "succeeded": 1, "failed": 0}
    body = {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {"questions": QUESTIONS},
                "required": ["questions"],
                "additionalProperties": False,
            },
            "examples": {"one": {"summary": "one question", "value": {"questions": [example]}}},
        },
        NDJSON: {"schema": {"type": "string"}, "example": f"{json.dumps(example)}\n"},
        CSV: {"schema": {"type": "string"}, "example": _table(example)},
    }
    router.post(
        f"/{question.name}:batch",
        operation_id=f"post_{question.name}_batch",
        summary=f"{question.summary} Many at once",
        description=DESCRIPTION,
        response_model=Outcomes,
        openapi_extra={"requestBody": {"required": True, "content": body}},
        responses={
            **PROBLEMS,
            200: {
                "content": {
                    "application/json": {"x-abridged": abridged},
                    NDJSON: {"schema": {"type": "string"}},
                    CSV: {"schema": {"type": "string"}},
                }
            },
        },
    )(ask)


def _table(example: dict[str, Any]) -> str:
    return f"{','.join(example)}\n{','.join(str(value) for value in example.values())}\n"
