"""The commands of who runs the service: serve, warm, the contract."""

import gc
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Final

import typer
import uvicorn

from service.api.connections import IDLE_S, Connection
from service.api.openapi import rendered
from service.catalog.database import make_engine
from service.catalog.keeper import CatalogKeeper
from service.cli_words import commands
from service.engine.time.ready import make_ready
from service.main import create_app
from service.performance.kernel_tables import InProcess, KernelTables
from service.performance.stored import TableFiles
from service.performance.warming import build_tables
from service.settings import Settings
from service.warm import asked_most, whole_catalog

app = commands()
BACKLOG: Final = 512  # connections that wait to be taken


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="address to listen on; ::, all of both kinds")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="port to listen on")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=256, help="processes")] = 1,
) -> None:
    """Serve the API."""
    settings = Settings()
    signal.signal(signal.SIGTERM, _end)
    gc.disable()  # until the service runs, which turns it on
    # uvloop starves connections at a hundred clients; the standard loop does not.
    uvicorn.run(
        "service.main:create_app",
        factory=True,
        host="" if host == "::" and workers == 1 else host,  # "::" would be of IPv6 alone, and "" is every address
        port=port,
        workers=workers,
        loop="asyncio",
        http=Connection,
        ws="none",
        server_header=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=settings.shutdown_seconds,
        access_log=settings.access_log,
        backlog=BACKLOG,
    )


def _end(*_: object) -> None:
    """End as asked: the server raises the signal again once all is closed, which by itself would be a failure."""
    sys.stdout.flush()
    os._exit(0)


@app.command("warm")
def warm_command(
    *, popular: Annotated[bool, typer.Option(help="popular models alone, not the whole catalog")] = False
) -> None:
    """Compile what is compiled, and build step times from measured kernels, so that no question waits for either."""
    settings = Settings()
    make_ready()
    snapshot = CatalogKeeper(make_engine(settings.database_url), None, settings.snapshot_poll_seconds).snapshot
    wanted = asked_most(snapshot) if popular else whole_catalog(snapshot)
    built = build_tables(KernelTables(TableFiles(settings.tables_path), InProcess()), wanted)
    typer.echo(f"built: {built} tables")


@app.command("export-openapi")
def export_openapi(path: Annotated[Path, typer.Argument(help="file to write")]) -> None:
    """Write the contract."""
    path.write_text(rendered(create_app(Settings())), encoding="utf-8")
    typer.echo(f"wrote {path}")
