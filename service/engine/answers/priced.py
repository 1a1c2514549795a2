"""What a price rests on: which offers count, as the caller stated or as is usual."""

from collections.abc import Iterator, Mapping
from typing import Final

from service.engine.answers.noted import note
from service.engine.fleet.questions import AnyQuestion
from service.engine.fleet.results import Assumption

USUAL: Final[Mapping[str, str]] = {
    "tiers": "servers that providers run themselves; tiers=secure,community counts anybody's as well",
    "purchases": "by the hour, without a commitment; purchases=on-demand,reserved,spot counts the others as well",
}


def priced(question: AnyQuestion) -> Iterator[Assumption]:
    """Yield by what offers count, and what is paid."""
    for term in question.price_terms:
        yield note(term.name, term.value, *(("request", None) if term.is_stated else ("default", USUAL[term.name])))
