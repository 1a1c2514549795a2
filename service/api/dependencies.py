"""What routes share: the snapshot, its keeper, settings, and who may write."""

import hmac
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader

from service.api.importer import Importer
from service.api.probe import Probe
from service.api.problems import MAX_ERRORS, FieldProblem, ProblemError
from service.api.writes import CatalogWriter
from service.catalog.keeper import CatalogKeeper
from service.catalog.snapshot import Snapshot
from service.engine.time.steps import StepTimers
from service.settings import Settings


async def get_keeper(request: Request) -> CatalogKeeper:
    """Return the keeper of the snapshot."""
    keeper: CatalogKeeper = request.app.state.catalog
    return keeper


async def get_snapshot(request: Request) -> Snapshot:
    """Return the snapshot in use; a question sees one catalog from start to end."""
    keeper: CatalogKeeper = request.app.state.catalog
    return keeper.snapshot


async def get_writer(request: Request) -> CatalogWriter:
    """Return who writes to the catalog."""
    writer: CatalogWriter = request.app.state.writer
    return writer


async def get_importer(request: Request) -> Importer:
    """Return who asks the hub."""
    importer: Importer = request.app.state.importer
    return importer


async def get_probe(request: Request) -> Probe:
    """Return who asks the database whether it is there."""
    probe: Probe = request.app.state.probe
    return probe


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


KeeperDep = Annotated[CatalogKeeper, Depends(get_keeper)]
ImporterDep = Annotated[Importer, Depends(get_importer)]
ProbeDep = Annotated[Probe, Depends(get_probe)]
WriterDep = Annotated[CatalogWriter, Depends(get_writer)]
TimersDep = Annotated[StepTimers, Depends(get_timers)]
SnapshotDep = Annotated[Snapshot, Depends(get_snapshot)]
SettingsDep = Annotated[Settings, Depends(get_settings)]


KEY_HEADER = APIKeyHeader(name="X-API-Key", scheme_name="apiKey", description="needed to write", auto_error=False)


async def require_key(settings: SettingsDep, key: Annotated[str | None, Security(KEY_HEADER)]) -> None:
    """Let only holders of a configured key write."""
    keys = settings.accepted_keys()
    if not keys:
        raise ProblemError(403, "read-only", "this service has no API key configured, so its catalog is read-only")
    given = (key or "").encode("utf-8", "surrogateescape")
    matches = [hmac.compare_digest(given, accepted.encode()) for accepted in keys]
    if not any(matches):
        challenge = {"WWW-Authenticate": "APIKey"}
        raise ProblemError(401, "unauthorized", "writing needs a valid key in the X-API-Key header", headers=challenge)


KeyDep = Depends(require_key)
