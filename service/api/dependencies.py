"""What routes share: the snapshot, its keeper, settings, and who may write."""

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Final

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader

from service.access.keys import Caller
from service.api.access import get_caller, unauthorized
from service.api.fields import known_fields, repeatable_fields
from service.api.importer import Importer
from service.api.probe import Probe
from service.api.reception import Reception
from service.api.shelf import Shelf
from service.api.writes import CatalogWriter
from service.catalog.keeper import CatalogKeeper
from service.catalog.snapshot import Snapshot
from service.measurements.corrections import StoredMeasurements
from service.questions.refusals import MOST_FAULTS, MOST_NAME_SHOWN, Fault, RefusalError, stated_twice
from service.settings import Settings
from service.workloads.traffic import Traffic
from service.workloads.workload import Workload

WITH_BODY: Final = frozenset({"POST", "PUT"})
IN_BODY: Final = "every field in the JSON body"
NO_QUERY: Final = "this path without a query string"
IN_BATCH: Final = "every field in its question; the header Accept says how answers are written"


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


async def get_reception(request: Request) -> Reception:
    """Return where questions come in."""
    reception: Reception = request.app.state.reception
    return reception


async def get_workloads(request: Request) -> Shelf[Mapping[str, Workload]]:
    """Return the shelf of workloads."""
    shelf: Shelf[Mapping[str, Workload]] = request.app.state.workloads
    return shelf


async def get_traffic(request: Request) -> Traffic:
    """Return who knows the load of workloads."""
    traffic: Traffic = request.app.state.traffic
    return traffic


async def get_settings(request: Request) -> Settings:
    """Return the service's settings."""
    settings: Settings = request.app.state.settings
    return settings


async def stated_once(request: Request) -> None:
    """Refuse what would be ignored: a field stated twice, or in a query string beside a body."""
    stated = Counter(name for name, _ in request.query_params.multi_items())
    if request.method in WITH_BODY and stated:
        detail = f"a {request.method} reads its body alone, and the query string would be ignored"
        has_query = request.url.path.removeprefix("/") in request.app.state.questions
        is_batch = request.url.path.endswith(":batch")
        accepted = f"{IN_BODY}, or GET with a query string" if has_query else IN_BATCH if is_batch else IN_BODY
        faults = (Fault(name[:MOST_NAME_SHOWN], detail, accepted) for name in islice(stated, MOST_FAULTS))
        raise RefusalError("invalid-request", detail, *faults)
    twice = [name for name, count in stated.items() if count > 1]
    if twice:
        lists, known = repeatable_fields(request), known_fields(request)
        is_question = request.url.path.removeprefix("/") in request.app.state.questions
        # What no question reads is told as such, beside every other fault, and not asked for once.
        twice = [name for name in twice if name not in lists and (name in known or not is_question)]
    twice += getattr(request.state, "stated_twice", ())
    if twice:
        raise stated_twice(twice)


async def no_query(request: Request) -> None:
    """Refuse a query string where a path reads none: a format, or a misspelt field, would be ignored."""
    stated = dict.fromkeys(name[:MOST_NAME_SHOWN] for name in request.query_params)
    if stated:
        faults = (Fault(name, "unknown field", NO_QUERY) for name in islice(stated, MOST_FAULTS))
        raise RefusalError("invalid-request", "this path reads no query string", *faults)


async def get_measured(request: Request) -> StoredMeasurements:
    """Return what derives corrections from stored measurements."""
    measured: StoredMeasurements = request.app.state.measured
    return measured


KeeperDep = Annotated[CatalogKeeper, Depends(get_keeper)]
ImporterDep = Annotated[Importer, Depends(get_importer)]
ReceptionDep = Annotated[Reception, Depends(get_reception)]
ProbeDep = Annotated[Probe, Depends(get_probe)]
WriterDep = Annotated[CatalogWriter, Depends(get_writer)]
SnapshotDep = Annotated[Snapshot, Depends(get_snapshot)]
CallerDep = Annotated[Caller, Depends(get_caller)]
MeasuredDep = Annotated[StoredMeasurements, Depends(get_measured)]
WorkloadsDep = Annotated[Shelf[Mapping[str, Workload]], Depends(get_workloads)]
TrafficDep = Annotated[Traffic, Depends(get_traffic)]
SettingsDep = Annotated[Settings, Depends(get_settings)]


KEY_HEADER = APIKeyHeader(name="X-API-Key", scheme_name="apiKey", description="needed to write", auto_error=False)


async def require_key(request: Request, _key: Annotated[str | None, Security(KEY_HEADER)]) -> None:
    """Let only holders of a key write; which scope it needs stands in the matrix, and was checked before.

    Raises:
        ProblemError: nobody checked it.
    """
    if (await get_caller(request)).scope is None:
        raise unauthorized()


KeyDep = Depends(require_key)
NoQueryDep = Depends(no_query)
