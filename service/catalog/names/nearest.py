"""Which models come closest to a name that means none: first of its family, then of its size, then by letters."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log2
from typing import Final

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from service.catalog.names.tunes import OTHER_PARTS
from service.catalog.names.unread import base_of
from service.catalog.names.words import ACTIVE, SIZE, TUNED, joined_words, with_points, words_of

MOST_NEIGHBOURS: Final = 3
MOST_SLIPS: Final = 2  # of them whose figures were mistyped
MOST_COMPARED: Final = 80  # characters of a name that no model has
FIGURES: Final = re.compile(r"[0-9]+")
LONG: Final = 10  # characters of a name from which two slips are as likely as one in a shorter
SAME_WORD: Final = 80.0  # from which a word is a misspelt one of a family [per cent]
FOR_BOTH: Final = 25.0  # given for a second family that both names say: Nemotron of Llama
MOST_FOR_SIZE: Final = 25.0  # taken for a size twice as large, or half
FOR_A_VERSION, FOR_A_TENTH, MOST_FOR_VERSION = 15.0, 4.0, 30.0  # taken for the next version: 4 of 3, 3.3 of 3.2
FOR_NO_VERSION: Final = 22.0  # taken from a name without a version, where one is asked for
FOR_ANOTHER: Final = 8.0  # taken for a family, an eye or an ear not asked for: DeepSeek's distillate of Llama
INSTRUCT: Final = "instruct"  # the one of those words that is mistyped
FOR_TUNED: Final = 2.0  # given where both are tuned, or neither
PARTS: Final = re.compile(OTHER_PARTS)
VERSION: Final = re.compile(r"([a-z]?)([0-9](?:\.[0-9]{1,2})?)")  # `3.1`, `v3`, `k2.5`: with the letter of its line
FIGURE: Final = re.compile(r"e?(?:([0-9]+)x)?([0-9]+(?:\.[0-9]+)?)([bmt])")
SHORT: Final = 2  # letters of a word that stands for itself: `lm` is no `glm`
LEAST_BARE: Final = 7  # below it a last figure is a version's
MOST_BARE: Final = 1_000
UNITS: Final[Mapping[str, float]] = {"m": 1e-3, "b": 1.0, "t": 1e3}
# What stands in front of a family's name without being one.
IN_FRONT = "meta nvidia google openai microsoft ibm alibaba amd mini small tiny llm code skywork"
NOT_FAMILIES: Final = frozenset(IN_FRONT.split())
# Words that tell no member of a family from another.
UNSAID: Final = NOT_FAMILIES | frozenset(("ai", "org", "model", "models", "latest", "instruct", "chat", "it", "base"))
# What is meant most where a family alone is named, the likeliest first.
WELL_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "deepseek": ("deepseek-v3", "deepseek-r1", "deepseek-v3.2"),
    "gemma": ("gemma-3-27b-it", "gemma-3-12b-it", "gemma-4-31b-it"),
    "glm": ("glm-4.6", "glm-4.5-air", "glm-5"),
    "gpt": ("gpt-oss-120b", "gpt-oss-20b"),
    "granite": ("granite-4.0-h-small", "granite-3.3-8b-instruct", "granite-4.0-h-tiny"),
    "kimi": ("kimi-k2-instruct", "kimi-k2-thinking", "kimi-k2.6"),
    "llama": ("llama-3.3-70b-instruct", "llama-3.1-8b-instruct", "llama-4-scout-17b-16e-instruct"),
    "minimax": ("minimax-m2.5", "minimax-m2", "minimax-m3"),
    "mistral": (
        "mistral-small-3.1-24b-instruct-2503",
        "mistral-7b-instruct-v0.3",
        "mistral-large-3-675b-instruct-2512",
    ),
    "nemotron": ("nemotron-3-super-120b-a12b", "nemotron-3-nano-30b-a3b", "llama-3.3-nemotron-super-49b-v1.5"),
    "phi": ("phi-4", "phi-4-mini-instruct", "phi-3.5-moe-instruct"),
    "qwen": ("qwen3-32b", "qwen3-8b", "qwen3-235b-a22b"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The names of a catalog, ready to compare with one that none of them is."""

    spoken: Mapping[frozenset[str], tuple[str, ...]]  # the words of names: the models
    sorted_words: tuple[str, ...]  # the same in one text each
    spelled_words: tuple[str, ...]  # and without what counts
    families: frozenset[str]  # words that names begin with
    joined: Mapping[str, tuple[str, ...]]  # names without a space and the words of every tuned model: the models

    def to(self, words: Sequence[str], *, is_known: bool = False) -> tuple[str, ...]:
        """Return the models whose names come closest: one that a slip of the finger away, then of the same family.

        What is known to be something else is no slip: only a family that it names in full has neighbours. What was
        tuned from another model has the neighbours of that one.
        """
        words = base_of(words) or words
        if is_known and self.families.isdisjoint(words):
            return ()
        meant = self._meant(words)
        family = self._family(words)
        if family is None:
            return meant or (() if all(map(SIZE.fullmatch, words)) else self._with_all(words))
        known = self.well_known(words) or (self._of_another_generation(words, family) if is_known else ())
        if known:
            return tuple(dict.fromkeys((*meant, *known)))[:MOST_NEIGHBOURS]
        near, (swapped, missed) = self._closest(words, family), self._slipped(words)
        return tuple(dict.fromkeys((*meant, *swapped, *near[:1], *missed, *near)))[:MOST_NEIGHBOURS]

    def _slipped(self, words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the models whose names have two figures in the other order, and those with a figure more or less."""
        asked = joined_words(words)[0][:MOST_COMPARED]
        figures = sorted(filter(str.isdigit, asked))
        alike = [name for name in self.joined if FIGURES.sub("", name) == FIGURES.sub("", asked)]
        near = [name for name, _, _ in process.extract(asked, alike, scorer=OSA.distance, score_cutoff=1, limit=None)]
        swapped = (name for name in near if sorted(filter(str.isdigit, name)) == figures)
        missed = (name for name in near if len(name) != len(asked))
        return self._tuned(swapped), self._tuned(missed)

    def _tuned(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the model of each name that is tuned, if one is."""
        models = (min(self.joined[name], key=lambda each: TUNED.isdisjoint(words_of(each))) for name in names)
        return tuple(dict.fromkeys(models))[:MOST_SLIPS]

    def _meant(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the model whose name has the same figures and differs by a slip or two, tuned if that is said."""
        asked = joined_words(words)[0][:MOST_COMPARED]
        figures = FIGURES.findall(asked)
        if not figures:
            return ()
        family = next((word for word in words if word in self.families), "")  # in which there is no slip
        alike = [name for name in self.joined if family in name and FIGURES.findall(name) == figures]
        near = process.extractOne(asked, alike, scorer=OSA.distance, score_cutoff=1 + (len(asked) >= LONG))
        if near is None:
            return ()
        is_tuned = not TUNED.isdisjoint(words)
        return tuple(sorted(self.joined[near[0]], key=lambda each: TUNED.isdisjoint(words_of(each)) is is_tuned)[:1])

    def of_edition(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the models of an edition where a name does not say whose: `k2` is Kimi's to most, and LLM360's."""
        pointed = with_points(tuple(words))
        editions = [each for word in pointed if (each := VERSION.fullmatch(word)) and each[1]]
        return self._with_all(words) if pointed and len(editions) == len(pointed) else ()

    def _with_all(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the models whose names have all words: with one more the well-known first, then by how many more."""
        asked, known = frozenset(with_points(tuple(words))), {each for some in WELL_KNOWN.values() for each in some}
        others: dict[str, tuple[bool, bool, int]] = {}
        for spoken, model_ids in self.spoken.items():
            if asked and asked <= spoken:
                for each in model_ids:
                    more = len(spoken - asked - UNSAID)
                    rank = (more > 1, each not in known, more)
                    others[each] = min(rank, others.get(each, rank))
        return tuple(sorted(others, key=lambda each: others[each])[:MOST_NEIGHBOURS])

    def well_known(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the best-known models of a family, where a name says no more than the family."""
        family = self._family(words)
        if family is None or len(set(words) - UNSAID) > 1:
            return ()
        held = {model_id for model_ids in self.spoken.values() for model_id in model_ids}
        return tuple(model_id for model_id in WELL_KNOWN.get(family, ()) if model_id in held)

    def _of_another_generation(self, words: Sequence[str], family: str) -> tuple[str, ...]:
        """Return the best-known models of a family, where words say no size, and no version of its generations."""
        version = _version(with_points(tuple(words)))
        ours = {_version((word,)) for spoken in self.spoken if family in spoken for word in spoken}
        if size_in_billions(words) or (version and any(each and int(each[1]) == int(version[1]) for each in ours)):
            return ()
        return self.well_known((family,))

    def _closest(self, words: Sequence[str], family: str) -> tuple[str, ...]:
        """Return the models of a family whose size and name come closest."""
        words = with_points(tuple(words))
        text = " ".join(sorted(words))[:MOST_COMPARED]
        spelled = spelled_words(words)[:MOST_COMPARED]
        letters = process.cdist([spelled], self.spelled_words, scorer=fuzz.ratio)[0]
        shared = process.cdist([text], self.sorted_words, scorer=fuzz.token_set_ratio)[0]
        size = size_in_billions(words) or _bare_size(words)
        is_untuned = not any(word in TUNED or OSA.distance(word, INSTRUCT) <= MOST_SLIPS for word in words)
        others = {word for word in words if word in self.families and word != family}
        scores: dict[str, float] = {}
        for (spoken, model_ids), by_letters, by_words in zip(self.spoken.items(), letters, shared, strict=True):
            if family not in spoken:
                continue
            score = float(by_letters + by_words) / 2 - _taken_for_size(size, size_in_billions(spoken))
            score += FOR_BOTH * len(others & spoken) - _taken_for_version(words, spoken)
            score -= FOR_ANOTHER * len(self.families.intersection(spoken) - others - {family})
            score -= FOR_ANOTHER * any(map(PARTS.fullmatch, spoken.difference(words)))
            score += FOR_TUNED * (TUNED.isdisjoint(spoken) is is_untuned)
            for model_id in model_ids:
                scores[model_id] = max(score, scores.get(model_id, -inf))
        return tuple(sorted(scores, key=lambda model_id: -scores[model_id])[:MOST_NEIGHBOURS])

    def _family(self, words: Sequence[str]) -> str | None:
        """Return the first word that is a family's, or is nearly written so, from its first letter on."""
        known = next((word for word in words if word in self.families), None)
        if known is not None:
            return known
        for word in words:
            if len(word) > 2 and not SIZE.fullmatch(word):
                alike = sorted(family for family in self.families if family[0] == word[0])
                near = process.extractOne(word, alike, scorer=fuzz.ratio, score_cutoff=SAME_WORD)
                if near is not None:
                    return str(near[0])
        return next((family for word in words for family in WELL_KNOWN if _is_slip(word, family)), None)


def spelled_words(words: Iterable[str]) -> str:
    """Return the words of a name that are compared by their letters: what counts is compared as figures.

    >>> spelled_words(("ovis", "2", "34b")), spelled_words(("qwen", "3", "vl", "8b", "instruct"))
    ('ovis', 'qwen vl')
    """
    spelled = (word for word in words if not (word in TUNED or SIZE.fullmatch(word) or VERSION.fullmatch(word)))
    return " ".join(sorted(spelled))


def _is_slip(word: str, family: str) -> bool:
    """Return whether a word is a family's with one letter hit wrongly, two that changed places, or the first lost."""
    return (len(word) > SHORT and word == family[1:]) or (len(word) == len(family) and OSA.distance(word, family) == 1)


def size_in_billions(words: Sequence[str] | frozenset[str]) -> float | None:
    """Return how many parameters a name says, the largest that it says; None where it says none.

    >>> size_in_billions(("mixtral", "8x7b")), size_in_billions(("gemma", "3", "270m")), size_in_billions(("phi", "4"))
    (56.0, 0.27, None)
    """
    sizes = [FIGURE.fullmatch(word) for word in words if SIZE.fullmatch(word) and not ACTIVE.fullmatch(word)]
    return max((int(each[1] or 1) * float(each[2]) * UNITS[each[3]] for each in sizes if each), default=None)


def _bare_size(words: Sequence[str]) -> float | None:
    """Return a last figure without its unit as billions, where it is none of a version: 20 of gpt-oss-20."""
    last = words[-1] if words else ""
    return float(last) if last.isdigit() and LEAST_BARE <= int(last) <= MOST_BARE else None


def _taken_for_size(asked: float | None, theirs: float | None) -> float:
    """Return what is taken for another size: by how often one doubles to become the other."""
    if not asked or not theirs:
        return 0.0 if asked == theirs else MOST_FOR_SIZE / 2
    return min(MOST_FOR_SIZE * abs(log2(theirs / asked)), 3 * MOST_FOR_SIZE)


def _taken_for_version(asked: Sequence[str], theirs: frozenset[str]) -> float:
    """Return what is taken for another version: by how far the nearest that a name says is from the one asked."""
    version = _version(asked)
    if version is None:
        return 0.0
    line, number = version
    said = (each for word in theirs if (each := _version((word,))) is not None)
    return min((_apart(number, each) for other, each in said if other == line), default=FOR_NO_VERSION)


def _version(words: Sequence[str]) -> tuple[str, float] | None:
    """Return the first version of words, with the letter of its line: `r1` is no earlier `v2`, and `v3` is 3."""
    said = next((each for word in words if (each := VERSION.fullmatch(word))), None)
    return (said[1].replace("v", ""), float(said[2])) if said else None


def _apart(asked: float, theirs: float) -> float:
    """Return what is taken for a version: by tenths within a generation, by generations beyond it."""
    each = FOR_A_TENTH * 10 if int(asked) == int(theirs) else FOR_A_VERSION
    return min(each * abs(asked - theirs), MOST_FOR_VERSION)


def families_of(names: Sequence[str]) -> frozenset[str]:
    """Return the words that names begin with, publishers aside.

    >>> sorted(families_of(["qwen/qwen3-8b", "nvidia/nemotron-h-8b-base-8k", "phi-4"]))
    ['nemotron', 'phi', 'qwen']
    """
    first = (
        next((word for word in words_of(name.rpartition("/")[2]) if word not in NOT_FAMILIES), "") for name in names
    )
    return frozenset(word for word in first if len(word) > 1 and word.isalpha())
