"""`/catalog/changes`: who wrote which entry, readable by those who administer the service."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from service.api.dependencies import KeyDep, WorkloadsDep, stated_once
from service.api.etags import TaggedRoute
from service.api.problems import problem_responses
from service.catalog.changes import read_changes
from service.catalog.entries import CatalogId, Entry
from service.catalog.tables import CatalogChangeRow
from service.workloads.store import in_utc

router = APIRouter(prefix="/catalog", tags=["catalog"], dependencies=[Depends(stated_once)], route_class=TaggedRoute)
MOST_CHANGES: Final = 100
PROBLEMS = problem_responses(
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
EXAMPLE: Final = {
    "number": 7,
    "catalog_revision": 3,
    "kind": "offer",
    "id": "aws-p5.48xlarge-us-east-1",
    "changed_at": "2026-11-22T02:30:00Z",
    "changed_by": "configured key 1f2e3d4c",
    "before": None,
    "after": {"usd_per_hour": 55.04},
}


class ChangesListing(Entry):
    """Which changes to return."""

    kind: Literal["model", "gpu", "offer"] | None = Field(default=None, description="of entries of one kind alone")
    id: CatalogId | None = Field(default=None, description="of the entry with this catalog id alone")
    page_size: Annotated[int, Field(ge=1, le=MOST_CHANGES, description="changes to return at most [count]")] = 20
    before_number: Annotated[int, Field(ge=1, le=1 << 31)] | None = Field(
        default=None, description="only changes before that one; without it, the newest [number]"
    )


class CatalogChange(BaseModel):
    """One entry that a write changed: who, when, before and after."""

    model_config = ConfigDict(frozen=True)

    number: int
    catalog_revision: int
    kind: str
    id: str
    changed_at: datetime
    changed_by: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class CatalogChanges(BaseModel):
    """The newest changes, newest first."""

    model_config = ConfigDict(frozen=True)

    items: tuple[CatalogChange, ...]


@router.get(
    "/changes",
    operation_id="list_catalog_changes",
    summary="Who changed the catalog?",
    dependencies=[KeyDep],
    responses={**PROBLEMS, 200: {"content": {"application/json": {"x-abridged": {"items": [EXAMPLE]}}}}},
)
async def list_catalog_changes(listing: Annotated[ChangesListing, Query()], shelf: WorkloadsDep) -> CatalogChanges:
    """Return every write of models, GPUs and offers over HTTP: who, when, before and after; of deleted ones too."""
    rows = await shelf.look(
        lambda session: read_changes(session, listing.kind, listing.id, listing.page_size, listing.before_number)
    )
    return CatalogChanges(items=tuple(map(_shown, rows)))


def _shown(row: CatalogChangeRow) -> CatalogChange:
    return CatalogChange(
        number=row.number or 0,
        catalog_revision=row.revision,
        kind=row.kind,
        id=row.entry_id,
        changed_at=in_utc(row.changed_at),
        changed_by=row.changed_by,
        before=row.before,
        after=row.after,
    )
