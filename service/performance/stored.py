"""Step times kept on disk: a file of about a kilobyte for each model shape, GPU, layout, format and engine.

A file is named by the hash of everything it depends on, the library's version included, so it is never out of
date. What cannot be read, or does not match its checksum, counts as missing and is written anew.
"""

import hashlib
import json
import logging
import os
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from struct import Struct
from typing import Any, Final

import numpy as np

from service.engine.inputs import EngineName, Layout
from service.engine.time.records import ATTENDED, CONTEXTS, REQUESTS, TOKENS
from service.performance.tables import StepTables

LIBRARY: Final = "aiconfigurator-core"
FORMAT: Final = 3  # of the files; a change of the knots changes names by itself
HEADER: Final = Struct("<4sBxxxII")  # magic, kind, checksum and length of the rest
MAGIC: Final = b"STEP"
TABLES: Final = 1
REFUSAL: Final = 2
DECODE: Final = len(REQUESTS) * len(CONTEXTS)
VALUES: Final = DECODE + len(TOKENS) + len(ATTENDED) + 1  # the last is the place of the kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """Which measured kernels are asked for: everything that a table depends on."""

    config_json: str  # as published, without its quantization
    restated_json: str = ""  # of a class with the same matrices, where the library does not know the published one
    system: str  # the library's name of a GPU
    layout: Layout
    engine: EngineName
    modes: tuple[Mapping[str, str], ...]  # quantization modes of the library, the most faithful first
    crosses_nodes: bool = False  # ranks that exchange messages within a layer lie in several nodes

    def asked(self) -> dict[str, Any]:
        """Return everything as plain values, by name, without what a layout derives from its own sizes."""
        layout = {each.name: getattr(self.layout, each.name) for each in fields(self.layout) if each.init}
        if self.layout.all2all_backend is None:
            del layout["all2all_backend"], layout["enable_two_batch_overlap"]
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"layout": layout}

    def key(self) -> str:
        """Return the hash of everything, the library's version and the knots of the tables included."""
        parts = [FORMAT, _library_version(), self.asked(), REQUESTS, CONTEXTS, TOKENS, ATTENDED]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=dict).encode()).hexdigest()


@lru_cache(maxsize=1)
def _library_version() -> str:
    return version(LIBRARY)


@dataclass(frozen=True, slots=True)
class Refusal:
    """No kernels were measured for a combination, and the library's words for it."""

    reason: str


class TableFiles:
    """A folder of tables. A folder that cannot be written to costs time, and nothing else."""

    def __init__(self, folder: Path | None) -> None:
        """Use a folder; it is made when the first table is written. None keeps nothing."""
        self._folder = folder

    def read(self, key: str) -> StepTables | Refusal | None:
        """Return what is kept under a key; None where nothing readable is."""
        if self._folder is None:
            return None
        try:
            return _decoded(self._path(self._folder, key).read_bytes())
        except (OSError, ValueError):
            return None

    def write(self, key: str, tables: StepTables | Refusal) -> None:
        """Keep what was found; readers see the whole file or none."""
        if self._folder is None:
            return
        path = self._path(self._folder, key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(_encoded(tables))
            os.replace(file.name, path)  # noqa: PTH105 - Path.replace would need a second Path of the same name
        except OSError as error:
            logging.getLogger(__name__).info("step times are kept in memory alone: %s", error.strerror)
            self._folder = None

    @staticmethod
    def _path(folder: Path, key: str) -> Path:
        return folder / key[:2] / f"{key[2:]}.steps"


def _encoded(tables: StepTables | Refusal) -> bytes:
    if isinstance(tables, Refusal):
        kind, rest = REFUSAL, tables.reason.encode()
    else:
        kind, rest = TABLES, np.array(_values(tables), dtype="<f8").tobytes()
    return HEADER.pack(MAGIC, kind, zlib.crc32(rest), len(rest)) + rest


def _values(tables: StepTables) -> list[float]:
    """Return every value in a row, as `tables_of` reads them."""
    return [value for row in tables.decode for value in row] + [*tables.tokens, *tables.attention, tables.place]


def _decoded(content: bytes) -> StepTables | Refusal:
    """Return what a file holds.

    Raises:
        ValueError: it is not whole.
    """
    if len(content) < HEADER.size:
        raise ValueError("too short")
    magic, kind, checksum, length = HEADER.unpack_from(content)
    rest = content[HEADER.size :]
    if magic != MAGIC or length != len(rest) or checksum != zlib.crc32(rest):
        raise ValueError("not whole")
    return Refusal(rest.decode()) if kind == REFUSAL else tables_of(np.frombuffer(rest, dtype="<f8").tolist())


def tables_of(values: list[float]) -> StepTables:
    """Return tables from their values in a row.

    Raises:
        ValueError: there are more or fewer than tables have.
    """
    if len(values) != VALUES:
        raise ValueError(f"{len(values)} values, and tables have {VALUES}")
    width = len(CONTEXTS)
    return StepTables(
        decode=tuple(tuple(values[row * width : (row + 1) * width]) for row in range(len(REQUESTS))),
        tokens=tuple(values[DECODE : DECODE + len(TOKENS)]),
        attention=tuple(values[DECODE + len(TOKENS) : -1]),
        place=int(values[-1]),
    )


def as_message(tables: StepTables | Refusal) -> dict[str, Any]:
    """Return what was found as JSON."""
    if isinstance(tables, Refusal):
        return {"refusal": tables.reason}
    return {"values": _values(tables)}


def from_message(message: Mapping[str, Any]) -> StepTables | Refusal:
    """Return what `as_message` described."""
    return Refusal(message["refusal"]) if "refusal" in message else tables_of(message["values"])
