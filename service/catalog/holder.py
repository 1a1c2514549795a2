"""Keeps the current snapshot: reads it from the database, swaps it whole, survives without one."""

import json
import logging
import os
import tempfile
import threading
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from service.catalog.entries import GpuEntry, ModelEntry, OfferEntry
from service.catalog.errors import InvalidCatalogError
from service.catalog.seed_files import seed_entries
from service.catalog.snapshot import Snapshot, build_snapshot
from service.catalog.store import CatalogEntries, current_revision, read_catalog

logger = logging.getLogger(__name__)
_MODELS = TypeAdapter(tuple[ModelEntry, ...])
_GPUS = TypeAdapter(tuple[GpuEntry, ...])
_OFFERS = TypeAdapter(tuple[OfferEntry, ...])


class CatalogHolder:
    """The snapshot in use. A new one replaces it only when it holds together as a whole."""

    def __init__(self, engine: Engine, snapshot_path: Path | None, poll_seconds: float) -> None:
        """Load a snapshot: from the database, else the last good one on disk, else the seed files."""
        self.engine = engine
        self._path = snapshot_path
        self._poll_seconds = poll_seconds
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.database_is_up = False
        self.snapshot = self._first()

    def _first(self) -> Snapshot:
        try:
            entries = self._read()
            if entries.models and entries.gpus:
                snapshot = build_snapshot(entries)
                self._keep(snapshot)
                return snapshot
        except (SQLAlchemyError, InvalidCatalogError, ValidationError) as error:
            logger.warning(
                "catalog not read from the database (%s): the last one kept on disk, "
                "or else the seeded one, answers; `sizer migrate` and `sizer seed` prepare a database",
                type(error).__name__,
            )
        return self._from_disk() or seeded_snapshot()

    def _read(self) -> CatalogEntries:
        with Session(self.engine) as session:
            entries = read_catalog(session)
        self.database_is_up = True
        return entries

    def refresh(self) -> bool:
        """Swap in the database's catalog if its revision differs; return whether it did.

        A catalog that does not hold together, and a database that does not answer, change nothing.
        """
        with self._lock:
            try:
                with Session(self.engine) as session:
                    revision = current_revision(session)
                self.database_is_up = True
                if revision in (self.snapshot.revision, 0):
                    return False
                snapshot = build_snapshot(self._read())
            except SQLAlchemyError as error:
                self.database_is_up = False
                logger.warning("catalog database does not answer: %s", type(error).__name__)
                return False
            except (InvalidCatalogError, ValidationError) as error:
                logger.error("catalog refused, the one before stays: %s", error)  # noqa: TRY400 - the cause is its text
                return False
            self.snapshot = snapshot
            self._keep(snapshot)
            return True

    def start_polling(self) -> None:
        """Look up the revision in the background."""
        self._thread = threading.Thread(target=self._poll, name="catalog-poll", daemon=True)
        self._thread.start()

    def _poll(self) -> None:
        while not self._stop.wait(self._poll_seconds):
            self.refresh()

    def close(self) -> None:
        """Stop polling and let go of the database."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        self.engine.dispose()

    def _keep(self, snapshot: Snapshot) -> None:
        """Keep a good snapshot on disk, whole or not at all."""
        if self._path is None:
            return
        entries = snapshot.entries
        document = {
            "revision": entries.revision,
            "models": _MODELS.dump_python(entries.models, mode="json"),
            "gpus": _GPUS.dump_python(entries.gpus, mode="json"),
            "offers": _OFFERS.dump_python(entries.offers, mode="json"),
        }
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self._path.parent, delete=False, encoding="utf-8") as file:
                json.dump(document, file)
            os.replace(file.name, self._path)  # noqa: PTH105 - atomic by contract
        except OSError as error:
            logger.warning("snapshot not kept on disk: %s", type(error).__name__)

    def _from_disk(self) -> Snapshot | None:
        if self._path is None or not self._path.is_file():
            return None
        try:
            document = json.loads(self._path.read_text(encoding="utf-8"))
            return build_snapshot(
                CatalogEntries(
                    revision=int(document["revision"]),
                    models=_MODELS.validate_python(document["models"]),
                    gpus=_GPUS.validate_python(document["gpus"]),
                    offers=_OFFERS.validate_python(document["offers"]),
                )
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("snapshot on disk not usable: %s", type(error).__name__)
            return None


def seeded_snapshot() -> Snapshot:
    """Return the snapshot of the seed files, at revision 0."""
    models, gpus, offers = seed_entries()
    return build_snapshot(CatalogEntries(revision=0, models=models, gpus=gpus, offers=offers))
