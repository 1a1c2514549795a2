"""Pods of workloads, answered before anybody asks: an autoscaler waits three seconds, and hangs up on what is new."""

from asyncio import sleep
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from itertools import islice
from typing import Final

from service.api.problems import ProblemError
from service.api.reception import Reception
from service.api.shelf import Shelf
from service.catalog.keeper import CatalogKeeper
from service.engine.errors import EngineError
from service.questions.refusals import RefusalError
from service.questions.replicas import REPLICAS
from service.workloads.load_from import SMALLEST_LOAD
from service.workloads.workload import Workload, asked_of

EVERY_S: Final = 2.0
PAUSE_S: Final = 0.1
MOST_WORKLOADS: Final = 200  # whose answers are kept at once; who comes after them waits as before
Workloads = Mapping[str, Workload]


class Ahead:
    """Asks each workload's question of pods again when a workload, the catalog or the day is another."""

    def __init__(self, workloads: Shelf[Workloads], catalog: CatalogKeeper, reception: Reception) -> None:
        """Keep whose questions are asked, and of whom."""
        self._workloads, self._catalog, self._reception = workloads, catalog, reception
        self._seen: tuple[Workloads, int, date] | None = None

    async def run(self) -> None:
        """Look for ever, every few seconds."""
        while True:
            await sleep(EVERY_S)
            with suppress(ProblemError):  # the database is away
                await self.look()

    async def look(self) -> None:
        """Answer every workload, if anything is another than at the last look.

        Raises:
            ProblemError: the database does not answer, and never did.
        """
        rows = await self._workloads.rows()
        seen = rows, self._catalog.snapshot.revision, datetime.now(UTC).date()
        if seen == self._seen:
            return
        for workload in islice(rows.values(), MOST_WORKLOADS):
            while not self._reception.is_idle:  # noqa: ASYNC110 - whoever asks goes first
                await sleep(PAUSE_S)
            with suppress(RefusalError, EngineError, ProblemError):  # of which whoever asks is told
                await self._answer(workload)
        self._seen = seen

    async def _answer(self, workload: Workload) -> None:
        """Answer one, as stated; where its load is read elsewhere, for so small a load that its tables are there."""
        source = workload.load_from
        load: dict[str, float] = {} if source is None else {source.field: SMALLEST_LOAD[source.field]}
        asked = asked_of(workload, REPLICAS, load, writing={})
        await self._reception.answered_in_batch(REPLICAS, asked, self._catalog.snapshot)
