"""What callers measured: a log or a benchmark's result, held against the prediction; with a key, stored."""

from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Final, NoReturn

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator

from service.access.keys import Caller
from service.api.access import unauthorized
from service.api.dependencies import (
    CallerDep,
    KeyDep,
    MeasuredDep,
    NoQueryDep,
    ReceptionDep,
    SnapshotDep,
    WorkloadsDep,
    WriterDep,
    stated_once,
)
from service.api.etags import TaggedRoute
from service.api.pages import Paged, one_page
from service.api.problems import ProblemError, problem_responses
from service.catalog.errors import NotInCatalogError
from service.catalog.measurement_rows import (
    Kind,
    MeasuredFigure,
    MeasurementEntry,
    Setting,
    delete_measurement,
    put_measurement,
    read_changes,
)
from service.measurements.checking import Checked, check
from service.measurements.observed import Stored
from service.measurements.storing import entry_of, stored_as
from service.questions.asked import BESIDE_THE_QUESTION
from service.questions.capacity import CAPACITY
from service.questions.parts.part import check_inside

MOST_CHARACTERS: Final = 4_000_000
MOST_CHANGES: Final = 500
EXAMPLE: Final = {
    "text": "INFO Model loading took 15.0 GiB memory\nINFO GPU KV cache size: 460,496 tokens",
    "question": {"model": "llama-3.1-8b", "gpu": "a100-80gb", "engine_version": "0.31.0"},
}
ABRIDGED: Final = {
    "what": "vLLM start-up log",
    "kind": "start-up log",
    "model": "llama-3.1-8b-instruct",
    "gpu": "a100-sxm-80gb",
    "terms": [
        {"name": "kv_cache.tokens", "measured": 460496, "predicted": 462976, "error_fraction": 0.0054, "line": 2}
    ],
    "error_fraction": 0.0054,
    "explanations": [],
    "stored": None,
}
PROBLEMS = problem_responses(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
KEYED = problem_responses(
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
READ = problem_responses(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
ENTRY: Final = {"id": "5f3a0c9d2b7e4681", "what": "vLLM start-up log", "model": "llama-3.1-8b-instruct"}
router = APIRouter(prefix="/measurements", tags=["measurements"], route_class=TaggedRoute)
MeasurementId = Annotated[str, Path(max_length=128, description="as POST /measurements returned it")]


class Measured(BaseModel):
    """A text that somebody measured, and what it does not say."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MOST_CHARACTERS,
            description="a start-up log of vLLM, SGLang or TensorRT-LLM, or a result of vllm bench serve, "
            "throughput or latency, SGLang bench_serving, trtllm-bench, GuideLLM, genai-perf, AIPerf, inference-perf, "
            "InferenceX, llmperf or evalscope perf, as JSON or as it is printed",
        ),
    ]
    question: dict[str, str | int | float | bool] = Field(
        default_factory=dict,
        max_length=64,
        description="fields of /capacity that the text does not say, such as gpu; they come before what it says",
    )
    store: bool | None = Field(
        default=None,
        description="whether answers for this model, GPU and engine rest on it from now on; default: yes with a key "
        "that may write",
    )

    @model_validator(mode="before")
    @classmethod
    def _inside(cls, body: Any) -> Any:
        check_inside(body, {*CAPACITY.fields} - set(BESIDE_THE_QUESTION))
        return body


class Page(Paged):
    """Which measurements of a list."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="of this model, by any of its names"
    )


class MeasurementList(BaseModel):
    """Measurements, in the order of their ids."""

    model_config = ConfigDict(frozen=True)

    items: tuple[MeasurementEntry, ...]
    next_page_token: str | None
    catalog_revision: int


class MeasurementShown(BaseModel):
    """A measurement, and what it changes."""

    model_config = ConfigDict(frozen=True)

    id: str
    what: str
    kind: Kind
    model: str
    gpu: str
    question: dict[str, Setting]
    figures: dict[str, MeasuredFigure]
    stored_at: datetime
    stored: Stored


class Deleted(BaseModel):
    """What was deleted, and the revision without it."""

    model_config = ConfigDict(frozen=True)

    id: str
    catalog_revision: int


class MeasurementChange(BaseModel):
    """One write: who, when, before and after."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    number: int
    changed_at: datetime
    changed_by: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class MeasurementChanges(BaseModel):
    """Who stored and who deleted it, the newest first."""

    model_config = ConfigDict(frozen=True)

    items: tuple[MeasurementChange, ...]


@router.post(
    "",
    operation_id="post_measurements",
    summary="Are you right about what I measured?",
    dependencies=[Depends(stated_once)],
    responses={**PROBLEMS, **KEYED, 200: {"content": {"application/json": {"x-abridged": ABRIDGED}}}},
)
async def post_measurement(
    request: Request,
    measured: Annotated[Measured, Body(openapi_examples={"start-up": {"summary": "a start-up log", "value": EXAMPLE}})],
    caller: CallerDep,
    snapshot: SnapshotDep,
    reception: ReceptionDep,
    corrections: MeasuredDep,
    writer: WriterDep,
) -> Checked:
    """Answer with predicted beside measured, term by term; with a key that may write, answers rest on it afterwards."""
    if measured.store and not caller.may("write"):
        _refuse_to_store(caller)
    stated: dict[str, Any] = measured.question
    checked = await reception.done(
        request, "measurements", lambda: check(measured.text, stated, snapshot, reception.desk)
    )
    if measured.store is False or not caller.may("write"):
        return checked
    entry = entry_of(checked)
    told = await reception.done(
        request, "measurements", lambda: stored_as(entry, reception.desk.sources(snapshot), corrections)
    )
    revision = snapshot.revision
    if told.id is not None and entry.id not in {one.id for one in snapshot.entries.measurements}:
        _, revision = await writer.make(lambda session: put_measurement(session, entry, caller.name))
    return replace(checked, stored=told, catalog_revision=revision)


def _example(value: object) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {"application/json": {"x-abridged": value}}}}


def _refuse_to_store(caller: Caller) -> NoReturn:
    if caller.scope is None:
        raise unauthorized()
    raise ProblemError(403, "forbidden", f"this key's scope is {caller.scope}, and this needs write")


@router.get(
    "",
    operation_id="list_measurements",
    summary="List measurements",
    dependencies=[Depends(stated_once)],
    responses={**READ, **_example({"items": [ENTRY], "next_page_token": None, "catalog_revision": 2})},
)
async def list_measurements(page: Annotated[Page, Query()], snapshot: SnapshotDep) -> MeasurementList:
    """Return what callers stored: on what questions they rest, and their figures."""
    of_model = None if page.model is None else snapshot.called_models.read(page.model).model_id
    meant = [entry for entry in snapshot.entries.measurements if of_model in (None, entry.model)]
    shown, token = one_page(meant, "measurements", page)
    return MeasurementList(items=shown, next_page_token=token, catalog_revision=snapshot.revision)


@router.get(
    "/{measurement_id}",
    operation_id="get_measurement",
    dependencies=[NoQueryDep],
    summary="Show a measurement",
    responses={**READ, **_example(ENTRY)},
)
async def get_measurement(
    measurement_id: MeasurementId,
    request: Request,
    snapshot: SnapshotDep,
    reception: ReceptionDep,
    corrections: MeasuredDep,
) -> MeasurementShown:
    """Return one measurement, and what it changes."""
    entry = next((one for one in snapshot.entries.measurements if one.id == measurement_id), None)
    if entry is None:
        raise NotInCatalogError("measurement", measurement_id, ())
    told = await reception.done(
        request, "measurements", lambda: stored_as(entry, reception.desk.sources(snapshot), corrections)
    )
    return MeasurementShown(**dict(entry), stored=told)


@router.delete(
    "/{measurement_id}",
    operation_id="delete_measurement",
    summary="Delete a measurement",
    dependencies=[KeyDep, NoQueryDep],
    responses={**KEYED, **_example({"id": ENTRY["id"], "catalog_revision": 3})},
)
async def remove_measurement(measurement_id: MeasurementId, caller: CallerDep, writer: WriterDep) -> Deleted:
    """Delete a measurement: answers are what they were without it. Who stored and who deleted it is kept."""
    _, revision = await writer.make(lambda session: delete_measurement(session, measurement_id, caller.name))
    return Deleted(id=measurement_id, catalog_revision=revision)


@router.get(
    "/{measurement_id}/changes",
    operation_id="list_measurement_changes",
    summary="Who stored it?",
    dependencies=[KeyDep, NoQueryDep],
    responses={**READ, **KEYED, **_example({"items": [{"number": 1, "changed_by": "configured key 1f2e3d4c"}]})},
)
async def list_measurement_changes(measurement_id: MeasurementId, workloads: WorkloadsDep) -> MeasurementChanges:
    """Return every write of a measurement: who, when, before and after; of deleted ones too."""
    rows = await workloads.look(lambda session: read_changes(session, measurement_id, MOST_CHANGES))
    if not rows:  # whatever was ever stored has one
        raise NotInCatalogError("measurement", measurement_id, ())
    return MeasurementChanges(items=tuple(map(MeasurementChange.model_validate, rows)))
