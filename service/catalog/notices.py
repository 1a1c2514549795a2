"""Other processes hear of a write at once: PostgreSQL tells them, of SQLite they watch the file. Else they poll."""

import logging
import threading
from pathlib import Path
from typing import Final

import psycopg
from sqlalchemy import Engine, text
from sqlmodel import Session

logger = logging.getLogger(__name__)
CHANNEL: Final = "sizer_catalog"
LOOK_UP_SECONDS: Final = 0.25  # how soon a change of a file, or the end of listening, is noticed


def announce(session: Session) -> None:
    """Tell everybody who listens of this transaction, once it is committed."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f"NOTIFY {CHANNEL}"))


class Listener:
    """Sets an event whenever somebody else wrote. Nothing depends on it but how soon that is."""

    def __init__(self, engine: Engine, heard: threading.Event, pause_seconds: float) -> None:
        """Keep whom to tell; `pause_seconds` is how long a database that is away is left alone."""
        self._engine = engine
        self._heard = heard
        self._pause_seconds = pause_seconds
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen in the background."""
        self._thread = threading.Thread(target=self._run, name="catalog-listen", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self._engine.dialect.name == "postgresql":
                    self._listen()
                else:
                    self._watch(Path(self._engine.url.database or ""))
            except Exception as error:  # noqa: BLE001 - whatever it is, the revision is polled as well
                logger.debug("not listening to the catalog database: %s", type(error).__name__)
            self._stop.wait(self._pause_seconds)

    def _listen(self) -> None:
        pooled = self._engine.raw_connection()
        connection = pooled.driver_connection
        pooled.detach()  # it is held for as long as the service runs, and is none of the pool's few
        assert isinstance(connection, psycopg.Connection)  # noqa: S101 - for the type checker
        with connection:
            connection.autocommit = True
            connection.execute(f"LISTEN {CHANNEL}")
            while not self._stop.is_set():
                for _ in connection.notifies(timeout=LOOK_UP_SECONDS, stop_after=1):
                    self._heard.set()

    def _watch(self, file: Path) -> None:
        before = _stamp(file)
        while not self._stop.wait(LOOK_UP_SECONDS):
            now = _stamp(file)
            if now != before:
                self._heard.set()
            before = now


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return what changes with every write to a file, and with every file put in its place."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
