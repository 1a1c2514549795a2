"""Models that bear one name in several sizes: what is asked for by that name alone is none of them."""

from collections.abc import Mapping, Sequence
from typing import Final

from service.catalog.entries import ModelEntry
from service.catalog.names.words import SIZE, words_of

BASE: Final = "-base"  # at the end of an entry's id, where the chat that a name means unsaid is another entry
LAYERS: Final = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
WIDTHS: Final = ("hidden_size", "n_embd", "d_model")
LANGUAGE_PARTS: Final = ("text_config", "llm_config", "language_config", "thinker_config")


def several_sizes(
    asked: frozenset[str],
    model_id: str,
    spoken: Mapping[frozenset[str], tuple[str, ...]],
    entries: Mapping[str, ModelEntry],
) -> tuple[str, ...]:
    """Return the models of one publisher that bear a name in several sizes, the one it was taken for first.

    A name that states a size is of one, and so is one whose bearers are of one depth and width.

    Args:
        asked: the words of the name, without those of formats and of every tuned model.
        model_id: which model the words were taken for; what other publishers derive from it is no other size of it.
        spoken: the words of every name.
        entries: models by id.
    """
    if any(SIZE.fullmatch(word) for word in asked):
        return ()
    publisher = entries[model_id].publisher
    bearers = {
        other: None
        for words, model_ids in spoken.items()
        if asked <= words
        for other in (model_id, *model_ids)
        if entries[other].publisher == publisher and (other == model_id or not other.endswith(BASE))
    }
    sizes = {_size(entries[other].config) for other in bearers}
    return tuple(bearers) if len(sizes) > 1 else ()


def named_so(
    model_ids: tuple[str, ...], publisher: str, said: Sequence[str], entries: Mapping[str, ModelEntry]
) -> tuple[str, ...]:
    """Return the one of several models whose own repository a conversion's name is, word for word; else all of them.

    `unsloth/Qwen2.5-1.5B-bnb-4bit` was made of the base, not of the chat.

    Args:
        model_ids: which models the words may mean.
        publisher: whose the conversion is, empty where plain words are asked.
        said: the words of the name, without those of formats.
        entries: models by id.
    """
    if not publisher or len(model_ids) < 2:
        return model_ids
    own = tuple(each for each in model_ids if _own_words(entries[each]) == tuple(said))
    return own if len(own) == 1 else model_ids


def _own_words(entry: ModelEntry) -> tuple[str, ...]:
    return words_of((entry.hf_id or "").rpartition("/")[2])


def _size(config: Mapping[str, object]) -> tuple[object, object]:
    """Return layers and width of the language model that a config states."""
    part = next((part for name in LANGUAGE_PARTS if isinstance(part := config.get(name), Mapping)), None)
    if part is not None:
        return _size(part)
    layers, width = (next((config[name] for name in names if name in config), None) for names in (LAYERS, WIDTHS))
    return layers, width
