"""Reads what somebody calls a model: an id, a hub's address, a conversion's repository, or plain words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from service.catalog.entries import Checkpoint, ModelEntry
from service.catalog.errors import NotInCatalogError
from service.catalog.names.addresses import repository, whole_keys
from service.catalog.names.costs import NOT_THE_SAME, PUBLISHERS, cost_of
from service.catalog.names.formats import (
    FILES_OF,
    STATED,
    Stated,
    as_published,
    foreign_files,
    stated_format,
    without_own_edition,
    without_types,
)
from service.catalog.names.kinds import earlier_kind, kind_of
from service.catalog.names.readings import (
    HALF_OR_NOT,
    UNTUNED,
    ModelReading,
    as_spelled,
    may_have_half,
    of_edition,
    of_own_weights,
    own_format,
    repository_of_edition,
    spelled,
)
from service.catalog.names.repositories import REPOSITORIES, STORED, WHOLE, is_unlisted, listed, model_of
from service.catalog.names.siblings import BASE, named_so, several_sizes
from service.catalog.names.spoken import Spoken, spoken_names
from service.catalog.names.taken_out import is_deleted
from service.catalog.names.told_once import told_once
from service.catalog.names.totals import of_total, without_size
from service.catalog.names.unread import unread
from service.catalog.names.unsized import few_bits, unsized
from service.catalog.names.words import (
    TUNED,
    joined_words,
    plain,
    with_pointed_edition,
    with_points,
    with_points_left_out,
    without_edition_letter,
    without_served,
    words_of,
)
from service.engine.derived import Derived, derived
from service.engine.inputs import HALF_FORMATS

MOST_CANDIDATES: Final = 8
MOST_READ: Final = 1_024  # names, of which each catalog keeps what they mean


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNames:
    """Every name of every model of a catalog."""

    entries: Mapping[str, ModelEntry]
    exact: Mapping[str, str]  # ids, hub ids and aliases, in lower case
    checkpoints: Mapping[str, tuple[str, Checkpoint]]  # hub ids in lower case: the model, and what is stored of it
    deleted: frozenset[str]  # what models were called that are there no more
    derived: Derived = field(default_factory=Derived, init=False, repr=False, compare=False)  # of names

    @property
    def words(self) -> Spoken:
        """Return names by their words, found when a name is first read that is none of the catalog's own."""
        return _spoken_names(self)

    def make_ready(self) -> None:
        """Find the words of names, some tenths of a second, before anybody asks for one that is not the catalog's."""
        _spoken_names(self)
        listed(())

    def read(self, name: str) -> ModelReading:
        """Return which model a name means: what was read once is kept with the names."""
        return _read(self, name)

    def read_anew(self, name: str) -> ModelReading:
        """Return which model a name means.

        Raises:
            NotInCatalogError: no model is meant, or several may be, or files that no engine here loads; with
                neighbours, the nearest first.
        """
        if literal := next(filter(None, (self._literal(key, name) for key in whole_keys(name))), None):
            return literal
        publisher, repo = repository(name)
        if any(is_deleted(each, self.deleted) for each in (plain(name), f"{publisher}/{repo}")):
            raise self._refused(name, stated_format(words_of(repo), publisher).rest, None)
        repo = as_published(repo)
        stored = self._literal(f"{publisher}/{repo}", name) if publisher else self._literal(repo, name)
        known = stored or self._of_shape(name, publisher, repo.replace(" ", "-"))
        return known or self._by_words(name, publisher, repo)

    def _literal(self, key: str, name: str) -> ModelReading | None:
        """Return what a name of the catalog stands for."""
        checkpoint = self.checkpoints.get(key)
        if checkpoint is not None:
            return self._of_checkpoint(*checkpoint)
        model_id = self.exact.get(key)
        if model_id is None:
            return None
        entry = self.entries[model_id]
        publisher, _, repo = key.rpartition("/")
        said = stated_format(words_of(repo), publisher)
        is_own = key in (model_id, (entry.hf_id or "").lower())
        how = "" if is_own else f"another repository of {entry.name}" if publisher else self._assumed(said, entry)
        if is_own or said.weight_format in (None, own_format(entry)):
            how = how or ("" if key == plain(name) else "by its address")
            spelled_so = None if is_own else spelled(key, name) or repository_of_edition(key, entry)
            how = how or (f"{spelled_so}, of the shape of {entry.name}" if spelled_so else "")
            return ModelReading(model_id=model_id, repository=spelled_so, how=how)
        return self._in_format(model_id, said, key if publisher else None, how or "an alias")

    def _of_checkpoint(self, model_id: str, checkpoint: Checkpoint) -> ModelReading:
        if checkpoint.is_default:
            return ModelReading(model_id=model_id)
        how = f"the checkpoint {checkpoint.hf_id} of {self.entries[model_id].name}, in {checkpoint.weight_format}"
        return ModelReading(model_id=model_id, hf_id=checkpoint.hf_id, weight_format=checkpoint.weight_format, how=how)

    def _of_shape(self, name: str, publisher: str, repo: str) -> ModelReading | None:
        """Return the model whose shape a repository is known to have, in the format that its name or page says."""
        spelled_out = plain(name)  # an address may take what hosts write behind a name off it: `-8B-Thinking`
        key = spelled_out if spelled_out in REPOSITORIES else f"{publisher}/{repo}" if publisher else repo
        entry = self.entries.get(model_of(key, publisher, repo))
        if entry is None or is_unlisted(entry.hf_id or "", key, publisher):
            return None
        said = stated_format(words_of(repo), publisher)
        self._check_one_format(name, said)
        is_told = said.weight_format not in (None, *HALF_FORMATS) and not STATED.keys().isdisjoint(words_of(repo))
        few = None if is_told else few_bits(repo)
        if few is not None:
            raise self._refused(name, said.rest, f"{name[:100]!r} says {few!r}, of fewer bits that no rule here stores")
        whole = name if publisher else WHOLE.get(repo, name)
        stored = said.weight_format or STORED.get(key) or STORED.get(whole.lower())
        if stored is None and may_have_half(entry, publisher or whole.lower().partition("/")[0]):
            raise NotInCatalogError("model", name[:100], (entry.id,), why=f"{name[:100]!r} {HALF_OR_NOT}")
        how = f"a repository of the shape of {entry.name}"
        known = (key if publisher else whole.lower()) if key in REPOSITORIES else ""
        said = replace(said, weight_format=stored)
        return of_own_weights(self._in_format(entry.id, said, key if publisher else None, how), known, whole)

    def _by_words(self, name: str, publisher: str, repo: str) -> ModelReading:
        """Return the one model whose name has the words, and the format they say."""
        said = stated_format(words_of(repo), publisher)
        if not self._meant(said.rest):
            said = stated_format(without_served(without_own_edition(words_of(repo))), publisher)
        foreign = foreign_files(repo) or said.foreign or FILES_OF.get(publisher)
        if foreign:
            rest = stated_format(words_of(without_types(repo)), publisher).rest
            raise self._refused(name, rest, f"{name[:100]!r} names files in {foreign}; no engine here loads them")
        self._check_one_format(name, said)
        if self.words.nearest.well_known(said.rest):
            raise self._refused(name, said.rest, f"{name[:100]!r} names a family of models")
        if not (publisher or kind_of(words_of(repo))) and (editions := self.words.nearest.of_edition(said.rest)):
            raise NotInCatalogError("model", name[:100], editions, why=f"{name[:100]!r} does not say whose it is")
        if earlier := earlier_kind(words_of(repo)):
            raise self._refused(name, said.rest, f"{name[:100]!r} is {earlier}")
        model_ids = named_so(self._told(said.rest), publisher, said.rest, self.entries)
        if len(model_ids) > 1:
            several = f"{name[:100]!r} may be any of several models"
            raise NotInCatalogError("model", name[:100], model_ids[:MOST_CANDIDATES], why=several)
        how = f"by its words, {' '.join(said.rest)}"
        if not model_ids:
            what = kind_of(words_of(repo)) or unread(words_of(repo))
            odd = unsized(repo)
            model_ids = () if what or odd else self._tuned(said)
            if not model_ids:
                why = f"{name[:100]!r} is {what}" if what else self._apart(name, said, odd)
                raise self._refused(name, said.rest, why, is_known=what is not None)
            key = f"{publisher}/{repo}"
            tuned = self._in_format(model_ids[0], said, key if publisher else None, "a fine-tune, by its words")
            return of_own_weights(tuned, key if publisher else "", name)
        reading = self._in_format(model_ids[0], said, f"{publisher}/{repo}" if publisher else None, how)
        return of_edition(reading, said.rest, self.entries[reading.model_id], f"{publisher}/{repo}", name)

    def _check_one_format(self, name: str, said: Stated) -> None:
        if said.contradicts:
            formats = " and ".join(said.contradicts)
            why = f"{name[:100]!r} says {formats} at once; name the model itself, with weight_format"
            raise self._refused(name, said.rest, why)

    def _in_format(self, model_id: str, said: Stated, hf_id: str | None, how: str) -> ModelReading:
        """Return a reading in the format that the name says, of the repository that it names."""
        entry = self.entries[model_id]
        if said.weight_format in (None, own_format(entry)):
            return ModelReading(model_id=model_id, how=f"{how}: {entry.name}" if entry.name not in how else how)
        return ModelReading(
            model_id=model_id,
            hf_id=hf_id,
            weight_format=said.weight_format,
            recipe=said.recipe,
            how=f"{how}: {entry.name} in {said.weight_format}",
        )

    def _meant(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the models whose names differ least from words, and by nothing that tells models apart."""
        asked = frozenset(words) - {word for word in words[:1] if word in PUBLISHERS}
        asked_for = asked - TUNED - UNTUNED
        if not asked_for:
            return ()
        costs: dict[str, int] = {}
        for spoken, model_ids in self.words.spoken.items():
            if asked_for <= spoken:
                cost = cost_of(asked, spoken)
                for model_id in model_ids:
                    costs[model_id] = min(cost, costs.get(model_id, NOT_THE_SAME))
        least = min(costs.values(), default=NOT_THE_SAME)
        meant = tuple(model_id for model_id, cost in costs.items() if cost == least < NOT_THE_SAME)
        return meant if "base" in asked else tuple(each for each in meant if not each.endswith(BASE)) or meant

    def _tuned(self, said: Stated) -> tuple[str, ...]:
        """Return the one model of which a name says that it is a fine-tune.

        A fine-tune of a model that is stored in few bits may be stored in as many, or in 16: its name has to say.
        """
        tune = self.words.bases.of(with_points(said.rest))
        if tune is None:
            is_own = not self.words.bases.says_another(said.rest)
            model_ids = tuple(each for each in listed(said.rest) if is_own and each in self.entries)
        else:
            model_ids = self._meant((*tune.base, *(word for word in said.rest if word in TUNED or word in UNTUNED)))
        is_whole = len(model_ids) == 1 and own_format(self.entries[model_ids[0]]) in HALF_FORMATS
        return model_ids if is_whole or (said.weight_format and len(model_ids) == 1) else ()

    def _apart(self, name: str, said: Stated, odd: str | None) -> str | None:
        """Return by which word a name that tells a base tells that it has another shape or format."""
        if odd is not None and self.words.bases.tells(with_points(said.rest)):
            return f"{name[:100]!r} says {odd}; name the model itself, with weight_format, or paste its config"
        found = self.words.bases.apart(with_points(said.rest))
        if found is None:
            return None
        base, word = found
        why = "which publishers say of another shape, context or format: it is not read as that base"
        return f"{name[:100]!r} tells {' '.join(base)}, and {word!r}, {why}"

    def _told(self, said: tuple[str, ...]) -> tuple[str, ...]:
        """Return the models that words mean, in the first of the ways in which names write figures that means one.

        Points first: `3`, `3` of `llama3-3` are one word of two figures, and as a set of words a single 3.
        """
        pointed = with_points(said)
        others = (with_pointed_edition(said), with_points_left_out(said), without_edition_letter(said))
        for words in (pointed, said, *others):
            model_ids = self._meant(words)
            if model_ids:
                # `qwen3-8` is 3.8, or 8 billion.
                bare = self._meant((*said[:-1], f"{said[-1]}b")) if words is pointed and len(words) < len(said) else ()
                return tuple(dict.fromkeys((*self._of_one_size(words, model_ids), *bare)))
        joined = self.words.joined.get(joined_words(said), ())  # the same but for where a word ends
        return joined or self._of_total(said) or self._of_total(pointed)

    def _of_total(self, said: tuple[str, ...]) -> tuple[str, ...]:
        """Return the models that words mean without the size among them, and that have as many parameters."""
        apart = without_size(said)
        return of_total(self._meant(apart[0]), apart[1], self.entries) if apart else ()

    def _of_one_size(self, words: Sequence[str], model_ids: tuple[str, ...]) -> tuple[str, ...]:
        """Return the models that a name was taken for, and those that bear it in other sizes, where it says none."""
        asked = frozenset(words) - TUNED - UNTUNED
        if len(model_ids) > 1 or asked in self.words.spoken or frozenset(words) in self.words.spoken:
            return model_ids
        return several_sizes(asked, model_ids[0], self.words.spoken, self.entries) or model_ids

    def _assumed(self, said: Stated, entry: ModelEntry) -> str:
        """Return what an alias leaves open: nothing where it says a size, or no other model bears it."""
        asked = frozenset(said.rest) - TUNED - UNTUNED
        others = several_sizes(asked, entry.id, self.words.spoken, self.entries)
        return f"of several sizes that bear this name: {entry.name}" if others else ""

    def _refused(
        self, name: str, words: Sequence[str], why: str | None, *, is_known: bool = False
    ) -> NotInCatalogError:
        return NotInCatalogError("model", name[:100], self.words.nearest.to(words, is_known=is_known), why=why)


@told_once(MOST_READ)
def _read(names: ModelNames, name: str) -> ModelReading:
    return as_spelled(names.read_anew(name), name)


def model_names(entries: Mapping[str, ModelEntry], exact: Mapping[str, str], deleted: frozenset[str]) -> ModelNames:
    """Return the names of a catalog's models."""
    checkpoints: dict[str, tuple[str, Checkpoint]] = {}
    for entry in entries.values():
        for checkpoint in entry.checkpoints:
            if (key := checkpoint.hf_id.lower()) not in exact:
                checkpoints.setdefault(key, (entry.id, checkpoint))
    return ModelNames(entries=entries, exact=exact, checkpoints=checkpoints, deleted=deleted)


@derived(1)
def _spoken_names(names: ModelNames) -> Spoken:
    return spoken_names(names.entries, names.exact)
