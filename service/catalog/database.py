"""The database: engine, sessions and migrations. Nothing that is asked of it may wait for ever."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import psycopg
from psycopg.abc import RV, PQGen
from sqlalchemy import Connection, Engine, NullPool, event
from sqlalchemy.engine import URL, make_url
from sqlmodel import Session, create_engine

from service.catalog.deadline import check_deadline, seconds_left

if TYPE_CHECKING:
    from alembic.config import Config

CONNECT_SECONDS: Final = 2  # the least that PostgreSQL's client accepts
BUSY_SECONDS: Final = 3.0  # how long a locked SQLite is waited for, where no deadline is nearer
# What the server and the network give up on by themselves, for connections whose client waits for ever.
PATIENCE: Final = {
    "connect_timeout": CONNECT_SECONDS,
    "options": "-c statement_timeout=10s -c lock_timeout=1500ms -c idle_in_transaction_session_timeout=10s",
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,  # [ms]
}
WRITES: Final = "writes"


class LimitedConnection(psycopg.Connection[Any]):
    """A connection to PostgreSQL that keeps deadlines itself: a server that is stopped cannot."""

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait for an answer until the deadline at most; then the connection is lost, and nothing is committed."""
        left = seconds_left()
        if left is None or (timeout is not None and timeout <= left):
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, left)
        except psycopg.OperationalError:
            if seconds_left() == 0:
                self.pgconn.finish()
            raise


def make_engine(database_url: str) -> Engine:
    """Return an engine that gives up on a dead, stopped or locked database within seconds."""
    url = make_url(database_url)
    if url.get_backend_name() == "sqlite":
        return _sqlite(url)
    engine = create_engine(
        url, pool_size=4, max_overflow=2, pool_pre_ping=True, pool_timeout=CONNECT_SECONDS, connect_args=PATIENCE
    )
    event.listen(engine, "do_connect", _connect_limited)
    return engine


def _connect_limited(_dialect: object, _record: object, arguments: list[Any], options: dict[str, Any]) -> Any:
    check_deadline()
    return LimitedConnection.connect(*arguments, **options)


def _sqlite(url: URL) -> Engine:
    """Return an engine that opens the file anew each time: one that was replaced is noticed, none is created."""
    engine = create_engine(url, connect_args={"check_same_thread": False}, poolclass=NullPool if url.database else None)
    event.listen(engine, "do_connect", _open_sqlite)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _open_sqlite(_dialect: object, _record: object, arguments: list[Any], options: dict[str, Any]) -> None:
    file = str(arguments[0])
    if not file.startswith((":memory:", "file:")):
        arguments[0], options["uri"] = f"file:{quote(str(Path(file).absolute()))}?mode=rw", True


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where this module says so, reading ones too
    connection.execute("PRAGMA foreign_keys=ON")


def _begin_sqlite(connection: Connection) -> None:
    """Begin a transaction; a write takes the lock at once, since one that takes it later may be told to start over."""
    left = seconds_left()
    milliseconds = int(1000 * (BUSY_SECONDS if left is None else left))
    connection.exec_driver_sql(f"PRAGMA busy_timeout={milliseconds}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get(WRITES) else "BEGIN")


def reading(engine: Engine) -> Session:
    """Return a session that sees one state of the database from its first statement to its last."""
    if engine.dialect.name == "sqlite":
        return Session(engine)
    return Session(engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True))


def writing(engine: Engine) -> Session:
    """Return a session that may write."""
    return Session(engine.execution_options(**{WRITES: True}))


def alembic_config() -> "Config":
    """Return Alembic's configuration from `pyproject.toml`, wherever the process was started."""
    from alembic.config import Config  # noqa: PLC0415 - a tenth of a second, of a start that migrates nothing

    root = Path(__file__).resolve().parents[2]
    if not (root / "migrations").is_dir():
        root = Path.cwd()
    return Config(toml_file=str(root / "pyproject.toml"))


def migrate(engine: Engine, revision: str = "head") -> None:
    """Bring the database to a revision, the newest without one; a SQLite file that is not there is created."""
    from alembic import command  # noqa: PLC0415 - as above

    database = engine.url.database or ""
    if engine.dialect.name == "sqlite" and database and not database.startswith((":memory:", "file:")):
        file = Path(database)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    config = alembic_config()
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
