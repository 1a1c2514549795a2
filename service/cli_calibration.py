"""The commands that hold the engine against measurements, and fit its constants on them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from service.calibration.fits.constants import SERVING, calibrate
from service.calibration.fits.constants import written as calibration_written
from service.calibration.fits.ledger import STARTUPS, fit, text_of
from service.calibration.fits.roofline import fit_roofline
from service.calibration.fits.standing import Standing
from service.calibration.report import MEASURED, report, write_page
from service.catalog.keeper import seeded_snapshot
from service.cli_words import USAGE_ERROR, commands, refuse
from service.engine import EngineName

app = commands()


@app.command()
def accuracy(
    data: Annotated[Path, typer.Option(help="directory with vllm_kv_oracle.jsonl, vllm_startups.jsonl, serving.jsonl")],
    page: Annotated[Path | None, typer.Option(help="page whose table is written")] = None,
) -> None:
    """Compare the engine with measurements, and say what was left out and why."""
    compared = report(data, seeded_snapshot())
    if not compared.lines:
        refuse(f"--data {data}: holds nothing to compare with; accepted: a directory with one of {', '.join(MEASURED)}")
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
    engine: Annotated[EngineName | None, typer.Option(help="whose rows alone are fitted and replaced")] = None,
    keep: Annotated[bool, typer.Option(help="judge the constants that stand, and fit none")] = False,  # noqa: FBT002
) -> None:
    """Derive the factors of step times from published runs; print errors on groups fitted on and left out."""
    if not (data / SERVING).is_file():
        raise typer.BadParameter(f"{data / SERVING} is not there")
    kept = Standing() if keep else None
    fitted = calibrate(data, seeded_snapshot(), datetime.now(UTC).date(), engine, kept)
    typer.echo(fitted.text, nl=False)
    if write is not None:
        calibration_written(fitted, write)
