"""Asks the database whether it is there: in a lane of its own, and not for long."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from service.api.lanes import FullError, Lane
from service.catalog.errors import NotInCatalogError
from service.catalog.keeper import PROBE_SECONDS, CatalogKeeper
from service.catalog.snapshot import Snapshot

Entry = TypeVar("Entry")
PATIENCE_S: Final = PROBE_SECONDS + 0.25  # Kubernetes gives a probe one second


class Probe:
    """Answers whether the database is up, for whoever asks at the same time."""

    def __init__(self, keeper: CatalogKeeper) -> None:
        """Keep whose database."""
        self._keeper = keeper
        self.lane = Lane("probe", width=1, waiting=0, patience_s=PATIENCE_S)

    async def known(self, find: Callable[[Snapshot], Entry], snapshot: Snapshot) -> Entry:
        """Return an entry; one that is not there may have been written by another process a moment ago.

        Raises:
            NotInCatalogError: it is not in the database either.
        """
        try:
            return find(snapshot)
        except NotInCatalogError:
            with suppress(FullError, TimeoutError):
                await self.lane.run(self._keeper.refresh)
            return find(self._keeper.snapshot)

    async def database_is_up(self) -> bool:
        """Return whether the database answers."""
        try:
            return await self.lane.run(self._keeper.probe)
        except FullError:  # somebody is asking at this moment
            return self._keeper.health.database_is_up
        except TimeoutError:
            self._keeper.note_silence()
            return False
