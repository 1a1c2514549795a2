"""`sizer keys`: keys are created, listed and revoked here, and shown once."""

from typing import Annotated, Final

import typer

from service.access.keys import Scope, create_key, read_keys, revoke_key
from service.catalog.database import make_engine, reading, writing
from service.cli_words import commands, refuse
from service.settings import Settings

MOST_NAME: Final = 180  # the record of changes has room for 200 characters, of which the key's id takes 15
app = commands()
keys = typer.Typer(no_args_is_help=True, help="API keys: created and shown once, listed, revoked.")
app.add_typer(keys, name="keys")


@keys.command("create")
def create(
    name: Annotated[str, typer.Argument(help="whose it is, as the record of changes names it")],
    scope: Annotated[Scope, typer.Option(help="what it may do; each may do what those before it may")] = "read",
    days: Annotated[int, typer.Option(min=1, max=3650, help="until it ends")] = 365,
) -> None:
    """Create a key, and show it this once."""
    if not name.strip():
        refuse("name: blank; accepted: whose key it is, as the record of changes is to name it")
    if len(name.strip()) > MOST_NAME or not name.strip().isprintable():
        told = f"at most {MOST_NAME} characters, on one line"
        refuse(f"name: too long, or with characters that are not shown; accepted: {told}")
    with writing(make_engine(Settings().database_url)) as session, session.begin():
        key = create_key(session, name.strip(), scope, days)
    typer.echo(key)


@keys.command("list")
def list_keys() -> None:
    """List keys: id, scope, when it ends, name; never the key."""
    with reading(make_engine(Settings().database_url)) as session:
        rows = read_keys(session)
    for row in rows.values():
        state = "revoked" if row.revoked_at else f"until {row.expires_at:%Y-%m-%d}" if row.expires_at else "no end"
        typer.echo(f"{row.id}  {row.scope:5}  {state:16}  {row.name}")


@keys.command("revoke")
def revoke(key_id: Annotated[str, typer.Argument(help="id of a key, as listed, or the key itself")]) -> None:
    """Take a key back; services notice within a second."""
    own_id = key_id.split("_")[1] if key_id.count("_") >= 2 else key_id
    with writing(make_engine(Settings().database_url)) as session, session.begin():
        is_known = revoke_key(session, own_id)
    if not is_known:
        typer.echo("there is no such key", err=True)
        raise typer.Exit(2)
    typer.echo(f"revoked {own_id}")
