"""Liveness and readiness."""

from time import time

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from service.api.dependencies import KeeperDep, ProbeDep
from service.api.media import EXPOSITION
from service.api.telemetry import Sight
from service.catalog.health import Origin

router = APIRouter(tags=["health"])


class Live(BaseModel):
    """The process answers."""

    status: str


class Ready(BaseModel):
    """The catalog is loaded; the database may be away, which costs writes only."""

    status: str
    catalog_revision: int
    models: int
    gpus: int
    database_is_up: bool = Field(description="whether the database answered when it was just asked")
    catalog_origin: Origin = Field(description="where the catalog in use was read from")
    catalog_age_s: float | None = Field(
        description="for how long it may have been out of date; null: never confirmed [s]"
    )
    catalog_is_stale: bool = Field(description="whether that is more than five minutes")
    refresh_failures: int = Field(description="refreshes that failed or were refused, since the start [count]")
    last_refresh_error: str | None = Field(description="why the last refresh failed; null where it worked")


@router.get(
    "/livez",
    operation_id="get_livez",
    summary="Is the process alive?",
    responses={200: {"content": {"application/json": {"example": {"status": "live"}}}}},
)
async def livez() -> Live:
    """Answer without looking at anything."""
    return Live(status="live")


@router.get(
    "/readyz",
    operation_id="get_readyz",
    summary="Is the catalog loaded?",
    responses={
        200: {
            "content": {
                "application/json": {
                    "x-abridged": {
                        "status": "ready",
                        "catalog_revision": 1,
                        "models": 122,
                        "gpus": 50,
                        "database_is_up": True,
                        "catalog_origin": "database",
                        "catalog_age_s": 1.2,
                        "catalog_is_stale": False,
                        "refresh_failures": 0,
                        "last_refresh_error": None,
                    }
                }
            }
        }
    },
)
async def readyz(keeper: KeeperDep, probe: ProbeDep) -> Ready:
    """Answer with the revision in use, and how it stands to the database."""
    is_up = await probe.database_is_up()
    snapshot, health, now = keeper.snapshot, keeper.health, time()
    age_s = health.age_s(now)
    return Ready(
        status="ready",
        catalog_revision=snapshot.revision,
        models=len(snapshot.model_entries),
        gpus=len(snapshot.gpus),
        database_is_up=is_up,
        catalog_origin=health.origin,
        catalog_age_s=None if age_s is None else round(age_s, 1),
        catalog_is_stale=health.is_stale(now),
        refresh_failures=health.failures,
        last_refresh_error=health.last_error,
    )


@router.get(
    "/metrics",
    operation_id="get_metrics",
    summary="How is the service doing?",
    response_class=Response,
    responses={
        200: {
            "description": "Counts and times by route, and the state of catalog and queues, as Prometheus reads them.",
            "content": {"text/plain": {"schema": {"type": "string"}, "example": "sizer_catalog_revision 1.0\n"}},
        }
    },
)
async def metrics(request: Request) -> Response:
    """Answer with this process' counts; of several workers each has its own."""
    sight: Sight = request.app.state.sight
    return Response(sight.text(), media_type=EXPOSITION)
