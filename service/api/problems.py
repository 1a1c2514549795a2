"""RFC 9457 problem documents: what was wrong, which field, and what would be accepted."""

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPMethod, HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from rapidfuzz import fuzz, process
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from service.catalog.errors import ConflictError, NotInCatalogError
from service.engine.errors import (
    EngineError,
    InvalidQuestionError,
    MissingConfigFieldError,
    UnsupportedLayoutError,
    UnsupportedModelError,
)
from service.hub.errors import HubError, NotOnHubError, UnusableHubAnswerError

logger = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
MAX_ERRORS = 20
CLOSE_FIELD_SCORE = 70
FIX_FORM = "send JSON: add -H 'content-type: application/json' to curl, or use GET with a query string"


class FieldProblem(BaseModel):
    """One field at fault."""

    model_config = ConfigDict(frozen=True)

    field: str
    detail: str
    accepted: str | None


class Problem(BaseModel):
    """What went wrong, for people and programs (RFC 9457)."""

    model_config = ConfigDict(frozen=True)

    type: str
    title: str
    status: int
    detail: str
    errors: tuple[FieldProblem, ...]


class ProblemError(Exception):
    """A problem to answer with, raised at the edge."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        errors: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Keep what the problem document says, and the headers that go with it."""
        super().__init__(detail)
        self.headers = headers
        self.status = status
        self.kind = kind
        self.detail = detail
        self.errors = tuple(errors)


def problem_response(
    status: int, kind: str, detail: str, errors: Sequence[FieldProblem] = (), headers: Mapping[str, str] | None = None
) -> Response:
    """Return a problem document."""
    problem = Problem(
        type=f"/problems/{kind}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        errors=tuple(errors),
    )
    # ASCII keeps half a surrogate pair, echoed in a name, from breaking the answer.
    content = json.dumps(problem.model_dump(mode="python"), ensure_ascii=True) + "\n"
    return Response(content, status_code=status, media_type=MEDIA_TYPE, headers=dict(headers or {}))


def problem_responses(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """Return the `responses=` of a route that may answer with these problems."""
    return {
        int(status): {
            "description": status.phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


ENGINE_KINDS: Mapping[type[EngineError], str] = {
    UnsupportedModelError: "unsupported-model",
    MissingConfigFieldError: "incomplete-config",
    UnsupportedLayoutError: "unsupported-layout",
    InvalidQuestionError: "invalid-question",
}


def install(app: FastAPI) -> None:
    """Answer every error with a problem document."""
    app.add_exception_handler(RequestValidationError, _validation)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, _http)  # type: ignore[arg-type]
    app.add_exception_handler(ProblemError, _problem)  # type: ignore[arg-type]
    app.add_exception_handler(EngineError, _engine)  # type: ignore[arg-type]
    app.add_exception_handler(NotInCatalogError, _not_in_catalog)  # type: ignore[arg-type]
    app.add_exception_handler(ConflictError, _conflict)  # type: ignore[arg-type]
    app.add_exception_handler(HubError, _hub)  # type: ignore[arg-type]
    app.add_exception_handler(Exception, _unexpected)


async def _problem(_request: Request, error: ProblemError) -> Response:
    return problem_response(error.status, error.kind, error.detail, error.errors, error.headers)


async def _engine(_request: Request, error: EngineError) -> Response:
    kind = ENGINE_KINDS.get(type(error), "cannot-size")
    field = FieldProblem(field=error.field, detail=error.detail, accepted=error.accepted)
    return problem_response(422, kind, error.detail, [field])


async def _not_in_catalog(_request: Request, error: NotInCatalogError) -> Response:
    hint = f"did you mean {', '.join(error.suggestions)}?" if error.suggestions else None
    detail = f"{error}; {hint}" if hint else f"{error}; /catalog/{error.kind}s lists what there is"
    accepted = ", ".join(error.suggestions) or f"an id or alias from /catalog/{error.kind}s"
    field = FieldProblem(field=error.kind, detail=str(error), accepted=accepted)
    return problem_response(404, "not-in-catalog", detail, [field])


async def _conflict(_request: Request, error: ConflictError) -> Response:
    return problem_response(409, "conflict", str(error))


async def _hub(_request: Request, error: HubError) -> Response:
    status = 404 if isinstance(error, NotOnHubError) else 422 if isinstance(error, UnusableHubAnswerError) else 502
    return problem_response(
        status, "hub", error.detail, [FieldProblem(field="hf_id", detail=error.detail, accepted=None)]
    )


async def _http(request: Request, error: HTTPException) -> Response:
    kinds = {
        400: "bad-request",
        404: "not-found",
        405: "method-not-allowed",
        413: "body-too-large",
        415: "unsupported-media-type",
    }
    details = {
        400: "the body is not readable JSON in UTF-8",
        404: "there is nothing at this path; /docs lists the endpoints",
        405: "this path does not answer to this method; the Allow header lists those it answers to",
        413: "the body is larger than this service reads",
    }
    status = error.status_code
    detail = details.get(status, str(error.detail))
    headers = {"Allow": ", ".join(_methods(request))} if status == 405 else error.headers
    return problem_response(status, kinds.get(status, "http-error"), detail, headers=headers)


def _methods(request: Request) -> list[str]:
    """Return what a path answers to; each of its routes alone knows only its own methods."""
    routes = request.app.routes
    asked = ({**request.scope, "method": method} for method in HTTPMethod)
    return [it["method"] for it in asked if any(route.matches(it)[0] is Match.FULL for route in routes)]


async def _unexpected(request: Request, error: Exception) -> Response:
    logger.error("unexpected error on %s %s", request.method, request.url.path, exc_info=error)
    return problem_response(500, "internal-error", "something went wrong on our side; it is in the log")


async def _validation(request: Request, error: RequestValidationError) -> Response:
    """Answer a question that breaks its schema, without repeating what was sent."""
    found = list(error.errors())[:MAX_ERRORS]
    if any(it["type"] == "json_invalid" for it in found):
        return problem_response(
            400,
            "bad-request",
            "the body is not valid JSON",
            [FieldProblem(field="body", detail="not valid JSON", accepted="a JSON object in UTF-8")],
        )
    known = _known_fields(request)
    problems = [_field_problem(it, known) for it in found]
    names = ", ".join(dict.fromkeys(it.field for it in problems))
    return problem_response(422, "invalid-request", f"not understood: {names}", problems)


def _known_fields(request: Request) -> tuple[str, ...]:
    """Return the field names of the path's question."""
    known: Mapping[str, tuple[str, ...]] = request.app.state.known_fields
    return known.get(request.url.path, ())


def _field_problem(error: Mapping[str, Any], known: Sequence[str]) -> FieldProblem:
    location = [str(part) for part in error["loc"] if part not in ("body", "query", "path", "header")]
    field = ".".join(location)[:100] or "body"
    kind = str(error["type"])
    if kind == "extra_forbidden":
        close = process.extract(field, known, scorer=fuzz.ratio, limit=2, score_cutoff=CLOSE_FIELD_SCORE)
        hint = "did you mean " + " or ".join(name for name, _, _ in close) + "?" if close else None
        if field in known:
            return FieldProblem(field=field, detail="not in a query string", accepted="a JSON body, by POST")
        return FieldProblem(field=field, detail="unknown field", accepted=hint or (", ".join(known) or None))
    if kind == "missing":
        accepted = "a JSON object" if field == "body" else "a value; the field is required"
        return FieldProblem(field=field, detail="missing", accepted=accepted)
    return FieldProblem(field=_named_in(field, error, known), detail=_sentence(error), accepted=_accepted(error))


def _named_in(field: str, error: Mapping[str, Any], known: Sequence[str]) -> str:
    """Return the field that a rule over several fields speaks of first."""
    if field != "body" or error["type"] != "value_error":
        return field
    first = str(error["msg"]).removeprefix("Value error, ").split(" ", 1)[0]
    if "_" in first or first in known:
        return first
    return "concurrent_requests" if "concurrent_requests" in known else "body"


def _sentence(error: Mapping[str, Any]) -> str:
    return str(error["msg"]).removeprefix("Value error, ").replace("Input should be", "should be")[:300]


SIMPLE_KINDS: Mapping[str, str] = {
    "finite_number": "a finite number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text",
    "string_unicode": "text in UTF-8",
    "list_type": "a list of texts, or one text with commas",
    "dict_type": "a JSON object",
    "model_attributes_type": "a JSON object",
    "model_type": "a JSON object",
}
LIMIT_KINDS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
    "string_pattern_mismatch": ("text matching", "pattern"),
    "literal_error": ("", "expected"),
    "too_long": ("a list of at most", "max_length"),
}


def _accepted(error: Mapping[str, Any]) -> str | None:
    """Return what a field accepts, from the rule it broke."""
    kind, context = str(error["type"]), error.get("ctx") or {}
    if kind in LIMIT_KINDS:
        words, key = LIMIT_KINDS[kind]
        return f"{words} {context.get(key)}".strip()
    if kind == "string_too_long":
        return f"at most {context.get('max_length')} characters"
    if kind == "string_too_short":
        return f"text of at least {context.get('min_length')} character"
    if kind == "value_error" and "accepted: " in str(error["msg"]):
        return str(error["msg"]).split("accepted: ", 1)[1][:300]
    return SIMPLE_KINDS.get(kind)
