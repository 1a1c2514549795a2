"""The last good catalog on disk, for a start without a database: whole, of this version of the format, or not used."""

import json
import logging
import os
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Final

from service.catalog.catalog_entries import CatalogEntries

logger = logging.getLogger(__name__)
SCHEMA: Final = 2  # raised whenever entries written before cannot be read any more


class SnapshotFile:
    """One file: a line with format and checksum, then the entries. Its time stamp tells when they were current."""

    def __init__(self, path: Path | None) -> None:
        """Keep where it is; without a path nothing is kept."""
        self._path = path
        self._is_told = False  # that it cannot be written, which is tried every few seconds

    def write(self, entries: CatalogEntries) -> None:
        """Replace what is on disk, whole or not at all; a full disk is logged, and changes nothing."""
        if self._path is None:
            return
        body = entries.model_dump_json().encode()
        head = json.dumps({"schema": SCHEMA, "sha256": sha256(body).hexdigest()}).encode()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._path, head + b"\n" + body)
        except OSError as error:
            self._tell("kept", error)
        else:
            self._is_told = False

    def touch(self) -> None:
        """Note that what is on disk is still current."""
        if self._path is not None and self._path.is_file():
            try:
                os.utime(self._path)
            except OSError as error:
                self._tell("touched", error)
            else:
                self._is_told = False

    def _tell(self, what: str, error: OSError) -> None:
        """Log why it is not written: once, until it is written again."""
        if not self._is_told:
            logger.warning("snapshot not %s on disk until it can be: %s", what, error.strerror)
        self._is_told = True

    def read(self) -> tuple[CatalogEntries, float] | None:
        """Return the entries and when they were last current [seconds since 1970]; None where there are none to use."""
        if self._path is None or not self._path.is_file():
            return None
        try:
            head, _, body = self._path.read_bytes().partition(b"\n")
            stated = json.loads(head)
            if stated["schema"] != SCHEMA or stated["sha256"] != sha256(body).hexdigest():
                logger.warning("snapshot on disk not usable: another format, or cut off")
                return None
            return CatalogEntries.model_validate_json(body), self._path.stat().st_mtime
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("snapshot on disk not usable: %s", type(error).__name__)
            return None


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file, whole or not at all."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
