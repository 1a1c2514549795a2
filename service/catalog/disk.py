"""The last good catalog on disk: whole, of this version of the format, or not used.

A start without a database answers from it. A start with one takes over every entry whose rows are as they were: it was
validated, and its config read, before it was kept. Another release's is read again, since its rules may differ.
"""

import json
import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from service.catalog.catalog_entries import CatalogEntries
from service.catalog.reading import Marks

logger = logging.getLogger(__name__)
SCHEMA: Final = 3  # raised whenever what was written before cannot be read any more
SERVICE: Final = Path(__file__).parents[1]
READERS: Final = ("catalog", "engine")  # the rooms that decide which entries are valid, and what a config means


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCatalog:
    """What lay on disk: the entries, what their rows were, and when they were last current."""

    entries: CatalogEntries
    marks: Mapping[str, Marks]
    confirmed_at: float  # [seconds since 1970]
    is_of_this_release: bool


@lru_cache(maxsize=1)
def release() -> str:
    """Return a hash of the code that validates entries and reads configs: some milliseconds, once."""
    files = sorted(file for room in READERS for file in (SERVICE / room).rglob("*.py"))
    whole = sha256()
    for file in files:
        whole.update(f"{file.relative_to(SERVICE)}\n".encode() + file.read_bytes())
    return whole.hexdigest()


class SnapshotFile:
    """One file: lines with format and checksum, and with release and what rows were, then the entries.

    Its time stamp tells when they were current.
    """

    def __init__(self, path: Path | None) -> None:
        """Keep where it is; without a path nothing is kept."""
        self._path = path
        self._is_told = False  # that it cannot be written, which is tried every few seconds

    def write(self, entries: CatalogEntries, marks: Mapping[str, Marks]) -> None:
        """Replace what is on disk, whole or not at all; a full disk is logged, and changes nothing."""
        if self._path is None:
            return
        rows = json.dumps({"release": release(), "marks": marks}).encode()
        body = rows + b"\n" + entries.model_dump_json().encode()
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

    def read(self) -> KeptCatalog | None:
        """Return what is kept; None where there is nothing to use."""
        if self._path is None or not self._path.is_file():
            return None
        try:
            head, _, body = self._path.read_bytes().partition(b"\n")
            stated = json.loads(head)
            if stated["schema"] != SCHEMA or stated["sha256"] != sha256(body).hexdigest():
                logger.warning("snapshot on disk not usable: another format, or cut off")
                return None
            line, _, entries = body.partition(b"\n")
            rows = json.loads(line)
            return KeptCatalog(
                entries=CatalogEntries.model_validate_json(entries),
                marks=rows["marks"],
                confirmed_at=self._path.stat().st_mtime,
                is_of_this_release=rows["release"] == release(),
            )
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
