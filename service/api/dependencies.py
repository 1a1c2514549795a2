"""What routes share: the snapshot, the holder of it, settings, and a session for writes."""

import hmac
from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Header, Request
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from service.api.problems import MAX_ERRORS, FieldProblem, ProblemError
from service.catalog.holder import CatalogHolder
from service.catalog.snapshot import Snapshot
from service.engine.time.steps import StepTimers
from service.settings import Settings


async def get_holder(request: Request) -> CatalogHolder:
    """Return the keeper of the snapshot."""
    holder: CatalogHolder = request.app.state.catalog
    return holder


async def get_snapshot(request: Request) -> Snapshot:
    """Return the snapshot in use; a question sees one catalog from start to end."""
    holder: CatalogHolder = request.app.state.catalog
    return holder.snapshot


async def get_timers(request: Request) -> StepTimers:
    """Return the step timers, which every question shares."""
    timers: StepTimers = request.app.state.timers
    return timers


async def get_settings(request: Request) -> Settings:
    """Return the service's settings."""
    settings: Settings = request.app.state.settings
    return settings


LISTS = frozenset({"gpus", "exclude_gpus", "providers", "regions", "weight_formats", "kv_cache_dtypes"})


async def stated_once(request: Request) -> None:
    """Refuse what would be ignored: a field stated twice in a query string, or beside a body."""
    names = [name for name, _ in request.query_params.multi_items()]
    if request.method == "POST" and names:
        detail = "a POST reads its body alone, and the query string would be ignored"
        accepted = "every field in the JSON body, or GET with a query string"
    else:
        names = [name for name in dict.fromkeys(names) if names.count(name) > 1 and name not in LISTS]
        detail, accepted = "stated more than once", "one value"
    if names:
        problems = [FieldProblem(field=name[:100], detail=detail, accepted=accepted) for name in names[:MAX_ERRORS]]
        raise ProblemError(422, "invalid-request", detail, problems)


HolderDep = Annotated[CatalogHolder, Depends(get_holder)]
TimersDep = Annotated[StepTimers, Depends(get_timers)]
SnapshotDep = Annotated[Snapshot, Depends(get_snapshot)]
SettingsDep = Annotated[Settings, Depends(get_settings)]


async def require_key(settings: SettingsDep, x_api_key: Annotated[str | None, Header()] = None) -> None:
    """Let only holders of a configured key write."""
    keys = settings.accepted_keys()
    if not keys:
        raise ProblemError(403, "read-only", "this service has no API key configured, so its catalog is read-only")
    given = (x_api_key or "").encode("utf-8", "surrogateescape")
    matches = [hmac.compare_digest(given, key.encode()) for key in keys]
    if not any(matches):
        raise ProblemError(401, "unauthorized", "writing needs a valid key in the X-API-Key header")


def get_session(holder: HolderDep) -> Iterator[Session]:
    """Yield one transaction per request; commit on success, roll back on any error.

    The snapshot follows at once, so that a writer reads what it wrote.
    """
    try:
        with Session(holder.engine) as session, session.begin():
            yield session
    except SQLAlchemyError as error:
        raise ProblemError(
            503, "database-unavailable", "the catalog database does not answer; nothing was written"
        ) from error
    holder.refresh()


KeyDep = Depends(require_key)
SessionDep = Annotated[Session, Depends(get_session, scope="function")]
