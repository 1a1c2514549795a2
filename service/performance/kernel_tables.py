"""Tables of measured kernels: kept in memory, kept on disk, else built; each once."""

from collections.abc import Callable
from functools import cached_property, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol

from cachetools import LRUCache

from service.performance.refusals import told
from service.performance.stored import Kernels, Refusal, TableFiles
from service.performance.tables import StepTables

if TYPE_CHECKING:
    from service.performance.measured import KernelLibrary

MOST_IN_MEMORY: Final = 4096  # about 4 kB each
LOCKS: Final = 64


class NotMeasuredError(Exception):
    """No kernels were measured for this combination; the message says which."""


class TableBuilder(Protocol):
    """Makes tables from measured kernels."""

    def build(self, kernels: Kernels) -> StepTables | Refusal:
        """Return the tables, or why there are none."""
        ...

    def close(self) -> None:
        """Give back what building took."""
        ...


class InProcess:
    """Builds in this process, for commands that build many tables and end."""

    @cached_property
    def _library(self) -> "KernelLibrary":
        from service.performance.measured import KernelLibrary  # noqa: PLC0415 - only who builds needs the library

        return KernelLibrary()

    def build(self, kernels: Kernels) -> StepTables | Refusal:
        """Return the tables, or why there are none."""
        return self._library.build(kernels)

    def close(self) -> None:
        """Keep what was read: the process ends soon."""


@lru_cache(maxsize=1)
def in_process() -> "KernelTables":
    """Return tables that this process builds, and keeps in its memory alone."""
    return KernelTables(TableFiles(None), InProcess())


class KernelTables:
    """Finds tables; safe to share between threads, and two that ask for one table build it once."""

    def __init__(self, files: TableFiles, builder: TableBuilder) -> None:
        """Start with nothing in memory.

        Args:
            files: what was built before.
            builder: what builds the rest.
        """
        self._files, self._builder = files, builder
        self._known: LRUCache[str, StepTables | Refusal] = LRUCache(MOST_IN_MEMORY)
        self._lock = Lock()
        self._building = tuple(Lock() for _ in range(LOCKS))

    def of(self, kernels: Kernels) -> StepTables:
        """Return the tables of measured kernels.

        Raises:
            NotMeasuredError: there are none.
        """
        key = kernels.key()
        found = self._kept(key)
        if found is None:
            with self._building[hash(key) % LOCKS]:
                found = self._kept(key) or self._made(key, lambda: self._builder.build(kernels))
        if isinstance(found, Refusal):
            raise NotMeasuredError(told(found.reason))
        return found

    def has(self, kernels: Kernels) -> bool:
        """Return whether the answer is known without building anything."""
        return self._kept(kernels.key()) is not None

    def close(self) -> None:
        """Give back what building took."""
        self._builder.close()

    def _kept(self, key: str) -> StepTables | Refusal | None:
        with self._lock:
            found = self._known.get(key)
        if found is None:
            found = self._files.read(key)
            if found is not None:
                self._keep(key, found)
        return found

    def _made(self, key: str, make: Callable[[], StepTables | Refusal]) -> StepTables | Refusal:
        found = make()
        self._keep(key, found)
        self._files.write(key, found)
        return found

    def _keep(self, key: str, tables: StepTables | Refusal) -> None:
        with self._lock:
            self._known[key] = tables
