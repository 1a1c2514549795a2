"""Reads what somebody calls a GPU: an id, what a driver prints, a name of marketing, several of them, an instance."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from rapidfuzz import fuzz, process

from service.catalog.entries import GpuEntry
from service.catalog.errors import NotInCatalogError
from service.catalog.names.counts import BARE_MEMORY, counts, uncounted
from service.catalog.names.instances import Instance, instance_key
from service.catalog.names.labels import bare_name
from service.catalog.names.likeness import MAKER_OF, MOST_COMPARED, likeness, misspelt
from service.catalog.names.said import FURTHER, WORD, Said, said_of
from service.catalog.names.schemes import spelled
from service.catalog.names.taken_out import is_taken_out
from service.catalog.names.unserved import SEVERAL, several, unserved
from service.catalog.names.words import plain

MOST_NEIGHBOURS: Final = 3
LIKE_A_TYPE: Final = 80.0  # from which a name is a misspelt instance type [per cent]
LEAST_SCORE: Final = 30.0  # below it a neighbour confuses more than it helps [per cent]
FOR_MEMORY: Final = 5.0  # given to a neighbour with the memory that was said [per cent]
OF_A_GENERATION: Final = frozenset({"nvidia", "amd", "lovelace", "generation", "gpu", "gpus"})
PCIE: Final = "pcie"
MOST_COUNTED: Final = 100_000
PART: Final = "no engine spreads a model over slices, and what a slice leaves of its GPU is not known; size the whole"
SAME_MEMORY: Final = 0.02  # how far a name's gigabytes may be from the driver's figure [fraction]

# A driver prints the same name of cards of 8 and of 16 GB, one of which bears it as its id; price lists leave out the
# generation of RTX 6000.
SHARED_NAMES: Final[Mapping[frozenset[str], tuple[str, ...]]] = {
    frozenset({"rtx", "5060", "ti"}): ("rtx-5060-ti", "rtx-5060-ti-8gb"),
    frozenset({"5060", "ti"}): ("rtx-5060-ti", "rtx-5060-ti-8gb"),
    frozenset({"rtx", "6000"}): ("rtx-6000-ada", "quadro-rtx-6000"),
}
LETTERED: Final = re.compile(r"(?<![a-z0-9])[a-z]{1,3}[0-9]+[a-z]?(?![a-z0-9])")  # `h100`, and no `4090`
SLICE: Final = re.compile(
    r"-[0-9]{1,2}[acq]$|[ _-]shared$|[ _-]*(?:\bmig[ _-]*)?(?:(?<=[ _-])|\b)[1-7]g\.[0-9]{1,3}gb(?:\+me)?\b.*|"
    r"^(?:0?\.[0-9]+|1/[2-9]|half|quarter)(?: of)?(?: an?)?[ *x-]+|[ :=@*]+(?:x ?)?0?\.[0-9]+$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """Which GPU a name means, how many of them, and how it was understood."""

    gpu_id: str
    gpu_count: int | None = None  # None: the name counts none
    instance_type: str | None = None
    how: str = ""  # empty where the name is one of the catalog's


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNames:
    """Every name of every GPU of a catalog."""

    entries: Mapping[str, GpuEntry]
    exact: Mapping[str, str]  # ids, names and aliases, in lower case
    instances: Mapping[str, Instance]
    spoken: Mapping[str, tuple[Said, ...]]  # by id
    deleted: frozenset[str]  # what GPUs were called that are there no more

    def read(self, name: str) -> GpuReading:
        """Return which GPU a name means.

        Raises:
            NotInCatalogError: no GPU is meant, or several may be; with neighbours, the nearest first.
        """
        key = plain(name)
        if key in self.exact:
            return GpuReading(gpu_id=self.exact[key])
        whole = SLICE.sub("", key)
        if whole != key:
            why = f"{name[:100]!r} is a MIG slice, a virtual GPU or a share of one: {PART}"
            raise NotInCatalogError("gpu", name[:100], self._wholes(whole), why=why)
        if is_taken_out(key, self.entries, self.deleted):
            raise self._refusal(name, key)
        bare = bare_name(key)
        reading = self._of_instance(name) or self._of_scheme(name) or self._counted(bare) or self._of_instance(bare)
        if reading is None:
            raise self._refusal(name, key)
        return reading

    def _refusal(self, name: str, key: str) -> NotInCatalogError:
        """Return why a name is not understood: nothing runs on what it means, or nothing here has it."""
        generation = "-".join(word for word in key.replace("-", " ").split() if word not in OF_A_GENERATION)
        of_generation = sorted(
            (gpu_id for gpu_id, entry in self.entries.items() if entry.architecture == generation),
            key=lambda gpu_id: (self.entries[gpu_id].measured_as is None, gpu_id),
        )
        if of_generation:
            why = f"{name[:100]!r} is a generation of GPUs"
            return NotInCatalogError("gpu", name[:100], tuple(of_generation[:MOST_NEIGHBOURS]), why=why)
        if parts := several(key):
            wholes = tuple(dict.fromkeys(each for part in parts for each in self._wholes(part)))
            why = f"{name[:100]!r} {SEVERAL}"
            return NotInCatalogError("gpu", name[:100], wholes[:MOST_NEIGHBOURS], why=why)
        known = unserved(key) or unserved(key.replace("_", " "))
        if known is None:
            return NotInCatalogError("gpu", name[:100], self.neighbours(key), why=self._of_other_memory(name, key))
        nearest = tuple(gpu_id for gpu_id in known.nearest if gpu_id in self.entries)
        return NotInCatalogError("gpu", name[:100], nearest, why=f"{name[:100]!r} is known, but {known.why}")

    def _of_other_memory(self, name: str, key: str) -> str | None:
        """Return that a GPU is known, and none of it with the memory that its name states."""
        said = said_of(uncounted(bare_name(key)))
        bare = replace(said, memory=None, words=said.words - FURTHER)
        is_known = self._having(bare) or self._having(replace(said, memory=None))
        if said.memory is None or not bare.words or not is_known:
            return None
        figure, unit = said.memory
        return f"{name[:100]!r} states {figure} {unit.upper()}B, which no entry of that GPU has"

    def _of_scheme(self, name: str) -> GpuReading | None:
        """Return what an instance type means by the way its provider composes names."""
        said = spelled(name)
        try:
            of = self._single(said.gpu) if said else None
        except NotInCatalogError:
            return None
        if said is None or of is None or not said.count:
            return None
        inside = f"{said.count} x {self.entries[of.gpu_id].name}"
        return replace(of, gpu_count=said.count, how=f"the instance type {name[:100]}, with {inside}")

    def _wholes(self, key: str) -> tuple[str, ...]:
        """Return the GPU that a slice is part of, or its neighbours."""
        try:
            reading = self._counted(bare_name(key))
        except NotInCatalogError as several:
            return several.suggestions
        return self.neighbours(key) if reading is None else (reading.gpu_id,)

    def _of_instance(self, name: str) -> GpuReading | None:
        instance = self.instances.get(instance_key(name))
        if instance is None:
            return None
        inside = f"{instance.gpu_count} x {self.entries[instance.gpu].name}"
        return GpuReading(
            gpu_id=instance.gpu,
            gpu_count=instance.gpu_count,
            instance_type=instance.instance_type,
            how=f"the instance type {instance.instance_type}, with {inside}",
        )

    def _counted(self, key: str) -> GpuReading | None:
        """Return a GPU, or several of one kind."""
        single = self._single(key)
        if single is not None:
            return single
        for count, rest in counts(key):
            known = self._single(rest) or self._of_instance(rest) or self._of_scheme(rest)
            reading = known if 1 <= count <= MOST_COUNTED else None
            if reading is not None:
                of = reading.instance_type or self.entries[reading.gpu_id].name
                return replace(reading, gpu_count=count * (reading.gpu_count or 1), how=f"{count} x {of}")
        return self._counted(f"{key}gb") if BARE_MEMORY.fullmatch(key) else None

    def _single(self, key: str) -> GpuReading | None:
        """Return the one GPU that has the words of a name, and no memory but the one it states.

        Raises:
            NotInCatalogError: several have.
        """
        said = said_of(key)
        shared = self._sharing(said)
        if len(shared) > 1 or (shared and said.memory is None):
            self._several(key, shared)
        gpu_id = self.exact.get(re.sub(r"[ _-]+", "-", key.strip(" ()-_")))
        if gpu_id is not None:
            return self._by_words(gpu_id)
        if not said.words or is_taken_out(key, self.entries, self.deleted):
            return None
        bare = replace(said, words=said.words - FURTHER)
        gpu_ids = shared or self._having(said) or (self._having(bare) if bare.words else ()) or self._on_pcie(bare)
        default = self.exact.get("-".join(sorted(bare.words, key=key.find)))
        if default in gpu_ids:
            return self._by_words(default)
        if len(gpu_ids) > 1:
            self._several(key, gpu_ids)
        return self._by_words(gpu_ids[0]) if gpu_ids else None

    def _several(self, key: str, gpu_ids: tuple[str, ...]) -> NoReturn:
        raise NotInCatalogError("gpu", key[:100], gpu_ids, why=f"{key[:100]!r} may be any of several GPUs")

    def _by_words(self, gpu_id: str) -> GpuReading:
        return GpuReading(gpu_id=gpu_id, how=f"by its words: {self.entries[gpu_id].name}")

    def _having(self, said: Said) -> tuple[str, ...]:
        return tuple(
            gpu_id
            for gpu_id, names in self.spoken.items()
            if any(name.words == said.words and self._has_memory(gpu_id, name, said) for name in names)
        )

    def _sharing(self, said: Said) -> tuple[str, ...]:
        """Return the GPUs that share a name, of which a memory that it states leaves those that have it."""
        unnamed = Said(words=said.words, memory=None)
        return tuple(
            gpu_id
            for gpu_id in SHARED_NAMES.get(said.words, ())
            if gpu_id in self.entries and self._has_memory(gpu_id, unnamed, said)
        )

    def _on_pcie(self, said: Said) -> tuple[str, ...]:
        """Return the GPUs of a name that says `PCIe` of what comes as such a card alone."""
        bare = replace(said, words=said.words - {PCIE})
        gpu_ids = self._having(bare) if bare.words and bare != said else ()
        return gpu_ids if all(self.entries[gpu_id].scale_up_kind == PCIE for gpu_id in gpu_ids) else ()

    def _has_memory(self, gpu_id: str, name: Said, said: Said) -> bool:
        """Return whether a GPU has the memory that was said of it, by its own name or its driver."""
        if said.memory is None or said.memory == name.memory:
            return True
        figure, unit = said.memory
        held = float(self.entries[gpu_id].figures["memory_bytes"].value)
        scales = (10**9, 1 << 30) if unit == "g" else (10**6, 1 << 20)
        return any(abs(figure * scale / held - 1) <= SAME_MEMORY for scale in scales)

    def neighbours(self, key: str) -> tuple[str, ...]:
        """Return the GPUs whose names come closest, or instance types where it looks like one."""
        family = [
            name
            for name in self.instances
            if name.startswith((f"{key}.", f"{key}-")) or key.startswith((f"{name}.", f"{name}-"))
        ]
        if family:
            return tuple(self.instances[name].instance_type for name in sorted(family)[:MOST_NEIGHBOURS])
        typed = misspelt(key, self.exact)
        types = () if typed else self._types(key)
        if types:
            return types
        said = said_of(uncounted(bare_name(key)))
        asked = said.words
        makers = {MAKER_OF[word] for word in WORD.findall(key) if word in MAKER_OF}
        scores = {
            gpu_id: max(likeness(asked, name.words) + self._for_memory(gpu_id, name, said) for name in names)
            for gpu_id, names in self.spoken.items()
            if names and asked and (not makers or self.entries[gpu_id].vendor in makers)
        }
        near = sorted((each for each, score in scores.items() if score >= LEAST_SCORE), key=lambda each: -scores[each])
        meant = self.exact.get("-".join(sorted(asked, key=key.find))) if typed is None else typed
        first = [meant] if meant in scores else near[:1]
        likest = {word for gpu_id in first for name in self.spoken[gpu_id] for word in name.words}
        written = [word for word in LETTERED.findall(key) if self.exact.get(word) in scores]
        named = () if likest.intersection(written) else (self.exact[word] for word in written)
        return tuple(dict.fromkeys((*named, *first, *near)))[:MOST_NEIGHBOURS]

    def _types(self, key: str) -> tuple[str, ...]:
        """Return the instance types whose names come closest."""
        types = process.extract(
            instance_key(key)[:MOST_COMPARED],
            self.instances.keys(),
            scorer=fuzz.ratio,
            limit=MOST_NEIGHBOURS,
            score_cutoff=LIKE_A_TYPE,
        )
        return tuple(dict.fromkeys(self.instances[name].instance_type for name, _, _ in types))

    def _for_memory(self, gpu_id: str, name: Said, said: Said) -> float:
        """Return what is given for the memory that was said, where some was."""
        return FOR_MEMORY if said.memory is not None and self._has_memory(gpu_id, name, said) else 0.0


def gpu_names(
    entries: Mapping[str, GpuEntry],
    exact: Mapping[str, str],
    instances: Mapping[str, Instance],
    deleted: frozenset[str] = frozenset(),
    before: GpuNames | None = None,
) -> GpuNames:
    """Return the names of a catalog's GPUs; what did not change is taken over from those before."""
    if before is not None and entries is before.entries:
        return before if instances == before.instances else replace(before, instances=instances)
    spoken: dict[str, dict[Said, None]] = {gpu_id: {} for gpu_id in entries}
    for name, gpu_id in exact.items():
        said = said_of(bare_name(name))
        if said.words:
            spoken[gpu_id][said] = None
    told = {gpu: tuple(names) for gpu, names in spoken.items()}
    return GpuNames(entries=entries, exact=exact, instances=instances, spoken=told, deleted=deleted)
