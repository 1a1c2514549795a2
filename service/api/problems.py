"""RFC 9457 problem documents: what was wrong, which field, and what would be accepted."""

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPMethod, HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from service.api.fields import known_fields, stated_names
from service.api.headers import SECURITY_HEADERS
from service.api.nearby import instead_of, known_paths, path_meant
from service.catalog.errors import ConflictError, NotInCatalogError, UnusableOfferError
from service.engine.errors import (
    EngineError,
    InvalidQuestionError,
    MissingConfigFieldError,
    RefusedStartError,
    UnsupportedLayoutError,
    UnsupportedModelError,
)
from service.hub.errors import HubError, NotOnHubError, UnusableHubAnswerError
from service.questions.misnamed import misnamed
from service.questions.misread import misread
from service.questions.refusals import RefusalError, RefusalKind, not_in_catalog
from service.workloads.errors import (
    ExistsError,
    LoadUnknownError,
    NoWorkloadError,
    OtherVersionError,
    UnconditionalError,
    WorkloadError,
)

logger = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
MOST_BYTES = 8192  # of a problem document
MOST_DETAIL = 600  # characters, of which each may take 12 bytes
FIX_FORM = "send JSON: add -H 'content-type: application/json' to curl"
OR_ASK_BY_GET = ", or use GET with a query string"


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
        """Keep what the problem document says."""
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = headers


def problem_response(
    status: int, kind: str, detail: str, errors: Sequence[FieldProblem] = (), headers: Mapping[str, str] | None = None
) -> Response:
    """Return a problem document; the last fields at fault are left out of one that would grow too long."""
    told = tuple(errors)
    while len(content := _document(status, kind, detail[:MOST_DETAIL], told)) > MOST_BYTES and told:
        told = told[:-1]
    own = {**SECURITY_HEADERS, "Cache-Control": "no-store", **(headers or {})}
    return Response(content, status_code=status, media_type=MEDIA_TYPE, headers=own)


def _document(status: int, kind: str, detail: str, errors: tuple[FieldProblem, ...]) -> str:
    problem = Problem(
        type=f"/problems/{kind}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        errors=errors,
    )
    # ASCII keeps half a surrogate pair, echoed in a name, from breaking the answer.
    text = json.dumps(problem.model_dump(mode="python"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026") + "\n"  # no markup, ever


def problem_responses(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """Return the `responses=` of a route that may answer with these problems."""
    return {
        int(status): {
            "description": status.phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


REFUSAL_STATUSES: Mapping[RefusalKind, int] = {"not-in-catalog": 404, "other-revision": 409}  # every other kind: 422
ENGINE_KINDS: Mapping[type[EngineError], str] = {
    UnsupportedModelError: "unsupported-model",
    MissingConfigFieldError: "incomplete-config",
    UnsupportedLayoutError: "unsupported-layout",
    RefusedStartError: "refused-start",
    InvalidQuestionError: "invalid-question",
}


def install(app: FastAPI) -> None:
    """Answer every error with a problem document."""
    app.add_exception_handler(RequestValidationError, _validation)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, _http)  # type: ignore[arg-type]
    app.add_exception_handler(ProblemError, _problem)  # type: ignore[arg-type]
    app.add_exception_handler(RefusalError, _refusal)  # type: ignore[arg-type]
    app.add_exception_handler(EngineError, _engine)  # type: ignore[arg-type]
    app.add_exception_handler(NotInCatalogError, _not_in_catalog)  # type: ignore[arg-type]
    app.add_exception_handler(ConflictError, _conflict)  # type: ignore[arg-type]
    app.add_exception_handler(UnusableOfferError, _unusable_offer)  # type: ignore[arg-type]
    app.add_exception_handler(WorkloadError, _workload)  # type: ignore[arg-type]
    app.add_exception_handler(HubError, _hub)  # type: ignore[arg-type]
    app.add_exception_handler(Exception, _unexpected)


async def _problem(_request: Request, error: ProblemError) -> Response:
    return problem_response(error.status, error.kind, error.detail, error.errors, error.headers)


async def _refusal(_request: Request, error: RefusalError) -> Response:
    return refusal_problem(error)


def refusal_problem(error: RefusalError) -> Response:
    """Return the problem of a question that is not answered."""
    problems = [FieldProblem(field=fault.field, detail=fault.detail, accepted=fault.accepted) for fault in error.faults]
    return problem_response(REFUSAL_STATUSES.get(error.kind, 422), error.kind, error.detail, problems)


async def _engine(_request: Request, error: EngineError) -> Response:
    return engine_problem(error)


def engine_problem(error: EngineError) -> Response:
    """Return the problem of a question that the engine refuses."""
    kind = ENGINE_KINDS.get(type(error), "cannot-size")
    fields = [FieldProblem(field=e.field, detail=e.detail, accepted=e.accepted) for e in (error, *error.others)]
    return problem_response(422, kind, error.detail, fields)


async def _not_in_catalog(request: Request, error: NotInCatalogError) -> Response:
    return await _refusal(request, not_in_catalog(error, error.kind))


async def _conflict(_request: Request, error: ConflictError) -> Response:
    detail = str(error)
    fault = FieldProblem(field=error.field, detail=detail, accepted=error.accepted)
    return problem_response(409, "conflict", detail, [fault])


async def _unusable_offer(_request: Request, error: UnusableOfferError) -> Response:
    detail = f"{error.field}: {error.detail}"
    fault = FieldProblem(field=error.field, detail=error.detail, accepted=error.accepted)
    return problem_response(422, "invalid-request", detail, [fault])


async def _hub(_request: Request, error: HubError) -> Response:
    status = 404 if isinstance(error, NotOnHubError) else 422 if isinstance(error, UnusableHubAnswerError) else 502
    return problem_response(
        status, "hub", error.detail, [FieldProblem(field="hf_id", detail=error.detail, accepted=None)]
    )


async def _workload(_request: Request, error: WorkloadError) -> Response:
    match error:
        case NoWorkloadError():
            close = ", ".join(error.suggestions) or "a name that /workloads lists"
            fault = FieldProblem(field="name", detail=str(error), accepted=close)
            return problem_response(404, "no-such-workload", str(error), [fault])
        case OtherVersionError():
            headers = {} if error.version is None else {"ETag": f'"{error.version}"'}
            return problem_response(412, "other-version", str(error), [_condition(error)], headers)
        case LoadUnknownError():
            return problem_response(503, "load-unknown", str(error), headers={"Retry-After": "5"})
        case UnconditionalError():
            headers = {"ETag": f'"{error.version}"'}
            return problem_response(428, "precondition-required", str(error), [_condition(error)], headers)
        case _:
            fault = FieldProblem(
                field="name", detail=str(error), accepted="the name of one there is, or DELETE one first"
            )
            return problem_response(409, "conflict", str(error), [fault])


def _condition(error: OtherVersionError | UnconditionalError) -> FieldProblem:
    """Return that a write's condition is at fault, with the one that would be met."""
    met = "If-None-Match: *, which creates it" if error.version is None else f'If-Match: "{error.version}"'
    field = "if-none-match" if isinstance(error, ExistsError) else "if-match"
    return FieldProblem(field=field, detail=str(error), accepted=met)


async def _http(request: Request, error: HTTPException) -> Response:
    kinds = {
        400: "bad-request",
        404: "not-found",
        405: "method-not-allowed",
        413: "body-too-large",
        415: "unsupported-media-type",
    }
    details = {
        400: "the body is not readable JSON in UTF-8, is nested too deep, or has a number of thousands of digits",
        404: "there is nothing at this path; /docs lists the endpoints",
        405: "this path does not answer to this method; the Allow header lists those it answers to",
        413: "the body is larger than this service reads",
    }
    status = error.status_code
    detail = details.get(status, str(error.detail))
    headers = {"Allow": ", ".join(_methods(request))} if status == 405 else error.headers
    faults = _nearby(request, detail) if status == 404 else ()
    if status == 400:  # which FastAPI answers to a body alone
        faults = [FieldProblem(field="body", detail=detail, accepted="a JSON object in UTF-8")]
    if status == 405 and headers:
        faults = [FieldProblem(field="method", detail=detail, accepted=headers["Allow"])]
    return problem_response(status, kinds.get(status, "http-error"), detail, faults, headers)


def _nearby(request: Request, detail: str) -> Sequence[FieldProblem]:
    """Return that the path is wrong, with the one that was likely meant."""
    instead = instead_of(request.url.path)
    meant = path_meant(request.url.path, known_paths(request.app.routes)) if instead is None else None
    accepted = instead if meant is None else f"did you mean {meant}?"
    return () if accepted is None else [FieldProblem(field="path", detail=detail, accepted=accepted)]


def _methods(request: Request) -> list[str]:
    """Return what a path answers to; each of its routes alone knows only its own methods, and HEAD is asked as GET."""
    routes = request.app.routes
    asked = ({**request.scope, "method": "GET" if method == "HEAD" else method} for method in HTTPMethod)
    answers = (any(route.matches(scope)[0] is Match.FULL for route in routes) for scope in asked)
    return [method for method, is_answered in zip(HTTPMethod, answers, strict=True) if is_answered]


async def _unexpected(request: Request, error: Exception) -> Response:
    logger.error("unexpected error on %s %s", request.method, request.url.path, exc_info=error)
    return problem_response(500, "internal-error", "something went wrong on our side; it is in the log")


async def _validation(request: Request, error: RequestValidationError) -> Response:
    """Answer a question that breaks its schema, without repeating what was sent."""
    errors = error.errors()
    unread = next((entry for entry in errors if entry["type"] == "json_invalid"), None)
    if unread is not None:
        where = f"not valid JSON from character {unread['loc'][-1] + 1} on"
        fault = FieldProblem(field="body", detail=where, accepted="a JSON object in UTF-8")
        return problem_response(400, "bad-request", f"the body is {where}", [fault])
    names = await run_in_threadpool(misnamed, stated_names(request, error.body), request.app.state.catalog.snapshot)
    return await _refusal(request, misread(errors, known_fields(request), misnamed=names))
