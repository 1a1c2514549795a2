"""The immutable in-memory catalog that answers are computed from; no question touches the database."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from rapidfuzz import fuzz, process

from service.catalog.built import BuiltModels, same
from service.catalog.catalog_entries import CatalogEntries
from service.catalog.entries import GpuEntry, ModelEntry, OfferEntry
from service.catalog.errors import InvalidCatalogError, NotInCatalogError
from service.catalog.facts import gpu_facts, offer_facts
from service.catalog.measurement_rows import MeasurementEntry, by_model
from service.catalog.names.gpus import GpuNames, gpu_names
from service.catalog.names.instances import instances
from service.catalog.names.models import ModelNames, model_names
from service.catalog.names.taken_out import deleted_names
from service.engine.derived import Derived
from service.engine.errors import EngineError
from service.engine.facts import ModelFacts
from service.engine.fleet.questions import Offer
from service.engine.inputs import Gpu

MAX_SUGGESTIONS: Final = 3
OF_CLASS: Final = "model_config.architectures"  # the field of a refusal that names a class without a rule
SUGGESTION_SCORE: Final = 65  # at 60, three letters in a row of any long name are enough [per cent]
Kept = TypeVar("Kept", ModelEntry, GpuEntry, OfferEntry)
Built = TypeVar("Built")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """The whole catalog at one revision, ready to compute with."""

    revision: int
    entries: CatalogEntries
    model_entries: Mapping[str, ModelEntry]
    gpu_entries: Mapping[str, GpuEntry]
    offer_entries: Mapping[str, OfferEntry]
    offers: tuple[Offer, ...]
    gpus: Mapping[str, Gpu]
    built_offers: Mapping[str, Offer]
    built_models: BuiltModels
    model_names: Mapping[str, str]
    gpu_names: Mapping[str, str]
    called_models: ModelNames  # what else people call them
    called_gpus: GpuNames
    measurements: Mapping[str, tuple[MeasurementEntry, ...]]  # by callers, by model
    derived: Derived = field(default_factory=Derived, init=False, repr=False)

    def model_id(self, name: str) -> str:
        """Return the id behind a model's id, hub id or alias, in any case.

        Raises:
            NotInCatalogError: no model has the name; close ones are suggested.
        """
        return _found("model", name, self.model_names)

    def model(self, name: str) -> ModelFacts:
        """Return a model to compute with.

        Raises:
            NotInCatalogError: no model has the name.
            EngineError: the model is known and its structure has no rule yet.
        """
        facts = self.built_models[self.model_id(name)]
        if isinstance(facts, EngineError):  # a new one each time: one raised again keeps every frame it passed
            raise type(facts)(facts.detail, field=facts.field, accepted=facts.accepted)
        return facts

    def gpu(self, name: str) -> Gpu:
        """Return a GPU to compute with.

        Raises:
            NotInCatalogError: no GPU has the name; close ones are suggested.
        """
        return self.gpus[_found("gpu", name, self.gpu_names)]

    def refusal(self, model_id: str) -> str | None:
        """Return why a model of the catalog cannot be sized; None when it can."""
        facts = self.built_models[model_id]
        return facts.detail if isinstance(facts, EngineError) else None


EMPTY: Final = Snapshot(
    revision=0,
    entries=CatalogEntries(revision=0, models=(), gpus=(), offers=()),
    model_entries={},
    gpu_entries={},
    offer_entries={},
    offers=(),
    gpus={},
    built_offers={},
    built_models=BuiltModels({}),
    model_names={},
    gpu_names={},
    called_models=model_names({}, {}, frozenset()),
    called_gpus=gpu_names({}, {}, {}),
    measurements={},
)


def build_snapshot(entries: CatalogEntries, before: Snapshot | None = None, *, were_read: bool = False) -> Snapshot:
    """Return the snapshot of a catalog, validated whole; what did not change is taken over from the one before.

    What is remembered about a model or GPU thus outlives a write to another one.

    Args:
        entries: the catalog. [entries]
        before: the snapshot in use.
        were_read: every config was read well before, by these very rules: each is read again when it is asked for.

    Raises:
        InvalidCatalogError: two entries claim one name, or an offer names an unknown GPU.
    """
    was = before or EMPTY
    models = _by_id(entries.models, was.model_entries)
    gpus = _by_id(entries.gpus, was.gpu_entries)
    offers = _by_id(entries.offers, was.offer_entries)
    for offer in entries.offers:
        if offer.gpu not in gpus:
            raise InvalidCatalogError(f"offer {offer.id!r} names the unknown GPU {offer.gpu!r}")
    built = _built(offers, was.offer_entries, was.built_offers, offer_facts)
    models_by_name = was.model_names if models is was.model_entries else _names("model", models, _model_names)
    gpus_by_name = was.gpu_names if gpus is was.gpu_entries else _names("gpu", gpus, _gpu_names)
    same_gpus = gpus is was.gpu_entries and offers is was.offer_entries
    return Snapshot(
        revision=entries.revision,
        entries=entries,
        model_entries=models,
        gpu_entries=gpus,
        offer_entries=offers,
        offers=was.offers if built is was.built_offers else tuple(built.values()),
        built_offers=built,
        gpus=_built(gpus, was.gpu_entries, was.gpus, gpu_facts),
        built_models=was.built_models.after(models, are_new_read=not were_read),
        model_names=models_by_name,
        gpu_names=gpus_by_name,
        called_models=was.called_models
        if models is was.model_entries
        else model_names(models, models_by_name, deleted_names(entries.taken_out, "model")),
        called_gpus=was.called_gpus
        if same_gpus
        else gpu_names(
            gpus, gpus_by_name, instances(offers, gpus), deleted_names(entries.taken_out, "gpu"), was.called_gpus
        ),
        measurements=by_model(entries.measurements),
    )


def _by_id(entries: Sequence[Kept], before: Mapping[str, Kept]) -> Mapping[str, Kept]:
    """Return entries by id; the mapping before where none of them changed."""
    if len(entries) == len(before) and all(before.get(entry.id) is entry for entry in entries):
        return before
    return {entry.id: entry for entry in entries}


def _built(
    entries: Mapping[str, Kept], before: Mapping[str, Kept], built: Mapping[str, Built], build: Callable[[Kept], Built]
) -> Mapping[str, Built]:
    """Return what the engine computes with; built anew, and kept, only where an entry states something else."""
    if entries is before:
        return built
    return {
        entry_id: built[entry_id] if entry_id in before and same(before[entry_id], entry) else build(entry)
        for entry_id, entry in entries.items()
    }


def check_readable(snapshot: Snapshot) -> None:
    """Refuse a catalog in which a class has a rule, and a config of it cannot be read by any.

    A model of a class without a rule is refused alone, when it is asked for.

    Raises:
        InvalidCatalogError: a config cannot be read; the message names its model.
    """
    for model_id, facts in snapshot.built_models.read.items():
        if isinstance(facts, EngineError) and facts.field != OF_CLASS:
            raise InvalidCatalogError(f"the config of model {model_id!r} cannot be read: {facts.detail}")


def _model_names(entry: ModelEntry) -> tuple[str, ...]:
    return (*entry.aliases, *([entry.hf_id] if entry.hf_id else []))


def _gpu_names(entry: GpuEntry) -> tuple[str, ...]:
    return (*entry.aliases, entry.name)


def _names(kind: str, entries: Mapping[str, Kept], further: Callable[[Kept], tuple[str, ...]]) -> Mapping[str, str]:
    """Return every name in lower case with the id it stands for; ids come first.

    Raises:
        InvalidCatalogError: one name stands for two entries.
    """
    names = {entry_id: entry_id for entry_id in entries}
    for entry_id, entry in entries.items():
        for name in further(entry):
            owner = names.setdefault(name.lower(), entry_id)
            if owner != entry_id:
                raise InvalidCatalogError(f"the {kind} name {name!r} stands for both {owner!r} and {entry_id!r}")
    return names


def _found(kind: str, name: str, names: Mapping[str, str]) -> str:
    entry_id = names.get(name.strip().lower())
    if entry_id is None:
        raise NotInCatalogError(kind, name[:100], suggestions(name[:100], names))
    return entry_id


def suggestions(name: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ids whose names come closest to a misspelt one."""
    close = process.extract(name.lower(), names.keys(), scorer=fuzz.WRatio, limit=12, score_cutoff=SUGGESTION_SCORE)
    ids = dict.fromkeys(names[match] for match, _, _ in close)
    return tuple(ids)[:MAX_SUGGESTIONS]
