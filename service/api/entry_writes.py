"""Writes of one entry of the catalog: where it is what was seen, with who made them, and the catalog that results."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import Depends

from service.api.conditions import Condition, ConditionDep, SeenDep
from service.api.dependencies import CallerDep, WriterDep
from service.api.writes import CatalogWriter
from service.catalog.changes import Change, gpu_deletion, recorded
from service.catalog.entries import ModelEntry
from service.catalog.reading import GPUS, MODELS, EntryKind
from service.catalog.snapshot import Snapshot
from service.catalog.store import put_model


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

    async def put_model(self, entry: ModelEntry) -> int:
        """Write a model that can be sized, as `make` does."""
        change = partial(put_model, entry=entry)
        return await self.make(MODELS, entry.id, change, lambda catalog: catalog.model(entry.id))

    async def delete_gpu(self, gpu_id: str) -> int:
        """Delete a GPU and its offers, as `make` does."""
        return await self._made(GPUS, gpu_id, gpu_deletion(gpu_id, self.who), lambda _: None)

    async def _made(
        self, kind: EntryKind[Any], entry_id: str, change: Change, check: Callable[[Snapshot], object]
    ) -> int:
        _, revision = await self.writer.make(self.condition.held(kind, entry_id, change), check)
        return revision


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
