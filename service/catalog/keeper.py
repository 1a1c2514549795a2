"""Keeps the current snapshot: reads it from the database, swaps it whole, survives without one."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import time
from typing import Any, Final, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlmodel import Session

from service.catalog.catalog_entries import CatalogEntries
from service.catalog.database import reading, writing
from service.catalog.deadline import DeadlineError, check_deadline, within
from service.catalog.disk import KeptCatalog, SnapshotFile
from service.catalog.errors import ConflictError, InDoubtError, InvalidCatalogError
from service.catalog.health import Health
from service.catalog.notices import Listener, announce
from service.catalog.reading import Reading, read_catalog
from service.catalog.seed_files import seed_entries
from service.catalog.snapshot import EMPTY, Snapshot, build_snapshot, check_readable
from service.catalog.store import Version, current_version, lock_revision

# Causes as callers are told them; what a library said stays in the log.
AWAY: Final = "the database does not answer, or not in time"
UNREADABLE: Final = "the catalog in the database cannot be read"

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
REFRESH_SECONDS: Final = 5.0  # how long it may take to read the whole catalog
PROBE_SECONDS: Final = 0.7
KNOWN_SECONDS: Final = 1.0  # for how long what the database was last found to be is believed
BURST_SECONDS: Final = 0.2  # what is written within it is kept on disk once
ON_DISK: Final[Version] = ("on disk", -1)  # which no database has


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Held:
    """The snapshot in use, and how it lies in the database, or once lay; None where it is from elsewhere."""

    snapshot: Snapshot
    reading: Reading | None = None

    @property
    def is_of_database(self) -> bool:
        """Return whether the database was seen to hold it."""
        return self.reading is not None and self.reading.version != ON_DISK


class CatalogKeeper:
    """The snapshot in use. A new one replaces it only when it holds together as a whole."""

    def __init__(self, engine: Engine, snapshot_path: Path | None, poll_seconds: float) -> None:
        """Load a snapshot: from the database, else the last good one on disk, else the seed files."""
        self.engine = engine
        self.health = Health()
        self._file = SnapshotFile(snapshot_path)
        kept = self._file.read()
        self._held = _taken_over(kept)
        self._is_saved = True
        self._lock = threading.Lock()  # of the three above; never held while the database is asked
        self._poll_seconds = poll_seconds
        self._stop, self._wake = threading.Event(), threading.Event()
        self._listener = Listener(engine, self._wake, poll_seconds)
        self._thread: threading.Thread | None = None
        if not self.refresh():
            self._fall_back(kept)
        elif kept is not None and self._is_as_kept(kept):
            self._file.touch()
            self._is_saved = True
        else:
            self._save()

    @property
    def snapshot(self) -> Snapshot:
        """Return the snapshot in use."""
        return self._held.snapshot

    def _is_as_kept(self, kept: KeptCatalog) -> bool:
        """Return whether what is in use is what lies on disk, read by this release."""
        reading = self._held.reading
        if reading is None or not kept.is_of_this_release:
            return False
        return reading.marks == kept.marks and reading.entries.revision == kept.entries.revision

    def _fall_back(self, kept: KeptCatalog | None) -> None:
        """Answer without the database; it goes on being asked."""
        if kept is not None:
            with suppress(InvalidCatalogError):
                snapshot = build_snapshot(kept.entries, self._held.snapshot)
                self._held = _Held(snapshot=snapshot, reading=self._held.reading)
                self._note(origin="disk", confirmed_at=kept.confirmed_at)
                logger.warning("the catalog kept on disk answers, at revision %d", self.snapshot.revision)
                return
        self._held = _Held(snapshot=seeded_snapshot())
        logger.warning("the seeded catalog answers; `sizer migrate` and `sizer seed` prepare a database")

    def refresh(self) -> bool:
        """Swap in the database's catalog if it is another one than is in use; return whether it was.

        Whatever fails, whether the database or what it holds, changes nothing: the catalog in use stays.
        """
        try:
            has_changed = self._refreshed()
        except Exception as error:  # noqa: BLE001 - of whatever kind, the next look may find it mended
            self._failed(error)
            return False
        if self.health.last_error is not None:
            logger.info("catalog at revision %d is current again", self.snapshot.revision)
        self._note(last_error=None)
        return has_changed

    def _refreshed(self) -> bool:
        held = self._held
        with within(REFRESH_SECONDS), reading(self.engine) as session:
            version = current_version(session)
            self._note(database_is_up=True, asked_at=time())
            if self._is_current(version):
                self._file.touch()
                return False
            found = read_catalog(session, held.reading)
        if not _is_whole(found.entries):
            raise InvalidCatalogError("the database holds no models or no GPUs; `sizer seed` fills it")
        snapshot = build_snapshot(found.entries, held.snapshot)
        check_readable(snapshot)
        with self._lock:
            if self._held is not held:  # a write was faster; the next look compares with what it left
                return False
            self._hold(snapshot, found)
        return True

    def _hold(self, snapshot: Snapshot, reading: Reading) -> None:
        self._held = _Held(snapshot=snapshot, reading=reading)
        self._is_saved = False
        self.health = replace(
            self.health, origin="database", confirmed_at=time(), asked_at=time(), database_is_up=True, last_error=None
        )

    def _failed(self, error: Exception) -> None:
        """Count a failure, and log its cause when it is another one than the last time."""
        is_down = isinstance(error, SQLAlchemyError | DeadlineError)
        cause = str(error) if isinstance(error, InvalidCatalogError) else AWAY if is_down else UNREADABLE
        if cause != self.health.last_error:
            if is_down or isinstance(error, InvalidCatalogError):
                logger.error("catalog not refreshed, revision %d stays: %s", self.snapshot.revision, cause)
                logger.debug("the cause in full", exc_info=error)
            else:
                logger.error("catalog not refreshed, revision %d stays", self.snapshot.revision, exc_info=error)
        self._note(last_error=cause, failures=self.health.failures + 1)
        if is_down:
            self._note(database_is_up=False, asked_at=time())

    def _note(self, **changes: Any) -> None:
        with self._lock:
            self.health = replace(self.health, **changes)

    def write(
        self, change: Callable[[Session], Result], check: Callable[[Snapshot], object] = lambda _: None
    ) -> tuple[Result, int]:
        """Make a change in one transaction, and swap in the catalog that results; return its revision too.

        Args:
            change: what to write. [rows]
            check: looks at the catalog that would result, and raises to refuse it.

        Raises:
            ConflictError: the change contradicts what the catalog holds.
            InvalidCatalogError: the catalog would not hold together.
            InDoubtError: the database did not confirm the write.
            SQLAlchemyError: the database did not answer, or refused; nothing was written.
            DeadlineError: it did not answer in time; nothing was written.
        """
        held = self._held
        with writing(self.engine) as session:
            row = lock_revision(session)
            row.revision += 1
            result = change(session)
            session.flush()
            session.expire_all()
            found = read_catalog(session, held.reading)
            if held.is_of_database and not _is_whole(found.entries):
                detail = "the catalog would be left without a model or without a GPU"
                raise ConflictError(detail, "id", "the id of one that is not the last of its kind")
            snapshot = build_snapshot(found.entries, held.snapshot)
            check(snapshot)
            check_readable(snapshot)
            announce(session)
            check_deadline()
            _commit(session)
        if _is_whole(found.entries):
            self._adopt(snapshot, found)
        return result, snapshot.revision

    def _adopt(self, snapshot: Snapshot, reading: Reading) -> None:
        """Swap in what this process has written, unless something newer is in use already."""
        with self._lock:
            now = self._held.reading
            is_older = now is not None and now.version[0] == reading.version[0] and now.version[1] >= reading.version[1]
            if not is_older:
                self._hold(snapshot, reading)
        self._wake.set()

    def probe(self) -> bool:
        """Return whether the database answers, by asking it, unless it was asked within the last second."""
        if abs(time() - self.health.asked_at) < KNOWN_SECONDS:
            return self.health.database_is_up
        is_up = True
        try:
            with within(PROBE_SECONDS), reading(self.engine) as session:
                if not self._is_current(current_version(session)):
                    self._wake.set()
        except InvalidCatalogError:
            pass  # it answers, if nonsense
        except Exception:  # noqa: BLE001 - there is no way of not answering that means it is up
            is_up = False
        self._note(database_is_up=is_up, asked_at=time())
        return is_up

    def _is_current(self, version: Version) -> bool:
        """Return whether the catalog in use is the database's, and note it if so."""
        found = self._held.reading
        if found is None or found.version != version:
            return False
        self._note(confirmed_at=time())
        return True

    def note_silence(self) -> None:
        """Note that the database does not answer, where somebody else gave up on it first."""
        self._note(database_is_up=False, asked_at=time())

    def start_polling(self) -> None:
        """Look up the revision in the background."""
        self._thread = threading.Thread(target=self._poll, name="catalog-poll", daemon=True)
        self._thread.start()
        self._listener.start()

    def _poll(self) -> None:
        while True:
            self._wake.wait(self._poll_seconds)
            self._wake.clear()
            if self._stop.is_set():
                return
            self.refresh()
            if not self._is_saved:
                self._stop.wait(BURST_SECONDS)
                self._save()

    def _save(self) -> None:
        with self._lock:
            held, is_saved, self._is_saved = self._held, self._is_saved, True
        if not is_saved and held.reading is not None and held.is_of_database:
            self._file.write(held.reading.entries, held.reading.marks)

    def close(self) -> None:
        """Stop polling, keep what is in use on disk and let go of the database."""
        self._stop.set()
        self._wake.set()
        self._listener.close()
        if self._thread is not None:
            self._thread.join(timeout=5)
        self._save()
        self.engine.dispose()


def _taken_over(kept: KeptCatalog | None) -> _Held:
    """Return what a start takes over from the disk: nothing that another release validated."""
    if kept is not None and kept.is_of_this_release:
        with suppress(InvalidCatalogError):
            snapshot = build_snapshot(kept.entries, were_read=True)
            return _Held(snapshot=snapshot, reading=Reading(version=ON_DISK, entries=kept.entries, marks=kept.marks))
    return _Held(snapshot=EMPTY)


def _commit(session: Session) -> None:
    try:
        session.commit()
    except DBAPIError as error:
        if error.connection_invalidated:
            raise InDoubtError("the catalog database did not confirm the write") from error
        raise


def _is_whole(entries: CatalogEntries) -> bool:
    return bool(entries.models and entries.gpus)


def seeded_snapshot() -> Snapshot:
    """Return the snapshot of the seed files, at revision 0."""
    models, gpus, offers = seed_entries()
    return build_snapshot(CatalogEntries(revision=0, models=models, gpus=gpus, offers=offers))
