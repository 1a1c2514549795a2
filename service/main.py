"""Composition root: wires settings, catalog, routers and error handlers."""

import gc
import logging
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from service.access.keys import read_keys
from service.api import problems
from service.api.access import Access
from service.api.docs import install_docs
from service.api.front import Front
from service.api.headers import SecurityHeaders
from service.api.heads import Heads
from service.api.importer import Importer
from service.api.kept import KeptReplies
from service.api.media import JsonBodies
from service.api.openapi import install_openapi
from service.api.probe import Probe
from service.api.reception import Reception
from service.api.replies import Replies
from service.api.routers import catalog, health, measurements, outside, workloads
from service.api.routers.batches import batches_router
from service.api.routers.questions import questions_router
from service.api.shelf import Shelf
from service.api.telemetry import Seen, Sight
from service.api.writes import CatalogWriter
from service.catalog.database import make_engine
from service.catalog.keeper import CatalogKeeper
from service.measurements.corrections import StoredMeasurements
from service.outward.reader import JsonReader
from service.performance.builder import Builder
from service.performance.kernel_tables import KernelTables
from service.performance.stored import TableFiles
from service.performance.timers import KernelTimers
from service.performance.warming import Warming
from service.questions.asked import Desk, Question
from service.questions.registry import QUESTIONS
from service.settings import Settings
from service.warm import asked_most
from service.workloads.store import read_workloads
from service.workloads.traffic import Traffic

SWITCH_S = 1e-4
PROMETHEUS_S = 2.0  # an autoscaler waits three seconds in all
PROVIDER_S = 5.0
VERSION = "0.1.0"
DESCRIPTION = (
    "How many GPUs does this LLM workload need? The serving engine's own number, the reason for it, "
    "its price, and the flags that deploy it."
)


def create_app(settings: Settings | None = None, questions: Sequence[Question] = QUESTIONS) -> FastAPI:
    """Return the service. Nothing happens on import; everything happens here and at start-up."""
    settings, kept = settings or Settings(), KeptReplies()
    paths = frozenset(f"/{question.name}" for question in questions)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Front | None]]:
        keeper = CatalogKeeper(
            make_engine(settings.database_url), settings.snapshot_path, settings.snapshot_poll_seconds
        )
        app.state.catalog = keeper
        app.state.writer, app.state.importer, app.state.probe = (
            CatalogWriter(keeper, settings.write_seconds),
            Importer(settings),
            Probe(keeper),
        )
        app.state.workloads = Shelf("workload", keeper.engine, read_workloads, settings.write_seconds)
        app.state.keys = Shelf("key", keeper.engine, read_keys, settings.write_seconds)
        outward = JsonReader(PROMETHEUS_S, may_be_private=settings.private_addresses)
        app.state.traffic = Traffic(outward, settings.allowed_prometheus())
        app.state.tokens = _tokens(settings)
        timers = KernelTimers(KernelTables(TableFiles(settings.tables_path), Builder()))
        # Every socket call of the event loop gives the interpreter away; threads that compute hand it back this soon.
        sys.setswitchinterval(SWITCH_S)
        app.state.measured = StoredMeasurements()
        desk = Desk(timers, corrections=app.state.measured)
        app.state.reception = Reception(desk, settings.question_seconds)
        app.state.sight.watch(keeper, app.state.reception)
        warming = Warming(timers.tables, asked_most(keeper.snapshot))
        keeper.start_polling()
        # A catalog has 150,000 objects that live on: to look through them for garbage takes a tenth of a second.
        gc.collect()
        gc.freeze()
        logging.getLogger("uvicorn.error").info(
            "catalog revision %d: %d models, %d GPUs",
            keeper.snapshot.revision,
            len(keeper.snapshot.model_entries),
            len(keeper.snapshot.gpus),
        )
        # Who needs a key to ask, or writes a line of uvicorn's own, goes the long way.
        is_plain = not settings.reads_need_key and not settings.access_log
        yield {"front": Front(paths, kept, keeper, app.state.reception, app.state.sight) if is_plain else None}
        await app.state.traffic.close()
        if app.state.tokens is not None:
            await app.state.tokens.close()
        app.state.reception.close()
        app.state.importer.lane.close(at_once=True)  # a hub may take its time
        app.state.writer.lane.close()
        app.state.probe.lane.close()
        app.state.workloads.close()
        app.state.keys.close()
        keeper.close()
        warming.close()
        timers.close()

    app = FastAPI(
        title="Sizer",
        version=VERSION,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        swagger_ui_oauth2_redirect_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.settings, app.state.sight = settings, Sight(writes_lines=settings.json_log)
    app.state.questions = {question.name: question for question in questions}
    problems.install(app)
    for router in (
        questions_router(questions),
        batches_router(questions),
        measurements.router,
        workloads.router,
        outside.router,
        catalog.router,
        health.router,
    ):
        app.include_router(router, max_body_size=settings.max_body_bytes)
    install_docs(app)
    install_openapi(app)
    app.add_middleware(JsonBodies, max_body_bytes=settings.max_body_bytes)
    app.add_middleware(Replies, paths=paths, kept=kept)
    app.add_middleware(Access, settings=settings)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Seen, sight=app.state.sight, paths=paths)
    app.add_middleware(Heads)
    return app


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
