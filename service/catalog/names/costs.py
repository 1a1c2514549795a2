"""What it costs to take a catalog's name for the one asked: by the words that it says more."""

from typing import Final

from service.catalog.names.readings import UNTUNED
from service.catalog.names.words import ACTIVE, EDITION, SIZE, TUNED

SAID_FIRST: Final = "meta nvidia google openai mistralai microsoft ibm alibaba amd cohere zai moonshot moonshotai thudm"
PUBLISHERS: Final = frozenset(SAID_FIRST.split())
# What it costs that a catalog's name says a word more; a word of no such kind is another model.
COST_OF_SIZE, COST_OF_EDITION, COST_OF_UNTUNED = 100, 10, 1
NOT_THE_SAME: Final = 10_000


def cost_of(asked: frozenset[str], spoken: frozenset[str]) -> int:
    """Return what it costs to take a catalog's name for the one asked; nothing where no word differs."""
    if spoken == asked:
        return 0
    cost = 1 + sum(_of_word(word, asked) for word in spoken - asked)
    wants_tuned = bool(asked & TUNED) or not asked & UNTUNED
    is_tuned = bool(spoken & TUNED)
    return cost + (COST_OF_UNTUNED if wants_tuned != is_tuned else 0)


def _of_word(word: str, asked: frozenset[str]) -> int:
    """Return what it costs that the catalog's name says a word more."""
    if word in TUNED or word in UNTUNED or word in PUBLISHERS:
        return 0
    if ACTIVE.fullmatch(word) and any(SIZE.fullmatch(each) for each in asked):
        return 0
    if EDITION.fullmatch(word) or word == "preview":
        return COST_OF_EDITION
    return COST_OF_SIZE if SIZE.fullmatch(word) or ACTIVE.fullmatch(word) else NOT_THE_SAME
