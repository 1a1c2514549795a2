"""Which model a name means, and the repository that it spells."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from service.catalog.entries import ModelEntry
from service.catalog.names.formats import stated_format
from service.catalog.names.recipes import Recipe
from service.catalog.names.words import TUNED, words_of
from service.engine.inputs import HALF_FORMATS, WeightFormat

HALF_OR_NOT: Final = (
    "is tuned from weights of few bits, and neither its name nor its entry says whether it is stored in as many or in "
    "16; name the model it is tuned from, with weight_format"
)
UNTUNED: Final = frozenset({"base", "pt"})
SAID_BY_SOME: Final = frozenset({"meta", "hf"})  # of one model, in some of its repositories
WORD: Final = re.compile(r"[A-Za-z0-9]+")
HUB_ID: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,95}/[a-z0-9][a-z0-9_.-]{0,95}")  # in lower case


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReading:
    """Which model a name means, and how it was understood."""

    model_id: str
    hf_id: str | None = None  # the repository that was named, where it is another than the model's own
    weight_format: WeightFormat | None = None  # that the name says; None: the model's own
    repository: str | None = None  # that holds the model's shape in its own format, as it was spelled
    has_own_weights: bool = False  # it is a fine-tune: nobody published its weights in other formats
    recipe: Recipe | None = None  # of few bits, where the name says whose
    how: str = ""  # empty where the name is the model's own


def spelled(key: str, name: str) -> str | None:
    """Return a repository as a name spells it; None where it does not, or as no hub has ids: commands name it.

    >>> spelled("qwen/qwen3-8b", "https://huggingface.co/Qwen/Qwen3-8B/tree/main")
    'Qwen/Qwen3-8B'
    """
    found = re.search(re.escape(key), name, re.IGNORECASE | re.ASCII) if HUB_ID.fullmatch(key) else None
    return found[0] if found else None


def as_spelled(reading: ModelReading, name: str) -> ModelReading:
    """Return a reading whose repository of another format stands as the name spells it; what is no id names none."""
    is_stored = reading.hf_id is None or reading.hf_id != reading.hf_id.lower()
    return reading if is_stored else replace(reading, hf_id=spelled(reading.hf_id or "", name))


def own_format(entry: ModelEntry) -> WeightFormat:
    """Return the format of a model's own checkpoint."""
    return next(each.weight_format for each in entry.checkpoints if each.is_default)


def may_have_half(entry: ModelEntry, publisher: str) -> bool:
    """Return whether what a publisher tuned from a model may be stored in 16 bits, where the model's own is in fewer.

    Whoever published a model stores its editions as the model.
    """
    return own_format(entry) not in HALF_FORMATS and publisher != (entry.hf_id or "").lower().partition("/")[0]


def repository_of_edition(alias: str, entry: ModelEntry) -> str | None:
    """Return the one repository whose name has all words of an alias, where the model's own has not.

    The publisher's come first; of several the one that says nothing else, or the one that is tuned.
    """
    publisher, _, own = (entry.hf_id or "").lower().partition("/")
    asked = _words(alias)
    if asked <= _words(own):
        return None
    named = [each for each in entry.aliases if asked <= _words(each.partition("/")[2])]
    publishers = [each for each in named if each.lower().startswith(f"{publisher}/")]
    meant = publishers or named
    exact = [each for each in meant if _words(each.partition("/")[2]) == asked]
    tuned = [each for each in meant if not _words(each) & UNTUNED]
    found = next((some[0] for some in (exact, meant, tuned) if len(some) == 1), None)
    return None if found is None else _as_published(found, entry)


def _as_published(alias: str, entry: ModelEntry) -> str:
    """Return an alias, which a database keeps in lower case, with the capitals of the model's repositories."""
    published = (entry.hf_id or "", *(checkpoint.hf_id for checkpoint in entry.checkpoints))
    spelled_so = {word.lower(): word for name in reversed(published) for word in WORD.findall(name)}
    return alias if alias != alias.lower() else WORD.sub(lambda word: spelled_so.get(word[0], word[0]), alias)


def is_of_edition(checkpoint: str, repository: str) -> bool:
    """Return whether a checkpoint's name says all that a repository's does, and is tuned where that is.

    >>> is_of_edition("nvidia/DeepSeek-V3-0324-NVFP4", "deepseek-ai/DeepSeek-V3-0324")
    True
    >>> is_of_edition("nvidia/Llama-3.1-70B-Instruct-FP8", "meta-llama/Llama-3.1-70B")
    False
    """
    stored, named = (_words(each.partition("/")[2]) - SAID_BY_SOME for each in (checkpoint, repository))
    return named <= stored and named & TUNED == stored & TUNED


def _words(name: str) -> frozenset[str]:
    return frozenset(words_of(name.lower()))


def of_edition(reading: ModelReading, words: Sequence[str], entry: ModelEntry, key: str, name: str) -> ModelReading:
    """Return a reading by words of the edition that has them all: as it is named under its own publisher.

    `qwen 2.5 coder 7b` has the shape of Qwen2.5 7B Instruct, and is Qwen/Qwen2.5-Coder-7B-Instruct.
    """
    edition = repository_of_edition(" ".join(words), entry)
    if edition is None:
        return _of_stored_edition(reading, words, entry, key, name)
    is_its_own = edition.lower().partition("/")[0] == key.partition("/")[0]
    return replace(reading, repository=(spelled(key, name) if is_its_own else None) or edition)


def _of_stored_edition(
    reading: ModelReading, words: Sequence[str], entry: ModelEntry, key: str, name: str
) -> ModelReading:
    """Return a reading of the one checkpoint whose name has all words, where the model's own has not; in its format.

    `ministral 3 8b reasoning` is stored in bf16, and Ministral 3 8B Instruct in fp8.
    """
    asked = frozenset(words)
    if reading.weight_format or asked <= _words((entry.hf_id or "").partition("/")[2]):
        return reading
    repos = ((each, words_of(each.hf_id.lower().partition("/")[2])) for each in entry.checkpoints)
    named = [each for each, said in repos if asked <= set(said) and stated_format(said).weight_format is None]
    if len(named) != 1:
        return reading
    [stored] = named
    hf_id = (spelled(key, name) if key.partition("/")[0] else None) or stored.hf_id
    how = f"the checkpoint {stored.hf_id} of {entry.name}, in {stored.weight_format}"
    return replace(reading, hf_id=hf_id, weight_format=stored.weight_format, how=f"by its words: {how}")


def of_own_weights(reading: ModelReading, key: str, name: str) -> ModelReading:
    """Return a reading of a repository with weights of its own, where the name says no other format than theirs."""
    repository_named = None if reading.weight_format else spelled(key, name)
    return replace(reading, repository=repository_named, has_own_weights=repository_named is not None)
