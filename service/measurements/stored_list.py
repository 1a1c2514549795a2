"""`sizer measurements`: what answers rest on beside the catalog's own figures, listed and removed."""

from typing import Annotated

import typer

from service.catalog.changes import of_command_line
from service.catalog.database import make_engine
from service.catalog.errors import NotInCatalogError
from service.catalog.keeper import CatalogKeeper
from service.catalog.measurement_rows import delete_measurement, put_measurement
from service.measurements.checking import Checked
from service.measurements.corrections import StoredMeasurements
from service.measurements.observed import Stored
from service.measurements.storing import entry_of, stored_as
from service.questions.asked import Desk
from service.settings import Settings

measurements = typer.Typer(no_args_is_help=True, help="What was measured here: stored by `check --store`.")


def _keeper() -> CatalogKeeper:
    settings = Settings()
    return CatalogKeeper(make_engine(settings.database_url), None, settings.snapshot_poll_seconds)


def store(checked: Checked, keeper: CatalogKeeper, desk: Desk, corrections: StoredMeasurements) -> Stored:
    """Store a checked text, unless it changes nothing or is stored already."""
    entry = entry_of(checked)
    told = stored_as(entry, desk.sources(keeper.snapshot), corrections)
    if told.id is not None and entry.id not in {one.id for one in keeper.snapshot.entries.measurements}:
        keeper.write(lambda session: put_measurement(session, entry, of_command_line()))
    return told


@measurements.command("list")
def list_measurements() -> None:
    """List measurements: id, day, model, GPU, whose text it was."""
    for entry in _keeper().snapshot.entries.measurements:
        typer.echo(f"{entry.id}  {entry.stored_at:%Y-%m-%d}  {entry.model} on {entry.gpu}  {entry.what}")


@measurements.command("remove")
def remove(measurement_id: Annotated[str, typer.Argument(help="id of a measurement, as listed")]) -> None:
    """Delete a measurement: answers are what they were without it."""
    try:
        _keeper().write(lambda session: delete_measurement(session, measurement_id, of_command_line()))
    except NotInCatalogError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    typer.echo(f"removed {measurement_id}")
