"""`/workloads`: questions under a name, written with the version that was seen, asked with overrides."""

from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import Field
from starlette.responses import Response

from service.api.about import answer_about, workload_called
from service.api.conditions import ConditionDep, SeenDep
from service.api.dependencies import (
    CallerDep,
    KeyDep,
    NoQueryDep,
    ReceptionDep,
    SnapshotDep,
    WorkloadsDep,
    stated_once,
)
from service.api.etags import TaggedRoute, tagged
from service.api.problems import problem_responses
from service.api.reception import ClientLeftError
from service.api.routers.questions import CLIENT_LEFT, PROBLEMS, answer_content, as_accepted
from service.api.workload_bodies import (
    QUESTION,
    SHEET,
    SHOWN,
    Change,
    Changes,
    Ended,
    WorkloadBody,
    WorkloadList,
    WorkloadListing,
    WorkloadShown,
    sheet_of_workloads,
)
from service.api.workload_checks import WorkloadChecksDep
from service.catalog.entries import Entry
from service.questions.asked import Question
from service.questions.fields import lists_of
from service.questions.refusals import stated_twice
from service.workloads.errors import NoWorkloadError
from service.workloads.store import Condition, delete_workload, in_utc, put_workload, read_changes
from service.workloads.workload import ASKED_OF_ONE, Workload, WorkloadName, answered_by

router = APIRouter(prefix="/workloads", tags=["workloads"], route_class=TaggedRoute)
MOST_CHANGES: Final = 500
CONDITIONS = problem_responses(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.PRECONDITION_FAILED,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.PRECONDITION_REQUIRED,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
READ = problem_responses(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE)


class Part(Entry):
    """Which changes to return."""

    page_size: Annotated[int, Field(ge=1, le=MOST_CHANGES, description="changes to return at most [count]")] = 100
    before_version: Annotated[int, Field(ge=1, le=1 << 31)] | None = Field(
        default=None, description="only changes before that version; without it, the newest [number]"
    )


Name = Annotated[WorkloadName, Path(description="what the workload is called", examples=["chat"])]


def _example(value: object) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {"application/json": {"example": value}}}}


def _shown(workload: Workload) -> WorkloadShown:
    return WorkloadShown(
        name=workload.name,
        version=workload.version,
        changed_at=workload.changed_at,
        answers=answered_by(workload.question),
        question=dict(workload.question),
    )


@router.get(
    "",
    operation_id="list_workloads",
    summary="List workloads",
    response_model=WorkloadList,
    dependencies=[Depends(stated_once)],
    responses={**READ, 200: {"content": {"application/json": {"example": {"items": []}}, **SHEET}}},
)
async def list_workloads(listing: Annotated[WorkloadListing, Query()], shelf: WorkloadsDep) -> WorkloadList | Response:
    """Return every workload, by name."""
    items = tuple(map(_shown, (await shelf.rows()).values()))
    return sheet_of_workloads(items) if listing.format == "csv" else WorkloadList(items=items)


@router.get(
    "/{name}",
    operation_id="get_workload",
    summary="Show a workload",
    dependencies=[NoQueryDep],
    responses={**READ, **_example(SHOWN)},
)
async def get_workload(name: Name, shelf: WorkloadsDep, response: Response) -> WorkloadShown:
    """Return a workload; its ETag is the version that a write states."""
    workload = await workload_called(shelf, name)
    response.headers["ETag"] = f'"{workload.version}"'
    return _shown(workload)


@router.put(
    "/{name}",
    operation_id="put_workload",
    summary="Add or replace a workload",
    dependencies=[KeyDep, Depends(stated_once)],
    responses={**CONDITIONS, **_example(SHOWN), 201: {"description": "Created", "model": WorkloadShown}},
)
async def write_workload(
    name: Name,
    body: WorkloadBody,
    shelf: WorkloadsDep,
    caller: CallerDep,
    checks: WorkloadChecksDep,
    condition: ConditionDep,
    response: Response,
) -> WorkloadShown:
    """Write a workload: one that is there already with If-Match, so that nobody's change is lost unseen."""
    await checks.check(body.question)
    held = Condition(tags=condition.tags, is_new=condition.is_new)
    workload, is_new = await shelf.write(lambda session: put_workload(session, name, body.question, caller.name, held))
    response.status_code = 201 if is_new else 200
    response.headers["ETag"] = f'"{workload.version}"'
    return _shown(workload)


@router.delete(
    "/{name}",
    operation_id="delete_workload",
    summary="Delete a workload",
    dependencies=[KeyDep, NoQueryDep],
    responses={**CONDITIONS, **_example({"name": "chat", "version": 2})},
)
async def remove_workload(name: Name, shelf: WorkloadsDep, caller: CallerDep, seen: SeenDep) -> Ended:
    """Delete a workload; its changes are kept, and its name counts on from there."""
    held = Condition(tags=seen.tags)
    version = await shelf.write(lambda session: delete_workload(session, name, caller.name, held))
    return Ended(name=name, version=version)


@router.get(
    "/{name}/changes",
    operation_id="list_workload_changes",
    summary="Who changed it?",
    dependencies=[KeyDep],
    responses={
        **READ,
        **problem_responses(HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN),
        **_example(
            {"items": [{**SHOWN, "changed_by": "configured key 1f2e3d4c", "before": QUESTION, "after": QUESTION}]}
        ),
    },
)
async def list_changes(name: Name, part: Annotated[Part, Query()], shelf: WorkloadsDep) -> Changes:
    """Return every write of a name: who, when, before and after; those of deleted workloads too."""
    rows = await shelf.look(lambda session: read_changes(session, name, part.page_size, part.before_version))
    if not rows and part.before_version is None:  # whatever was written once has a change
        raise NoWorkloadError(name, ())
    items = (
        Change(
            version=row.version,
            changed_at=in_utc(row.changed_at),
            changed_by=row.changed_by,
            before=row.before,
            after=row.after,
        )
        for row in rows
    )
    return Changes(items=tuple(items))


def overrides_of(request: Request, question: Question) -> Mapping[str, Any]:
    """Return the fields of the query string.

    Raises:
        RefusalError: one is stated twice, and is no list.
    """
    lists = lists_of(question.body)
    stated = request.query_params.multi_items()
    twice = [name for name, count in Counter(name for name, _ in stated).items() if count > 1 and name not in lists]
    if twice:
        raise stated_twice(twice)
    return {name: request.query_params.getlist(name) if name in lists else value for name, value in stated}


def _add(question: Question) -> None:
    """Add the route that asks a question about a workload."""

    async def ask(
        name: Name, request: Request, shelf: WorkloadsDep, snapshot: SnapshotDep, reception: ReceptionDep
    ) -> Response:
        workload = await workload_called(shelf, name)
        overrides = overrides_of(request, question)
        try:
            answer, asked = await answer_about(request, workload, question, overrides, reception, snapshot)
            text = await reception.rendered(request, answer, as_accepted(request, asked))
        except ClientLeftError:
            return Response(status_code=CLIENT_LEFT)
        return tagged(request, text.text, text.media_type)

    responses: dict[int | str, Any] = {**PROBLEMS, 200: answer_content(question)}
    router.get(
        f"/{{name}}/{question.name}",
        operation_id=f"get_workload_{question.name}",
        summary=f"{question.summary} Of a workload",
        description=f"{question.description} The workload's own fields, with those of the query string in their place.",
        response_model=question.answer.body,
        responses=responses,
        openapi_extra={"parameters": _parameters(question)},
    )(ask)


def _parameters(question: Question) -> list[dict[str, Any]]:
    """Return the fields of a question as parameters, none of them required."""
    shapes: Mapping[str, dict[str, Any]] = question.query.model_json_schema()["properties"]
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": shape.get("description", ""),
            "schema": {key: value for key, value in shape.items() if key not in ("description", "default", "examples")},
        }
        for name, shape in shapes.items()
    ]


for asked_of_one in ASKED_OF_ONE:
    _add(asked_of_one)
