"""Liveness and readiness."""

from fastapi import APIRouter
from pydantic import BaseModel

from service.api.dependencies import HolderDep

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
    database_is_up: bool


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
                    "example": {
                        "status": "ready",
                        "catalog_revision": 1,
                        "models": 122,
                        "gpus": 50,
                        "database_is_up": True,
                    }
                }
            }
        }
    },
)
async def readyz(holder: HolderDep) -> Ready:
    """Answer with the revision in use."""
    snapshot = holder.snapshot
    return Ready(
        status="ready",
        catalog_revision=snapshot.revision,
        models=len(snapshot.model_entries),
        gpus=len(snapshot.gpus),
        database_is_up=holder.database_is_up,
    )
