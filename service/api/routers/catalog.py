"""`/catalog`: what the service knows, and from where; writable with a key."""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.dependencies import ImporterDep, KeyDep, NoQueryDep, ProbeDep, SnapshotDep, stated_once
from service.api.entry_writes import EntryDeleterDep, EntryImporterDep, EntryWriterDep, counted_as
from service.api.etags import TaggedRoute
from service.api.lists import (
    ANY_NAME,
    AnyName,
    GpuList,
    GpuListing,
    ModelList,
    ModelListing,
    OfferList,
    OfferListing,
    gpu_row,
    model_row,
    offer_row,
    sheet,
    shown,
)
from service.api.problems import FieldProblem, ProblemError, problem_responses
from service.catalog.entries import CatalogId, Entry, GpuEntry, HubId, ModelEntry, OfferEntry
from service.catalog.errors import NotInCatalogError
from service.catalog.offer_rules import check_day, check_purchase
from service.catalog.reading import MODELS, OFFERS
from service.catalog.snapshot import Snapshot
from service.catalog.store import delete_model, delete_offer, put_offer

router = APIRouter(prefix="/catalog", tags=["catalog"], dependencies=[Depends(stated_once)], route_class=TaggedRoute)
READ_PROBLEMS = problem_responses(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
WRITE_PROBLEMS = problem_responses(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
CONDITIONAL = {**WRITE_PROBLEMS, **problem_responses(HTTPStatus.PRECONDITION_FAILED)}
EntryId = Annotated[CatalogId, Path(description="catalog id", examples=["h100-sxm-80gb"])]


class Written(BaseModel):
    """What was written, and the revision that has it."""

    model_config = ConfigDict(frozen=True)

    id: str
    catalog_revision: int


class ImportRequest(Entry):
    """Which model to import."""

    hf_id: HubId = Field(description="Hugging Face id, such as meta-llama/Llama-3.1-8B-Instruct")
    id: CatalogId | None = Field(default=None, description="catalog id; default: the name after the slash, lower case")


class Imported(BaseModel):
    """The imported model, and what is odd about it."""

    model_config = ConfigDict(frozen=True)

    entry: ModelEntry
    warnings: tuple[str, ...]
    catalog_revision: int


def _example(value: object) -> dict[int | str, dict[str, object]]:
    return {200: {"content": {"application/json": {"example": value}}}}


def _abridged(value: object) -> dict[int | str, dict[str, object]]:
    return {200: {"content": {"application/json": {"x-abridged": value}}}}


WRITTEN = _example({"id": "h100-sxm-80gb", "catalog_revision": 2})
LISTED: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "application/json": {
                "example": {"next_page_token": "bW9kZWxzOmxsYW1h", "catalog_revision": 1, "items": []}
            },
            "text/csv": {"schema": {"type": "string"}},
        }
    }
}


@router.get(
    "/models",
    operation_id="list_models",
    summary="List models",
    response_model=ModelList,
    responses={**READ_PROBLEMS, **LISTED},
)
async def list_models(listing: Annotated[ModelListing, Query()], snapshot: SnapshotDep) -> ModelList | Response:
    """Return models with their config facts, checkpoints and sources."""
    if listing.format == "csv":
        return sheet(snapshot.entries.models, listing, model_row)
    items, token = shown(snapshot.entries.models, listing)
    return ModelList(items=items, next_page_token=token, catalog_revision=snapshot.revision)


@router.get(
    "/gpus",
    operation_id="list_gpus",
    summary="List GPUs",
    response_model=GpuList,
    responses={**READ_PROBLEMS, **LISTED},
)
async def list_gpus(listing: Annotated[GpuListing, Query()], snapshot: SnapshotDep) -> GpuList | Response:
    """Return GPUs with every figure and its source."""
    if listing.format == "csv":
        return sheet(snapshot.entries.gpus, listing, gpu_row)
    items, token = shown(snapshot.entries.gpus, listing)
    return GpuList(items=items, next_page_token=token, catalog_revision=snapshot.revision)


@router.get(
    "/offers",
    operation_id="list_offers",
    summary="List offers",
    response_model=OfferList,
    responses={**READ_PROBLEMS, **LISTED},
)
async def list_offers(listing: Annotated[OfferListing, Query()], snapshot: SnapshotDep) -> OfferList | Response:
    """Return list prices with their dates and sources."""
    if listing.gpu:
        listing = listing.model_copy(update={"gpu": snapshot.called_gpus.read(listing.gpu).gpu_id})
    if listing.format == "csv":
        return sheet(snapshot.entries.offers, listing, offer_row)
    items, token = shown(snapshot.entries.offers, listing)
    return OfferList(items=items, next_page_token=token, catalog_revision=snapshot.revision)


@router.get(
    f"/models/{{name:{ANY_NAME}}}",
    operation_id="get_model",
    dependencies=[NoQueryDep],
    summary="Show a model",
    responses={**READ_PROBLEMS, **_abridged({"id": "llama-3.1-8b-instruct", "name": "Llama 3.1 8B Instruct"})},
)
async def get_model(name: AnyName, snapshot: SnapshotDep, probe: ProbeDep) -> ModelEntry:
    """Return one model, by id, Hugging Face id of any checkpoint, alias, or plain words."""
    return await probe.known(lambda known: known.model_entries[known.called_models.read(name).model_id], snapshot)


@router.get(
    "/gpus/{name}",
    operation_id="get_gpu",
    dependencies=[NoQueryDep],
    summary="Show a GPU",
    responses={**READ_PROBLEMS, **_abridged({"id": "h100-sxm-80gb", "name": "NVIDIA H100 SXM 80GB"})},
)
async def get_gpu(name: AnyName, snapshot: SnapshotDep, probe: ProbeDep) -> GpuEntry:
    """Return one GPU, by id, alias, a driver's or its maker's name, or an instance type that has it."""
    return await probe.known(lambda known: known.gpu_entries[known.called_gpus.read(name).gpu_id], snapshot)


@router.get(
    "/offers/{name}",
    operation_id="get_offer",
    dependencies=[NoQueryDep],
    summary="Show an offer",
    responses={**READ_PROBLEMS, **_abridged({"id": "aws-p5.48xlarge-us-east-1", "provider": "aws"})},
)
async def get_offer(name: AnyName, snapshot: SnapshotDep, probe: ProbeDep) -> OfferEntry:
    """Return one offer."""
    return await probe.known(lambda known: _offer(known, name), snapshot)


def _offer(snapshot: Snapshot, name: str) -> OfferEntry:
    if name not in snapshot.offer_entries:
        raise NotInCatalogError("offer", name, ())
    return snapshot.offer_entries[name]


def _same_id(entry: ModelEntry | GpuEntry | OfferEntry, path_id: str) -> None:
    if entry.id != path_id:
        detail = "the id in the body differs from the id in the path"
        raise ProblemError(422, "invalid-request", detail, [FieldProblem(field="id", detail=detail, accepted=path_id)])


@router.put(
    "/gpus/{name}",
    operation_id="put_gpu",
    summary="Add or replace a GPU",
    dependencies=[KeyDep],
    responses={**CONDITIONAL, **WRITTEN},
)
async def write_gpu(name: EntryId, entry: GpuEntry, writer: EntryWriterDep) -> Written:
    """Write a GPU; every figure names its source and the day it was looked at."""
    _same_id(entry, name)
    return Written(id=entry.id, catalog_revision=await writer.put_gpu(entry))


@router.put(
    "/models/{name}",
    operation_id="put_model",
    summary="Add or replace a model",
    dependencies=[KeyDep],
    responses={**CONDITIONAL, **WRITTEN},
)
async def write_model(name: EntryId, entry: ModelEntry, writer: EntryWriterDep, snapshot: SnapshotDep) -> Written:
    """Write a model; its config must be one that can be sized."""
    _same_id(entry, name)
    check = counted_as(snapshot.model_entries.get(name))
    return Written(id=entry.id, catalog_revision=await writer.put_model(entry, check))


@router.put(
    "/offers/{name}",
    operation_id="put_offer",
    summary="Add or replace an offer",
    dependencies=[KeyDep],
    responses={**CONDITIONAL, **WRITTEN},
)
async def write_offer(name: EntryId, entry: OfferEntry, writer: EntryWriterDep) -> Written:
    """Write a list price with its date, which must have come."""
    _same_id(entry, name)
    check_purchase(entry.purchase, entry.commitment_months)
    today = datetime.now(UTC).date()
    check_day(entry.as_of, today)
    check_day(entry.source.checked_on, today, "source.checked_on")
    revision = await writer.make(OFFERS, name, lambda session: put_offer(session, entry))
    return Written(id=entry.id, catalog_revision=revision)


@router.delete(
    "/gpus/{name}",
    operation_id="delete_gpu",
    summary="Delete a GPU and its offers",
    dependencies=[KeyDep, NoQueryDep],
    responses={**CONDITIONAL, **WRITTEN},
)
async def remove_gpu(name: EntryId, writer: EntryDeleterDep) -> Written:
    """Delete a GPU; its offers go with it, and /catalog/changes tells which. No name of it means another GPU then."""
    revision = await writer.delete_gpu(name)
    return Written(id=name, catalog_revision=revision)


@router.delete(
    "/models/{name}",
    operation_id="delete_model",
    summary="Delete a model",
    dependencies=[KeyDep, NoQueryDep],
    responses={**CONDITIONAL, **WRITTEN},
)
async def remove_model(name: EntryId, writer: EntryDeleterDep) -> Written:
    """Delete a model with its checkpoints."""
    revision = await writer.make(MODELS, name, lambda session: delete_model(session, name))
    return Written(id=name, catalog_revision=revision)


@router.delete(
    "/offers/{name}",
    operation_id="delete_offer",
    summary="Delete an offer",
    dependencies=[KeyDep, NoQueryDep],
    responses={**CONDITIONAL, **WRITTEN},
)
async def remove_offer(name: EntryId, writer: EntryDeleterDep) -> Written:
    """Delete an offer."""
    revision = await writer.make(OFFERS, name, lambda session: delete_offer(session, name))
    return Written(id=name, catalog_revision=revision)


@router.post(
    "/models/import",
    operation_id="import_model",
    summary="Import a model from the hub",
    dependencies=[KeyDep],
    responses={
        **WRITE_PROBLEMS,
        **problem_responses(HTTPStatus.BAD_GATEWAY),
        **_abridged({"entry": {"id": "llama-3.1-8b-instruct"}, "warnings": [], "catalog_revision": 2}),
    },
)
async def import_model(
    wanted: ImportRequest, importer: ImporterDep, snapshot: SnapshotDep, writer: EntryImporterDep
) -> Imported:
    """Fetch a model's config and counts, and keep them; nothing downloaded is executed."""
    today = datetime.now(UTC).date()
    imported = await importer.imported(wanted.hf_id, snapshot.entries.models, wanted.id, today)
    revision = await writer.put_model(imported.entry)
    return Imported(entry=imported.entry, warnings=imported.warnings, catalog_revision=revision)
