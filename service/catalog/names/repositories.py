"""Repositories of a known shape: fine-tunes and conversions, each with the catalog's model of that shape.

A repository stands in `data/repositories.csv` where the hub states of it and of the model's own the same class, layers,
heads, width of heads and of the model, experts and context, a vocabulary of as many tokens but for 64 that fine-tunes
add, and, unless its name says a format of few bits, the same number of parameters to a thousandth (a tied head that is
stored twice aside); or, where it states no more, the same class and total to the parameter; else only where its base is
told, as below. What its name says of a format holds as for any other name; one that says few bits and no format that is
sized is refused by it. What was tuned from weights of few bits may be stored in as many, or in 16, and the total tells
neither: such a repository says its format by its name, or in the third column where its page states the tensors, or it
is its base's own publisher's.

Source:
    llmfit 1.1.17 (MIT licence, October 2026), which lists configs and totals of the hub's repositories; of fine-tunes
        that OpenRouter and Together sell or Xinference lists, the base that the card of each on huggingface.co names;
        of INTELLECT-2, AceInstruct, UI-TARS, SWE-Dev, Skywork-SWE, OpenHands LM, AM-Thinking and TinyR1 the base that
        their card or paper (arXiv:2503.04872) names, and class and gigabytes on the hub's pages (November 2026); of
        tags of Ollama's library the base that the library names; of FireFunction v2, Bespoke-MiniCheck, Zephyr 141B,
        OpenCodeInterpreter and ChatQA 1.5 the base that their card names; of Cogito, R1 1776, WizardCoder, Notus and
        Meditron the base that their authors announced, without a config or a total beside it; of Leanstral the family,
        size and experts of its card, the layers that llmfit lists, and FP8 as its conversions say they read; of Ornith
        1.0 the layers and widths that llmfit lists, and the totals of its conversions; of MiroThinker 1.5 and 1.7
        the size and context of their card, beside siblings that llmfit lists; of
        Granite Vision 3.1 and 3.3 the parts that github.com/ibm-granite/granite-vision-models states of each.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast

from service.catalog.names.words import SIZE, TUNED, words_of
from service.engine.inputs import WeightFormat

CONVERSIONS: Final = re.compile(
    r"(?:-(?:quantized\.)?(?:awq|gptq|fp8|int[48]|w[48]a16|w8a8|nvfp4|mxfp4|autoround|unsloth|bnb|[48]bit|dynamic|block))+$"
)
# What stands behind a size and tells one edition from another; and words that many give what they tune.
EDITION: Final = re.compile(r"v?[0-9]+(?:\.[0-9]+)*|preview|alpha|beta|base|final|instruct|it|chat|hf|inst")
ANYBODYS_WORDS = (
    "coder model agent reason reasoner reasoning thinking think tuned instruct assistant small large tiny medium mini "
    "micro nano ultra super power story writer merged custom chatbot code medical finance legal vision audio"
)
ANYBODYS: Final = frozenset(ANYBODYS_WORDS.split())
LEAST_LETTERS: Final = 5  # of a word that is a name of its own
LEAST_WORDS: Final = 4  # of a name without a size from which a conversion's is nobody else's
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


def model_of(key: str, publisher: str, repo: str) -> str:
    """Return the model whose shape a repository has, empty where none is known.

    Under another publisher, or converted, a name with a size has the same shape: all 357 of the hub's lists have. A
    publisher's own conversion has the shape of what it converted, and one by others where its name is long.

    Args:
        key: the repository as the list spells it, in lower case.
        publisher: whose it is, empty where none is named.
        repo: its name, in lower case.
    """
    bare = before_conversion(repo)
    own = REPOSITORIES.get(key) or REPOSITORIES.get(f"{publisher}/{bare}")
    is_sized = any(SIZE.fullmatch(word) for word in words_of(repo))
    is_telling = is_sized or (bare != repo and len(words_of(bare)) >= LEAST_WORDS)
    return own or ((REPOSITORIES.get(repo) or REPOSITORIES.get(bare, "")) if is_telling else "")


def is_unlisted(hf_id: str, key: str, publisher: str) -> bool:
    """Return whether a repository that is not listed is of whoever published the model that others tuned.

    Its next model is none that others tuned of an earlier one: `Qwen/Qwen3.8-9B` is no `empero-ai/Qwen3.8-9B`.

    >>> is_unlisted("Qwen/Qwen3.5-9B", "qwen/qwen3.8-9b", "qwen")
    True
    """
    return publisher == hf_id.lower().partition("/")[0] and before_conversion(key) not in REPOSITORIES


def whole_names(rows: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the repository, as it is spelled, by its bare name where one publisher alone has one of that name.

    >>> whole_names([{"repository": "A/Tune-8B"}, {"repository": "A/Twice-8B"}, {"repository": "B/twice-8b"}])
    {'tune-8b': 'A/Tune-8B'}
    """
    by_name: dict[str, list[str]] = {}
    for row in rows:
        by_name.setdefault(row["repository"].rpartition("/")[2].lower(), []).append(row["repository"])
    return {name: repositories[0] for name, repositories in by_name.items() if len(repositories) == 1}


def by_words(repositories: Mapping[str, str]) -> dict[frozenset[str], str]:
    """Return the model by the words before the size of a repository's name, where all that say them have one shape.

    What stands behind the size is an edition. A name without a word of its own is anybody's.

    >>> told = by_words({"a/deepcoder-14b-preview": "x", "b/deepcoder-14b-v1": "x", "c/coder-8b": "z"})
    >>> told == {frozenset({"deepcoder", "14b"}): "x"}
    True
    """
    told: dict[frozenset[str], set[str]] = {}
    for name, model_id in repositories.items():
        words = words_of(name.rpartition("/")[2])
        size = next((place for place, word in enumerate(words) if SIZE.fullmatch(word)), None)
        if size is not None and all(EDITION.fullmatch(word) for word in words[size + 1 :]):
            told.setdefault(_own(words[: size + 1]), set()).add(model_id)
    return {words: min(model_ids) for words, model_ids in told.items() if len(model_ids) == 1 and _is_telling(words)}


def _own(words: Iterable[str]) -> frozenset[str]:
    return frozenset(words) - TUNED


def _is_telling(words: frozenset[str]) -> bool:
    return any(len(word) >= LEAST_LETTERS and word.isalpha() and word not in ANYBODYS for word in words)


@lru_cache(maxsize=1)
def _by_words() -> Mapping[frozenset[str], str]:
    return by_words(REPOSITORIES)


def listed(words: Iterable[str]) -> tuple[str, ...]:
    """Return the model whose shape a repository of these words is known to have: `openthinker:32b`."""
    model_id = _by_words().get(_own(words))
    return (model_id,) if model_id is not None else ()


def _read() -> tuple[Mapping[str, str], ...]:
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = tuple(csv.DictReader(file))
    stored = {row["repository"].lower(): row["weight_format"] for row in rows if row["weight_format"]}
    return tuple(MappingProxyType(each) for each in (of_shape(rows), whole_names(rows), stored))


_TOLD: Final = _read()
REPOSITORIES: Final = _TOLD[0]
WHOLE: Final = _TOLD[1]
STORED: Final = cast("Mapping[str, WeightFormat]", _TOLD[2])
