"""`sizer`: the service's commands. Questions take the same field names as over HTTP."""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import typer
import uvicorn
from pydantic import ValidationError

from service.access.commands import keys
from service.api.connections import IDLE_S, Connection
from service.api.openapi import rendered
from service.calibration.fits.constants import SERVING, calibrate
from service.calibration.fits.constants import written as calibration_written
from service.calibration.fits.ledger import STARTUPS, fit, text_of
from service.calibration.fits.roofline import fit_roofline
from service.calibration.report import report, write_page
from service.catalog.database import make_engine, migrate, writing
from service.catalog.faults import told
from service.catalog.keeper import CatalogKeeper, seeded_snapshot
from service.catalog.offer_files import Stated, read_price_list
from service.catalog.offer_import import differences, take_offers
from service.catalog.seed import seed_catalog
from service.cli_questions import USAGE_ERROR, add_question, refuse, said
from service.cli_server import BatchFormat, Server, questions_of
from service.client import Asks
from service.engine.errors import EngineError
from service.engine.time.ready import make_ready
from service.main import create_app
from service.measurements.checking import check, lines_of
from service.measurements.corrections import StoredMeasurements
from service.measurements.stored_list import measurements, store
from service.performance.kernel_tables import InProcess, KernelTables
from service.performance.stored import TableFiles
from service.performance.timers import KernelTimers
from service.performance.warming import build_tables
from service.questions.asked import Desk
from service.questions.refusals import Fault, RefusalError
from service.questions.registry import QUESTIONS
from service.settings import PREFIX, Settings, unknown_settings
from service.warm import asked_most, whole_catalog

app = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, help="How many GPUs does this LLM workload need?"
)
offers = typer.Typer(no_args_is_help=True, help="The catalog's offers.")
app.add_typer(offers, name="offers")
app.add_typer(keys, name="keys")
app.add_typer(measurements, name="measurements")
BACKLOG = 512  # connections that wait to be taken


@app.callback()
def elsewhere(
    context: typer.Context,
    server: Annotated[
        str | None, typer.Option(envvar="SIZER_SERVER", help="a running service, which questions are then asked of")
    ] = None,
    key: Annotated[str | None, typer.Option(envvar="SIZER_KEY", help="a key of that service", show_envvar=True)] = None,
) -> None:
    """How many GPUs does this LLM workload need?"""
    context.obj = None if server is None else Server(server, key)


@app.command("batch")
def batch_command(
    context: typer.Context,
    question: Annotated[Asks, typer.Argument(help="which question")],
    path: Annotated[Path, typer.Argument(metavar="FILE", help="CSV under the names of fields, or JSON")],
    written: Annotated[BatchFormat, typer.Option("--format", help="how the answers are written")] = "csv",
) -> None:
    """Ask a running service up to a thousand questions of a file: sizer --server URL batch size FILE."""
    if context.obj is None:
        refuse("batch needs a running service: sizer --server URL batch ...")
    context.obj.batch(question, questions_of(path), written)


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="address to listen on; ::, all of both kinds")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="port to listen on")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=256, help="processes")] = 1,
) -> None:
    """Serve the API."""
    settings = Settings()
    for line in unknown_settings():
        typer.echo(line, err=True)
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


@app.command("migrate")
def migrate_command() -> None:
    """Bring the database to the newest schema."""
    migrate(make_engine(Settings().database_url))
    typer.echo("migrated")


@app.command()
def seed(
    force: Annotated[bool, typer.Option("--force", help="replace what was written over the API, too")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Load the seed files; what was written over the API is left alone, and a second run changes nothing."""
    with writing(make_engine(Settings().database_url)) as session, session.begin():
        seeded = seed_catalog(session, force=force)
    typer.echo(seeded.text())


@offers.command("import")
def import_offers(
    file: Annotated[Path, typer.Argument(help="CSV: own columns, gpuhunt's, or SkyPilot's vms.csv")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show the differences and write nothing")] = False,
    provider: Annotated[str | None, typer.Option(help="of another catalog's file; default: as it is called")] = None,
    as_of: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="day of another catalog's file")] = None,
    skip_unknown_gpus: Annotated[
        bool, typer.Option("--skip-unknown-gpus", help="leave out lines of GPUs the catalog has not")
    ] = False,
) -> None:
    """Take a price list: all of it, or nothing where one line is at fault."""
    settings = Settings()
    keeper = CatalogKeeper(make_engine(settings.database_url), None, settings.snapshot_poll_seconds)
    stated = Stated(
        provider=provider,
        as_of=None if as_of is None else as_of.date(),
        checked_on=datetime.now(UTC).date(),
        skip_unknown_gpus=skip_unknown_gpus,
    )
    try:
        listed = read_price_list(file, keeper.snapshot, stated)
    except OSError:
        refuse(f"{file}: not a readable file")
    if listed.faults:
        refuse(*listed.faults, "nothing was written")
    for gpu in listed.skipped_gpus:
        typer.echo(f"skipped: the catalog has no GPU {gpu}", err=True)
    if dry_run:
        found = differences(keeper.snapshot.offer_entries, listed.offers)
    else:
        with writing(make_engine(settings.database_url)) as session, session.begin():
            found = take_offers(session, listed.offers)
    typer.echo("\n".join(found.lines()))


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


@app.command()
def accuracy(
    data: Annotated[Path, typer.Option(help="directory with vllm_kv_oracle.jsonl, vllm_startups.jsonl")],
    page: Annotated[Path | None, typer.Option(help="page whose table is written")] = None,
) -> None:
    """Compare the engine with measurements, and say what was left out and why."""
    compared = report(data, seeded_snapshot())
    typer.echo(compared.text(), nl=False)
    if page is not None:
        write_page(page, compared)


@app.command("fit-ledger")
def fit_ledger(
    data: Annotated[Path, typer.Option(help="directory with vllm_startups.jsonl")],
) -> None:
    """Derive the ledger's constants from logged start-ups, and print them beside engine_rules.yaml."""
    if not (data / STARTUPS[0]).is_file():
        typer.echo(f"{data} has no {STARTUPS[0]}", err=True)
        raise typer.Exit(USAGE_ERROR)
    typer.echo(text_of(fit(data, seeded_snapshot())), nl=False)


@app.command("fit-roofline")
def fit_roofline_command() -> None:
    """Derive the roofline's efficiencies from measured kernels; print the rows of calibration.yaml."""
    for row in fit_roofline(seeded_snapshot()):
        typer.echo("- {" + ", ".join(f"{name}: {value}" for name, value in row.items()) + "}")


@app.command("fit-serving")
def fit_serving(
    data: Annotated[Path, typer.Option(help="directory with serving.jsonl")],
    write: Annotated[Path | None, typer.Option(help="calibration.yaml whose rows are replaced")] = None,
) -> None:
    """Derive the factors of step times from published runs; print errors on groups fitted on and left out."""
    if not (data / SERVING).is_file():
        raise typer.BadParameter(f"{data / SERVING} is not there")
    fitted = calibrate(data, seeded_snapshot(), datetime.now(UTC).date())
    typer.echo(fitted.text, nl=False)
    if write is not None:
        calibration_written(fitted, write)


@app.command("check", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def check_command(
    context: typer.Context,
    path: Annotated[str, typer.Argument(metavar="LOG", help="a log or a benchmark's JSON; - reads the standard input")],
    *,
    is_stored: Annotated[bool, typer.Option("--store", help="answers rest on it from now on")] = False,
) -> None:
    """Hold a start-up log or a benchmark against the prediction: sizer check LOG --gpu h100, or ... | sizer check -."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        refuse(f"{path}: not a readable file")
    settings = Settings()
    keeper = CatalogKeeper(make_engine(settings.database_url), None, settings.snapshot_poll_seconds)
    try:
        corrections = StoredMeasurements()
        desk = Desk(KernelTimers(KernelTables(TableFiles(settings.tables_path), InProcess())), corrections=corrections)
        checked = check(text, _pairs(context.args), keeper.snapshot, desk)
        if is_stored:
            checked = replace(checked, stored=store(checked, keeper, desk, corrections))
    except EngineError as error:
        refuse(said(Fault(error.field, error.detail, error.accepted)))
    except RefusalError as error:
        refuse(*map(said, error.faults))
    typer.echo("\n".join(lines_of(checked)))


def _pairs(words: Sequence[str]) -> dict[str, str]:
    """Return `--field value` as fields."""
    pairs: dict[str, str] = {}
    for word, value in zip_longest(words[::2], words[1::2]):
        if not word.startswith("--") or value is None:
            refuse(f"{word!r}: write --field value")
        pairs[word.removeprefix("--").replace("-", "_")] = value
    return pairs


for asked_for in QUESTIONS:
    add_question(app, asked_for)


def main() -> None:
    """Run the command line; a setting that cannot be used is told in a line of its own."""
    try:
        app()
    except ValidationError as error:
        if error.title != Settings.__name__:
            raise
        for line in told(error):
            typer.echo(_of_setting(line), err=True)
        sys.exit(USAGE_ERROR)


def _of_setting(line: str) -> str:
    """Return what is wrong with a setting under the name of its variable."""
    name, _, what = line.partition(":")
    return f"{PREFIX}{name.upper()}:{what}"
