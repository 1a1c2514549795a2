"""Models as the engine computes with them, of configs that are read when they are first asked for, or before."""

from collections.abc import Iterator, Mapping

from service.catalog.entries import ModelEntry
from service.catalog.facts import model_facts
from service.engine.errors import EngineError
from service.engine.facts import ModelFacts


class BuiltModels(Mapping[str, ModelFacts | EngineError]):
    """A model, or its refusal, by id. Reading a config takes half a millisecond, and a catalog has many of them."""

    def __init__(
        self, entries: Mapping[str, ModelEntry], read: Mapping[str, ModelFacts | EngineError] | None = None
    ) -> None:
        """Keep entries, and what was read of them."""
        self._entries = entries
        self._read = dict(read or {})

    @property
    def read(self) -> Mapping[str, ModelFacts | EngineError]:
        """Return those that were read already."""
        return self._read

    def __getitem__(self, model_id: str) -> ModelFacts | EngineError:
        """Return a model, read now if it was not before; two threads that ask at once get the same one."""
        found = self._read.get(model_id)
        return self._read.setdefault(model_id, model_facts(self._entries[model_id])) if found is None else found

    def __contains__(self, model_id: object) -> bool:
        """Return whether the catalog has a model, without reading its config."""
        return model_id in self._entries

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of all."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._entries)

    def after(self, entries: Mapping[str, ModelEntry], *, are_new_read: bool) -> "BuiltModels":
        """Return the models of a later catalog: the same object where none of them changed.

        Args:
            entries: the later catalog's, by id; the same mapping where nothing changed.
            are_new_read: read the config of each that is new or states something else; else, once it is asked for.
        """
        if entries is self._entries:
            return self
        later = BuiltModels(entries)
        for model_id, entry in entries.items():
            if model_id in self._entries and same(self._entries[model_id], entry):
                if model_id in self._read:
                    later._read[model_id] = self._read[model_id]
            elif are_new_read:
                later._read[model_id] = model_facts(entry)
        return later

    def read_all(self) -> None:
        """Read every config that nobody asked for yet."""
        for model_id in self._entries:
            self[model_id]


def same(one: object, other: object) -> bool:
    """Return whether an entry states what another one does."""
    return one is other or one == other
