"""Repositories of a known shape: fine-tunes and conversions, each with the catalog's model of that shape.

A repository stands in `data/repositories.csv` where the hub states of it and of the model's own the same class, layers,
heads, width of heads and of the model, experts and context, a vocabulary of as many tokens but for 64 that fine-tunes
add, and, unless its name says a format of few bits, the same number of parameters to a thousandth (a tied head that is
stored twice aside); or, where it states no more, the same class and total to the parameter. What its name says of a
format holds as for any other name; one that says few bits and no format that is sized is refused by it.

Source:
    llmfit 1.1.17 (MIT licence, October 2026), which lists configs and totals of the hub's repositories; of fine-tunes
        that OpenRouter and Together sell or Xinference lists, the base that the card of each on huggingface.co names.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from service.catalog.names.words import words_of

CONVERSIONS: Final = re.compile(
    r"(?:-(?:quantized\.)?(?:awq|gptq|fp8|int[48]|w[48]a16|w8a8|nvfp4|unsloth|bnb|[48]bit|dynamic))+$"
)
FILE: Final = Path(__file__).parents[1] / "data" / "repositories.csv"


def of_shape(rows: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the model by repository, and by its bare name where all repositories of that name have one shape.

    A bare name of one word is anybody's: `gpt` is none.

    >>> of_shape([{"repository": "A/Tune-8B", "model": "x"}, {"repository": "B/tune-8b", "model": "y"}])
    {'a/tune-8b': 'x', 'b/tune-8b': 'y'}
    """
    whole = {row["repository"].lower(): row["model"] for row in rows}
    bare: dict[str, set[str]] = {}
    for name, model_id in whole.items():
        bare.setdefault(name.rpartition("/")[2], set()).add(model_id)
    telling = {name: ids for name, ids in bare.items() if len(ids) == 1 and len(words_of(name)) > 1}
    return whole | {name: min(model_ids) for name, model_ids in telling.items()}


def before_conversion(repo: str) -> str:
    """Return the name of what was converted, in lower case.

    >>> before_conversion("skywork-or1-32b-gptq-int4")
    'skywork-or1-32b'
    """
    return CONVERSIONS.sub("", repo)


def whole_names(rows: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the repository, as it is spelled, by its bare name where one publisher alone has one of that name.

    >>> whole_names([{"repository": "A/Tune-8B"}, {"repository": "A/Twice-8B"}, {"repository": "B/twice-8b"}])
    {'tune-8b': 'A/Tune-8B'}
    """
    by_name: dict[str, list[str]] = {}
    for row in rows:
        by_name.setdefault(row["repository"].rpartition("/")[2].lower(), []).append(row["repository"])
    return {name: repositories[0] for name, repositories in by_name.items() if len(repositories) == 1}


def _read() -> tuple[Mapping[str, str], Mapping[str, str]]:
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = tuple(csv.DictReader(file))
    return MappingProxyType(of_shape(rows)), MappingProxyType(whole_names(rows))


_TOLD: Final = _read()
REPOSITORIES: Final = _TOLD[0]
WHOLE: Final = _TOLD[1]
