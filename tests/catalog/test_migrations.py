"""Migrations run up, down and up again on both databases, and match the tables."""

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect

from service.catalog.database import alembic_config, migrate
from service.catalog.tables import metadata


def test_there_is_one_head() -> None:
    assert len(ScriptDirectory.from_config(alembic_config()).get_heads()) == 1


def test_up_down_and_up_again(empty_database: Engine) -> None:
    migrate(empty_database)
    config = alembic_config()
    with empty_database.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    assert set(inspect(empty_database).get_table_names()) <= {"alembic_version"}

    migrate(empty_database)

    assert set(metadata.tables) <= set(inspect(empty_database).get_table_names())


def test_the_schema_is_what_the_tables_say(database: Engine) -> None:
    with database.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)

    assert differences == []
