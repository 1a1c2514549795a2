"""What the service holds while it runs: made at start-up, closed at the end in the other order."""

import gc
import logging
import sys
from asyncio import create_task, sleep, to_thread
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count
from typing import Any, Final

from starlette.applications import Starlette

from service.access.keys import read_keys
from service.api.ahead import Ahead
from service.api.importer import Importer
from service.api.probe import Probe
from service.api.reception import Reception
from service.api.shelf import Shelf
from service.api.writes import CatalogWriter
from service.catalog.database import make_engine
from service.catalog.keeper import CatalogKeeper
from service.freed import give_back_freed
from service.measurements.corrections import StoredMeasurements
from service.outward.reader import JsonReader
from service.performance.builder import Builder
from service.performance.kernel_tables import KernelTables
from service.performance.stored import TableFiles
from service.performance.timers import KernelTimers
from service.performance.warming import Warming
from service.questions.asked import Desk
from service.settings import Settings
from service.warm import asked_most
from service.workloads.disk import FILE, WorkloadFile
from service.workloads.store import read_workloads
from service.workloads.traffic import Traffic

SWITCH_S: Final = 1e-4
# A look through everything for garbage stops all threads, for 60 ms and more: when nobody waits, not amid an overload.
LOOKED_THROUGH_AFTER: Final = (2_000, 10, 200)
TIDY_EVERY_S: Final = 20.0
AT_LEAST_EACH: Final = 3
PROMETHEUS_S: Final = 2.0  # an autoscaler waits three seconds in all
PROVIDER_S: Final = 5.0


@asynccontextmanager
async def running(app: Starlette, settings: Settings) -> AsyncIterator[None]:
    """Keep everything that answers and writes in the application's state, for as long as it runs."""
    async with AsyncExitStack() as closing:
        gc.disable()  # until all is read: what is made by then lives on, and looking through it takes a quarter of it
        closing.callback(gc.enable)
        timers = KernelTimers(KernelTables(TableFiles(settings.tables_path), Builder()))
        closing.callback(timers.close)
        keeper = _open_catalog(app, settings, closing)
        warming = Warming(timers.tables, asked_most(keeper.snapshot) if settings.builds_ahead else ())
        closing.callback(warming.close)
        # Every socket call of the event loop gives the interpreter away; threads that compute hand it back this soon.
        sys.setswitchinterval(SWITCH_S)
        app.state.measured = StoredMeasurements()
        app.state.reception = Reception(Desk(timers, corrections=app.state.measured), settings.question_seconds)
        closing.callback(app.state.reception.close)
        app.state.sight.watch(keeper, app.state.reception)
        _open_outward(app, settings, closing)
        keeper.start_polling()
        _settle(keeper)
        tidying = create_task(_tidying(app.state.reception, keeper))
        closing.callback(tidying.cancel)
        if settings.builds_ahead:
            ahead = create_task(Ahead(app.state.workloads, keeper, app.state.reception).run())
            closing.callback(ahead.cancel)
        yield


def _open_catalog(app: Starlette, settings: Settings, closing: AsyncExitStack) -> CatalogKeeper:
    """Read the catalog, and open what reads and writes its database beside it."""
    keeper = CatalogKeeper(make_engine(settings.database_url), settings.snapshot_path, settings.snapshot_poll_seconds)
    closing.callback(keeper.close)
    file = WorkloadFile(settings.snapshot_path.with_name(FILE))
    state, seconds = app.state, settings.write_seconds
    state.catalog = keeper
    state.keys = Shelf("key", keeper.engine, read_keys, seconds)
    state.workloads = Shelf("workload", keeper.engine, read_workloads, seconds, file)
    state.probe, state.writer, state.importer = Probe(keeper), CatalogWriter(keeper, seconds), Importer(settings)
    closing.callback(state.keys.close)
    closing.callback(state.workloads.close)
    closing.callback(state.probe.lane.close)
    closing.callback(state.writer.lane.close)
    closing.callback(partial(state.importer.lane.close, at_once=True))  # a hub may take its time
    return keeper


def _open_outward(app: Starlette, settings: Settings, closing: AsyncExitStack) -> None:
    """Open what asks others: who checks tokens, and Prometheus."""
    outward = JsonReader(PROMETHEUS_S, may_be_private=settings.private_addresses)
    app.state.traffic = Traffic(outward, settings.allowed_prometheus())
    app.state.tokens = _tokens(settings)
    if app.state.tokens is not None:
        closing.push_async_callback(app.state.tokens.close)
    closing.push_async_callback(app.state.traffic.close)


def _settle(keeper: CatalogKeeper) -> None:
    """Say what is known, and leave it out of what is looked through for garbage: 150,000 objects that live on."""
    gc.enable()
    gc.freeze()  # with the little garbage of the start: to look for it takes longer than all the rest here
    gc.set_threshold(*LOOKED_THROUGH_AFTER)
    catalog = keeper.snapshot
    logging.getLogger("uvicorn.error").info(
        "catalog revision %d: %d models, %d GPUs", catalog.revision, len(catalog.model_entries), len(catalog.gpus)
    )


async def _tidying(reception: Reception, keeper: CatalogKeeper) -> None:
    """Look for garbage that refers to itself, and give back what is free, when nobody waits; else, seldom.

    Configs that no question needed yet are read then too: some answers compare every model.
    """
    for number in count(1):
        await sleep(TIDY_EVERY_S)
        if reception.is_idle:
            await to_thread(keeper.snapshot.built_models.read_all)
        if (reception.is_idle and gc.get_count()[2] > 0) or number % AT_LEAST_EACH == 0:
            gc.collect()
            await to_thread(give_back_freed)


def _tokens(settings: Settings) -> Any:
    """Return who reads tokens; None where nobody's are taken."""
    if not settings.oidc_issuer:
        return None
    from service.access.tokens import Provider, Tokens  # noqa: PLC0415 - cryptography, which few services need

    provider = Provider(
        issuer=settings.oidc_issuer,
        audience=settings.oidc_audience,
        algorithms=settings.oidc_algorithms,
        jwks_url=settings.oidc_jwks_url or None,
        scope_claim=settings.oidc_scope_claim,
        scope_prefix=settings.oidc_scope_prefix,
        leeway_s=settings.oidc_leeway_seconds,
    )
    return Tokens(provider, JsonReader(PROVIDER_S, may_be_private=settings.private_addresses))
