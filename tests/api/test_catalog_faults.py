"""What happens to databases themselves: answers stay right, writes are made or refused in time, all comes back."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import Engine, create_engine, event, text
from starlette.testclient import TestClient

from service.catalog.database import alembic_config, make_engine, migrate
from tests.catalog.samples import OFFER
from tests.conftest import API_KEY, emptied, seeded_service, service_settings

QUESTION: dict[str, Any] = {
    "model": "qwen3-32b",
    "gpu": "h100",
    "concurrent_requests": 8,
    "input_tokens": 900,
    "output_tokens": 90,
}
WRITE_S = 2.0
MARGIN_S = 20.0  # of a machine that does other things as well
VERSION_BEFORE = "-1"
OTHERS_END = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A database with a fault, and how to mend it."""

    url: str
    file: Path | None = None
    app: Any = None

    def run(self, *statements: str) -> None:
        engine = create_engine(self.url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(text(statement))
        engine.dispose()

    @property
    def kept_engine(self) -> Engine:
        """The engine of the service itself, whose connections have limits of their own."""
        engine: Engine = self.app.state.catalog.engine
        return engine


Mend = Callable[[], object]


def corrupted(broken: Broken) -> Mend:
    assert broken.file is not None
    whole = broken.file.read_bytes()
    broken.file.write_bytes(whole[:100] + b"\xa5" * (len(whole) - 100))
    return lambda: broken.file is not None and broken.file.write_bytes(whole)


def disk_full(broken: Broken) -> Mend:
    def no_more_pages(connection: Any, _: object) -> None:
        connection.execute("PRAGMA max_page_count = 1")  # as many as there are, and no more

    event.listen(broken.kept_engine, "connect", no_more_pages)
    broken.kept_engine.dispose()

    def mend() -> None:
        event.remove(broken.kept_engine, "connect", no_more_pages)
        broken.kept_engine.dispose()

    return mend


def schema_older(broken: Broken) -> Mend:
    engine = make_engine(broken.url)
    config = alembic_config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, VERSION_BEFORE)

    def mend() -> None:
        migrate(engine)
        engine.dispose()

    return mend


def schema_newer(broken: Broken) -> Mend:
    broken.run(
        "ALTER TABLE offers ADD COLUMN of_a_later_version VARCHAR DEFAULT 'x' NOT NULL",
        "UPDATE alembic_version SET version_num = 'fffffffffffe'",
    )
    return lambda: broken.run("ALTER TABLE offers DROP COLUMN of_a_later_version")


def table_gone(broken: Broken) -> Mend:
    broken.run("ALTER TABLE offers RENAME TO elsewhere")
    return lambda: broken.run("ALTER TABLE elsewhere RENAME TO offers")


def read_only(broken: Broken) -> Mend:
    """Refuse writes as a standby does."""
    broken.run(
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'cannot execute % in a read-only transaction', TG_OP USING ERRCODE = '25006';
        END $$
        """,
        "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON offers FOR EACH STATEMENT EXECUTE FUNCTION refuse()",
    )
    return lambda: broken.run("DROP FUNCTION refuse CASCADE")


def restarted(broken: Broken) -> Mend:
    """End every connection, as a restart does."""
    broken.run(OTHERS_END)
    return lambda: None


SQLITE: tuple[Callable[[Broken], Mend], ...] = (corrupted, disk_full, schema_older, schema_newer, table_gone)
POSTGRESQL: tuple[Callable[[Broken], Mend], ...] = (read_only, restarted)
COSTS_WRITES = (corrupted, disk_full, table_gone, read_only)


def put(service: TestClient, usd_per_hour: float, name: str = "made-up-offer") -> Any:
    offer = {**OFFER, "id": name, "gpu": "h100-sxm-80gb", "usd_per_hour": usd_per_hour, "instance_type": name}
    return service.put(f"/catalog/offers/{name}", json=offer)


def put_until_told(service: TestClient) -> Any:
    """Write until it is refused: what is nearly full takes a few more rows."""
    for number in range(30):
        response = put(service, 10.0, f"made-up-{number}-{'x' * 80}")
        if response.status_code != 200:
            break
    return response


def answered(service: TestClient) -> dict[str, Any]:
    document: dict[str, Any] = service.post("/size", json={**QUESTION, "spare_replicas": 0}).json()
    return {**document, "catalog_revision": 0}


def held_to_the_promise(service: TestClient, broken: Broken, fault: Callable[[Broken], Mend]) -> None:
    """Break a database under a service: answers as before, writes in time, recovery without a restart."""
    before = answered(service)

    mend = fault(broken)
    time.sleep(0.7)  # the catalog is looked for meanwhile
    began = time.monotonic()
    written = put_until_told(service) if fault is disk_full else put(service, 10.0)
    took_s = time.monotonic() - began
    during = answered(service)
    mend()

    assert during == before
    assert written.status_code in ((503,) if fault in COSTS_WRITES else (200, 503)), written.text
    assert written.status_code == 200 or "retry-after" in written.headers
    assert took_s < WRITE_S + MARGIN_S
    assert recovered(service)


def recovered(service: TestClient) -> bool:
    """Write as a caller does who comes again when told to; no restart is needed."""
    for _ in range(20):
        if put(service, 99.0).status_code == 200:
            return bool(service.get("/catalog/offers/made-up-offer").json()["usd_per_hour"] == 99.0)
        time.sleep(0.3)
    return False


@contextmanager
def served(folder: Path, url: str) -> Iterator[TestClient]:
    settings = service_settings(folder, database_url=url, write_seconds=WRITE_S, snapshot_poll_seconds=0.3)
    with seeded_service(settings) as service:
        service.headers["X-API-Key"] = API_KEY
        yield service


@pytest.mark.parametrize("fault", SQLITE, ids=lambda fault: fault.__name__)
def test_a_sqlite_that_breaks_costs_writes_and_never_answers(tmp_path: Path, fault: Callable[[Broken], Mend]) -> None:
    file = tmp_path / "catalog.sqlite3"

    with served(tmp_path, f"sqlite:///{file}") as service:
        held_to_the_promise(service, Broken(url=f"sqlite:///{file}", file=file, app=service.app), fault)


def test_a_postgresql_that_is_read_only_or_restarted_costs_writes_and_never_answers(
    tmp_path: Path, postgres_url: str
) -> None:
    with served(tmp_path, emptied(postgres_url)) as service:
        for fault in POSTGRESQL:
            held_to_the_promise(service, Broken(url=postgres_url), fault)
