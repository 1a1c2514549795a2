"""Runs migrations on a connection handed in, or on the configured database."""

from typing import Any, Literal

from alembic import context
from sqlalchemy import Connection, engine_from_config, pool, text
from sqlmodel import AutoString

from service.access.tables import ApiKeyRow
from service.catalog.tables import metadata
from service.workloads.tables import WorkloadChangeRow, WorkloadRow

config = context.config
KNOWN = (ApiKeyRow, WorkloadRow, WorkloadChangeRow)  # of rooms beside the catalog; to import them is to know them


def render_item(type_: str, item: Any, _autogen_context: object) -> str | Literal[False]:
    """Write SQLModel's string type as plain SQLAlchemy, so that migrations do not import SQLModel."""
    if type_ == "type" and isinstance(item, AutoString):
        return f"sa.String(length={item.length})"
    return False


def run(connection: Connection) -> None:
    """Run the migrations on one connection, for as long as they take; how long they wait for a lock they say."""
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_item=render_item,
        render_as_batch=connection.dialect.name == "sqlite",
        compare_type=True,
    )
    with context.begin_transaction():
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL statement_timeout = 0"))
        context.run_migrations()


given = config.attributes.get("connection")
if given is not None:
    run(given)
else:
    engine = engine_from_config(
        config.get_section(config.config_ini_section, {}), prefix="sqlalchemy.", poolclass=pool.NullPool
    )
    with engine.connect() as own:
        run(own)
