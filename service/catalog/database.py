"""The database: engine and migrations."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, event
from sqlalchemy.engine import make_url
from sqlmodel import create_engine

CONNECT_TIMEOUT_SECONDS = 3


def make_engine(database_url: str) -> Engine:
    """Return an engine that gives up on a dead database within seconds."""
    url = make_url(database_url)
    if url.get_backend_name() == "sqlite":
        if url.database and url.database != ":memory:":
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(url, connect_args={"timeout": CONNECT_TIMEOUT_SECONDS, "check_same_thread": False})
        event.listen(engine, "connect", _enforce_foreign_keys)
        return engine
    return create_engine(
        url,
        pool_pre_ping=True,
        pool_timeout=CONNECT_TIMEOUT_SECONDS,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_SECONDS, "options": "-c statement_timeout=10000"},
    )


def _enforce_foreign_keys(connection: object, _record: object) -> None:
    cursor = connection.cursor()  # type: ignore[attr-defined]
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def alembic_config() -> Config:
    """Return Alembic's configuration from `pyproject.toml`, wherever the process was started."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "migrations").is_dir():
        root = Path.cwd()
    return Config(toml_file=str(root / "pyproject.toml"))


def migrate(engine: Engine, revision: str = "head") -> None:
    """Bring the database to a revision; the newest without one."""
    config = alembic_config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
