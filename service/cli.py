"""`sizer`: the service's commands. Questions take the same field names as over HTTP."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
import uvicorn
from pydantic import ValidationError

from service.api.answers import CapacityAnswer, RecommendAnswer, SizeAnswer
from service.api.computed import capacity_found, recommended, sized
from service.api.formats import respond
from service.api.openapi import rendered
from service.api.problems import ProblemError
from service.api.questions import CapacityBody, Question, RecommendBody, SizeBody
from service.calibration.accuracy import report, write_readme
from service.calibration.calibrate import SERVING, calibrate, written
from service.calibration.ledger_fit import STARTUPS, fit, text_of
from service.calibration.roofline_fit import fit_roofline
from service.catalog.database import make_engine, migrate, writing
from service.catalog.errors import NotInCatalogError
from service.catalog.keeper import CatalogKeeper, seeded_snapshot
from service.catalog.seed import seed_catalog
from service.engine.errors import EngineError
from service.main import create_app
from service.performance.timers import KernelTimers
from service.settings import Settings

app = typer.Typer(no_args_is_help=True, add_completion=False, help="How many GPUs does this LLM workload need?")
QUESTION_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
USAGE_ERROR = 2
INFEASIBLE = 3


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="port to listen on")] = 8000,
    workers: Annotated[int, typer.Option(help="processes")] = 1,
) -> None:
    """Serve the API."""
    # uvloop starves connections at a hundred clients; the standard loop does not.
    uvicorn.run(
        "service.main:create_app", factory=True, host=host, port=port, workers=workers, loop="asyncio", http="httptools"
    )


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


@app.command("size", context_settings=QUESTION_SETTINGS)
def size_command(context: typer.Context) -> None:
    """Answer how many GPUs: sizer size --model qwen3-32b --gpu h100 --concurrent-requests 32 ..."""
    _answer(context.args, "size")


@app.command("capacity", context_settings=QUESTION_SETTINGS)
def capacity_command(context: typer.Context) -> None:
    """Answer how much load: sizer capacity --model qwen3-32b --gpu h100 --gpu-count 2."""
    _answer(context.args, "capacity")


@app.command("recommend", context_settings=QUESTION_SETTINGS)
def recommend_command(context: typer.Context) -> None:
    """Answer which GPU: sizer recommend --model qwen3-32b --concurrent-requests 32 ..."""
    _answer(context.args, "recommend")


@app.command("export-openapi")
def export_openapi(path: Annotated[Path, typer.Argument(help="file to write")]) -> None:
    """Write the contract."""
    path.write_text(rendered(create_app(Settings())), encoding="utf-8")
    typer.echo(f"wrote {path}")


@app.command()
def accuracy(
    data: Annotated[Path, typer.Option(help="directory with vllm_kv_oracle.jsonl, vllm_startups.jsonl")],
    readme: Annotated[Path | None, typer.Option(help="README whose table is written")] = None,
) -> None:
    """Compare the engine with measurements, and say what was left out and why."""
    found = report(data, seeded_snapshot())
    typer.echo(found.text(), nl=False)
    if readme is not None:
        write_readme(readme, found)


@app.command("fit-ledger")
def fit_ledger(
    data: Annotated[Path, typer.Option(help="directory with vllm_startups.jsonl")],
) -> None:
    """Derive the ledger's constants from logged start-ups, and print them beside engine_rules.yaml."""
    if not (data / STARTUPS).is_file():
        typer.echo(f"{data} has no {STARTUPS}", err=True)
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
    found = calibrate(data, seeded_snapshot(), datetime.now(UTC).date())
    typer.echo(found.text, nl=False)
    if write is not None:
        written(found.rows, write)


def _answer(arguments: list[str], kind: str) -> None:
    """Print the answer to a question; a refusal goes to standard error with exit code 2."""
    try:
        fields = _fields(arguments)
        settings = Settings()
        holder = CatalogKeeper(make_engine(settings.database_url), None, settings.snapshot_poll_seconds)
        typer.echo(_answered(kind, fields, holder), nl=False)
    except ValidationError as error:
        for it in error.errors():
            name = ".".join(str(part) for part in it["loc"]) or "question"
            typer.echo(f"{name}: {it['msg']}", err=True)
        raise typer.Exit(USAGE_ERROR) from error
    except NotInCatalogError as error:
        hint = f"; did you mean {', '.join(error.suggestions)}?" if error.suggestions else ""
        typer.echo(f"{error}{hint}", err=True)
        raise typer.Exit(USAGE_ERROR) from error
    except (EngineError, ProblemError) as error:
        typer.echo(error.detail, err=True)
        raise typer.Exit(INFEASIBLE if getattr(error, "kind", "") == "infeasible" else USAGE_ERROR) from error


def _answered(kind: str, fields: dict[str, Any], holder: CatalogKeeper) -> str:
    snapshot, timers = holder.snapshot, KernelTimers()
    if kind == "size":
        asked = SizeBody.model_validate(fields)
        return _written(sized(asked, snapshot, timers), asked)
    if kind == "capacity":
        given = CapacityBody.model_validate(fields)
        return _written(capacity_found(given, snapshot, timers), given)
    wanted = RecommendBody.model_validate(fields)
    return _written(recommended(wanted, snapshot, timers), wanted)


def _written(answer: SizeAnswer | CapacityAnswer | RecommendAnswer, question: Question) -> str:
    return bytes(respond(answer, question).body).decode()


def _fields(arguments: list[str]) -> dict[str, Any]:
    """Return `--field-name value` pairs as fields; a model config is read from a file."""
    fields: dict[str, Any] = {}
    pending = list(arguments)
    while pending:
        option = pending.pop(0)
        if not option.startswith("--"):
            raise _usage(f"{option!r} is not an option; write --field value")
        name, given, value = option[2:].partition("=")
        if not given:
            if not pending:
                raise _usage(f"--{name} has no value")
            value = pending.pop(0)
        fields[name.replace("-", "_")] = value
    path = fields.get("model_config")
    if path is not None:
        try:
            fields["model_config"] = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise _usage(f"--model-config {path}: not a readable JSON file") from error
    return fields


def _usage(detail: str) -> ProblemError:
    return ProblemError(USAGE_ERROR, "usage", detail)


def main() -> None:
    """Run the command line."""
    app()
