"""The names of a catalog by their words, ready to compare with what somebody wrote."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from service.catalog.entries import ModelEntry
from service.catalog.names.formats import stated_format
from service.catalog.names.nearest import Nearest, families_of, spelled_words
from service.catalog.names.siblings import BASE
from service.catalog.names.tunes import Bases, bases_of
from service.catalog.names.words import joined_words, with_points, words_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """Names by their words."""

    spoken: Mapping[frozenset[str], tuple[str, ...]]  # the words of names: the models
    nearest: Nearest
    bases: Bases
    joined: Mapping[tuple[str, ...], tuple[str, ...]]  # names without a space, and their sizes: the models


def spoken_names(entries: Mapping[str, ModelEntry], exact: Mapping[str, str]) -> Spoken:
    """Return the names of a catalog's models by their words.

    Args:
        entries: models by id.
        exact: ids, hub ids and aliases in lower case, with their models.
    """
    exact = {name: model_id for name, model_id in exact.items() if not _means_chat(name, model_id)}
    named = tuple(_named(entries, exact))
    joined: dict[tuple[str, ...], dict[str, None]] = {}
    for name, model_id in exact.items():
        joined.setdefault(joined_words(words_of(name.rsplit("/", 1)[-1])), {})[model_id] = None
    whole = {words: tuple(model_ids) for words, model_ids in joined.items()}
    families = families_of(tuple(exact))
    # Neighbours of what is refused are those that people mean most: chats.
    chats = {model_id for model_id in entries if not model_id.endswith(BASE)}
    pointed = _by_words((with_points(words), model_id) for words, model_id in named if model_id in chats)
    return Spoken(
        spoken=_by_words(named),
        bases=bases_of((with_points(words) for words, _ in named), families),
        nearest=Nearest(
            spoken=pointed,
            sorted_words=tuple(" ".join(sorted(words)) for words in pointed),
            spelled_words=tuple(spelled_words(words) for words in pointed),
            families=families,
            joined={
                words[0]: own
                for words, model_ids in whole.items()
                if (own := tuple(model_id for model_id in model_ids if model_id in chats))
            },
        ),
        joined=whole,
    )


def _by_words(named: Iterable[tuple[tuple[str, ...], str]]) -> Mapping[frozenset[str], tuple[str, ...]]:
    """Return which models go by the same words, in whatever order."""
    spoken: dict[frozenset[str], dict[str, None]] = {}
    for words, model_id in named:
        if words:
            spoken.setdefault(frozenset(words), {})[model_id] = None
    return {words: tuple(model_ids) for words, model_ids in spoken.items()}


def _named(entries: Mapping[str, ModelEntry], exact: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the words of every name in their order, without those of formats, and its model's id."""
    for name, model_id in _names(entries, exact):
        publisher, _, repo = name.rpartition("/")
        yield stated_format(words_of(repo), publisher).rest, model_id


def _names(entries: Mapping[str, ModelEntry], exact: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield every name with its model's id."""
    yield from exact.items()
    for entry in entries.values():
        stored = (checkpoint.hf_id.lower() for checkpoint in entry.checkpoints)
        yield from ((name, entry.id) for name in stored if not _means_chat(name, entry.id))
        yield entry.name.lower(), entry.id


def _means_chat(name: str, model_id: str) -> bool:
    """Return whether the words of a base model's repository are read as its chat: `qwen2 7b`, of Qwen/Qwen2-7B."""
    return model_id.endswith(BASE) and "base" not in name.rpartition("/")[2]
