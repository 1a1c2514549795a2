"""Writes of one entry of the catalog: where it is what was seen, with who made them, and the catalog that results."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Depends

from service.api.conditions import Condition, ConditionDep, SeenDep
from service.api.dependencies import CallerDep, WriterDep
from service.api.writes import CatalogWriter
from service.catalog.changes import Change, gpu_deletion, recorded
from service.catalog.entries import GpuEntry, ModelEntry, Source
from service.catalog.errors import UnusableOfferError
from service.catalog.offer_rules import check_day
from service.catalog.reading import GPUS, MODELS, EntryKind
from service.catalog.snapshot import Snapshot
from service.catalog.store import put_gpu, put_model
from service.engine.facts import ModelFacts
from service.engine.memory.parameters import num_parameters

Check = Callable[[ModelEntry, ModelFacts], None]
FAR_APART: Final = 1.5  # times; published counts of the seed are within 6 % of the config's


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryWriter:
    """Makes the writes of one caller, who may have said what they saw."""

    writer: CatalogWriter
    condition: Condition
    who: str

    async def make(
        self,
        kind: EntryKind[Any],
        entry_id: str,
        change: Change,
        check: Callable[[Snapshot], object] = lambda _: None,
    ) -> int:
        """Change an entry, and return the revision that has it.

        Raises:
            ProblemError: the entry is not what was seen, or the change could not be made.
        """
        return await self._made(kind, entry_id, recorded(kind, entry_id, self.who, change), check)

    async def put_gpu(self, entry: GpuEntry) -> int:
        """Write a GPU whose sources were looked at, as `make` does."""
        check_looked_at(sources_of(entry))
        return await self.make(GPUS, entry.id, partial(put_gpu, entry=entry))

    async def put_model(self, entry: ModelEntry, check: Check = lambda *_: None) -> int:
        """Write a model that can be sized, and whose sources were looked at, as `make` does."""
        check_looked_at(sources_of(entry))
        change = partial(put_model, entry=entry)
        return await self.make(MODELS, entry.id, change, lambda catalog: check(entry, catalog.model(entry.id)))

    async def delete_gpu(self, gpu_id: str) -> int:
        """Delete a GPU and its offers, as `make` does."""
        return await self._made(GPUS, gpu_id, gpu_deletion(gpu_id, self.who), lambda _: None)

    async def _made(
        self, kind: EntryKind[Any], entry_id: str, change: Change, check: Callable[[Snapshot], object]
    ) -> int:
        _, revision = await self.writer.make(self.condition.held(kind, entry_id, change), check)
        return revision


def sources_of(entry: ModelEntry | GpuEntry) -> Iterator[tuple[str, Source]]:
    """Yield the sources of an entry, each with the path of its field."""
    if isinstance(entry, GpuEntry):
        yield from ((f"figures.{name}.source", figure.source) for name, figure in entry.figures.items())
        return
    yield "source", entry.source
    yield from ((f"checkpoints.{place}.source", each.source) for place, each in enumerate(entry.checkpoints))


def check_looked_at(sources: Iterator[tuple[str, Source]]) -> None:
    """Let pass sources that were looked at on a day that has come.

    Raises:
        UnusableOfferError: one will be, some day.
    """
    today = datetime.now(UTC).date()
    for path, source in sources:
        check_day(source.checked_on, today, f"{path}.checked_on")


def counted_as(before: ModelEntry | None) -> Check:
    """Return what lets pass parameters that are about as many as the config's own matrices have.

    Args:
        before: the entry that is replaced; its own number stays, as an import counted it in the files.
    """
    own = None if before is None else before.num_parameters

    def check(entry: ModelEntry, model: ModelFacts) -> None:
        if entry.num_parameters in (None, own):
            return
        counted = num_parameters(model.architecture)
        if max(entry.num_parameters, counted) > FAR_APART * min(entry.num_parameters, counted):
            detail = f"{entry.num_parameters} is far from what the config's matrices come to"
            raise UnusableOfferError("num_parameters", detail, f"about {counted}, or none")

    return check


async def for_writing(writer: WriterDep, condition: ConditionDep, caller: CallerDep) -> EntryWriter:
    """Return who adds or replaces an entry."""
    return EntryWriter(writer=writer, condition=condition, who=caller.name)


async def for_deleting(writer: WriterDep, condition: SeenDep, caller: CallerDep) -> EntryWriter:
    """Return who deletes an entry."""
    return EntryWriter(writer=writer, condition=condition, who=caller.name)


async def for_importing(writer: WriterDep, caller: CallerDep) -> EntryWriter:
    """Return who writes an entry that nobody can have seen."""
    return EntryWriter(writer=writer, condition=Condition(tags=None, is_new=False), who=caller.name)


EntryWriterDep = Annotated[EntryWriter, Depends(for_writing)]
EntryDeleterDep = Annotated[EntryWriter, Depends(for_deleting)]
EntryImporterDep = Annotated[EntryWriter, Depends(for_importing)]
