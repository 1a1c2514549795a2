"""Whoever listens hears of a commit, and of nothing else."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from service.catalog.database import make_engine, migrate, writing
from service.catalog.notices import Listener, announce
from tests.catalog.samples import fill


@pytest.fixture
def postgres(empty_postgres_url: str) -> Iterator[Engine]:
    engine = make_engine(empty_postgres_url)
    yield engine
    engine.dispose()


@pytest.fixture
def heard(postgres: Engine) -> Iterator[threading.Event]:
    event = threading.Event()
    listener = Listener(postgres, event, pause_seconds=0.1)
    listener.start()
    yield event
    listener.close()


def is_heard_of(postgres: Engine, heard: threading.Event) -> bool:
    """Return whether a commit is, of a few: the first may be made before anybody listens."""
    for _ in range(10):
        with writing(postgres) as session, session.begin():
            announce(session)
        if heard.wait(2):
            return True
    return False


def test_a_commit_is_heard_of(postgres: Engine, heard: threading.Event) -> None:
    assert is_heard_of(postgres, heard)


def test_what_is_rolled_back_is_not(postgres: Engine, heard: threading.Event) -> None:
    assert is_heard_of(postgres, heard)  # from here on somebody listens
    heard.clear()
    with writing(postgres) as session:
        announce(session)
        session.rollback()

    assert not heard.wait(1)


def test_a_database_that_is_away_is_asked_again_in_peace() -> None:
    engine = make_engine("postgresql+psycopg://nobody@127.0.0.1:1/none")
    listener = Listener(engine, threading.Event(), pause_seconds=0.05)
    listener.start()
    time.sleep(0.3)

    began = time.monotonic()
    listener.close()

    assert time.monotonic() - began < 5  # as long as it would wait for a listener that goes on


def test_a_write_to_a_sqlite_file_and_another_file_in_its_place_are_noticed(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/catalog.sqlite3")
    migrate(engine)
    heard = threading.Event()
    listener = Listener(engine, heard, pause_seconds=0.05)
    listener.start()
    time.sleep(0.5)
    quiet = not heard.is_set()

    fill(engine)
    was_heard = heard.wait(30)
    heard.clear()
    (tmp_path / "catalog.sqlite3").unlink()
    was_missed = heard.wait(30)
    heard.clear()
    migrate(engine)
    was_found = heard.wait(30)
    listener.close()

    assert (quiet, was_heard, was_missed, was_found) == (True, True, True, True)
