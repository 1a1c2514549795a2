"""The commands of who keeps the catalog: its schema, its seed, its offers."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from service.catalog.changes import of_command_line
from service.catalog.database import make_engine, migrate, writing
from service.catalog.keeper import CatalogKeeper
from service.catalog.offer_files import Stated, read_price_list
from service.catalog.offer_import import differences, take_offers
from service.catalog.seed import seed_catalog
from service.cli_words import commands, refuse
from service.settings import Settings

app = commands()
offers = typer.Typer(no_args_is_help=True, help="The catalog's offers.")
app.add_typer(offers, name="offers")


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
        seeded = seed_catalog(session, force=force, who=of_command_line())
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
            found = take_offers(session, listed.offers, of_command_line())
    typer.echo("\n".join(found.lines()))
