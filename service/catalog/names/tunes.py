"""Reads names of fine-tunes that tell their base: `Hermes-3-Llama-3.1-70B` has the shape of Llama 3.1 70B.

A base is told by family, version and size in the order of its own name. What is left may be anything but a word by
which publishers name another shape: another size or family, an eye or ear, experts merged, layers cut, a vocabulary
of another language, a draft, a format that no rule here stores.

Source of the words, and of how often they hold: configs and totals of 16,849 repositories of the hub, listed in llmfit
1.1.17 (MIT licence, October 2026).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rapidfuzz.distance import OSA

from service.catalog.names.unsized import OTHER_FORMATS
from service.catalog.names.words import ACTIVE, SIZE

# Said of most models, and of no other shape.
UNSAID: Final = frozenset(("instruct", "it", "chat", "inst", "hf", "base", "pt", "meta"))
VERSION: Final = re.compile(r"v?[0-9]{1,2}(?:\.[0-9]+)?")
# Of those who publish bases, in front of their own.
MAKERS: Final = frozenset(("nvidia", "google", "openai", "microsoft", "ibm", "alibaba", "amd", "mistralai", "meta"))
# A fine-tune by these words alone, where a base's name says no size.
TUNING_WORDS = (
    "abliterated abliteration uncensored heretic derestricted decensored unfiltered sft dpo orpo simpo grpo kto rlhf "
    "finetune finetuned tuned ft norefusal obliterated amoral roleplay rp rl"
)
TUNING: Final = frozenset(TUNING_WORDS.split())
OTHER_PARTS: Final = (
    r"v|vl|vlm|vla|visions?|visual|omni|audio|speech|voice|tts|asr|ocr|video|images?|clip|siglip|sam|blip|janus|llava|"
    r"multimodal|mm|mol|mplug|dragonfly|diva|"
    r"embed.*|.*embeddings?|e5|gte|bge|retriev.*|colbert|.*rerank.*|.*reward.*|o?rm|prm|"
    r"classif.*|cross|encoder|decoder|guard|shield|scorer|judge|[gqu]rm"
)
OTHER_LAYERS: Final = (
    r"2of4|prun.*|minitron|reap|puzzle|.*moe|[0-9]+x|x[0-9]+|slerp|frank.*|merge[dr]?|stack.*|upscal.*|expan.*|ext|depth|"
    r"width|layers?|half|hybrid|.*mamba.*|.*diffusion.*|sparse|sculpt|lite|tiny|mini|small|large|medium|nano|micro|air|"
    r"flash|pro|max|plus|turbo|loop.*|recurrent|linear|sala|swiftkv|[0-9]+l|ream|svd|va|[sml]|a[0-9]+|"
    r"experts|dropped|slim(?:med)?|sliced?|trim(?:med)?|shrunk"
)
NO_MODEL: Final = (
    r"draft.*|eagle.*|medusa|dflash|dflare|dspark|domino|vispec|.*speculat.*|assistant|lora|qlora|adapters?|peft|delta|"
    r"diff|tokenizer|sae|saes|evals?|datasets?|random|dummy|test|tests|debug|sharded|flexrank|intermediate|checkpoints?|"
    r"seed[0-9]*|step[0-9]*|mtpv[0-9]?|p|"
    r"heads?|hydra|clover|hass|lookahead|specforge|[a-z]*probes?|(?:cross|trans)coders?|regress.*|steering|vectors?"
)
LONGER: Final = r"[0-9]+[km]|long.*|.*long|.*context|ctx|extended|yarn|rope|gradient|[0-9]{4,}"
LANGUAGES: Final = (
    r"arabic|ara|openbuddy|koen|bangla|bengali|cantonese|catalan|chinese|zh|cymraeg|czech|deu|dutch|eng|fas|farsi|finnish|french|fr|"
    r"german|de|greek|hebrew|hindi|hungarian|indic|indonesian|italian|ita|ja|jp|japanese|kazakh|kk|kor|ko|korean|mya|"
    r"persian|polish|portuguese|ru|russian|ruadapt|spanish|swe|swedish|tamil|telugu|thai|tibetan|tur|tr|turkish|uk|"
    r"ukrainian|urdu|uz|uzbek|vi|vietnamese|taide|taiwan|elyza|swallow|bllossom|titulm|mongolian|nepali|sinhala|swahili"
)
OF_PUBLISHERS: Final = r"coder?|maths?|preview|next|zero|exp"
OTHER_SHAPE: Final = re.compile(
    f"{OTHER_PARTS}|{OTHER_LAYERS}|{NO_MODEL}|{OTHER_FORMATS}|{LONGER}|{LANGUAGES}|{OF_PUBLISHERS}"
)


# What fine-tuners call their own, whatever it is made of: beside a base told in full it says no other shape.
SERIES: Final = frozenset({"hermes", "dolphin", "openhermes", "zephyr", "starling", "skywork", "wizardlm", "openchat"})
# `L3.3-Euryale-70B`: how those who merge and tune Llama 3 write it, beside one of its sizes.
SHORTENED: Final = re.compile(r"l(3(?:\.[123])?)")
SHORTENED_SIZES: Final = frozenset({"1b", "3b", "8b", "70b"})
SHORT: Final = 2
LEAST_TYPED: Final = 4  # letters of a word from which one that differs by a letter is the same, misspelt


@dataclass(frozen=True, slots=True)
class Tune:
    """What a name says of its base, and what else it says."""

    base: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bases:
    """Names of models that fine-tunes may be of, by their first word."""

    by_first: Mapping[str, tuple[tuple[str, ...], ...]]
    families: frozenset[str]

    def of(self, words: Sequence[str]) -> Tune | None:
        """Return the one base that a name tells in full, if nothing it says besides is of another shape."""
        tune = self._told_in_full(words)
        return tune if tune is not None and self._is_same_shape(tune) else None

    def apart(self, words: Sequence[str]) -> tuple[tuple[str, ...], str] | None:
        """Return a base that a name tells in full, and the word beside it that is said of another shape."""
        tune = self._told_in_full(words)
        if tune is None or not _is_sized(tune.base):
            return None
        other = next(
            (word for word in tune.left if word not in self.families and self._is_another(word, tune.base)), None
        )
        return (tune.base, other) if other is not None else None

    def says_another(self, words: Sequence[str]) -> bool:
        """Return whether a word is a family's, or said of another shape."""
        return any(word in self.families or OTHER_SHAPE.fullmatch(word) for word in words)

    def tells(self, words: Sequence[str]) -> bool:
        """Return whether a name tells one base in full."""
        return self._told_in_full(words) is not None

    def _told_in_full(self, words: Sequence[str]) -> Tune | None:
        """Return the one base that a name tells in full, the longest that it tells."""
        asked = tuple(word for word in spelled_out(words) if word not in UNSAID)
        told = [
            tune
            for place, word in enumerate(asked)
            for base in self.by_first.get(word, ())
            if (tune := _told(base, asked, place)) is not None
        ]
        longest = max((len(tune.base) for tune in told), default=0)
        most = {tune.base: tune for tune in told if len(tune.base) == longest}
        return next(iter(most.values())) if len(most) == 1 else None

    def _is_same_shape(self, tune: Tune) -> bool:
        if all(VERSION.fullmatch(word) for word in tune.left if word not in MAKERS):
            return False  # another edition of the base itself
        if not _is_sized(tune.base):
            return all(word in TUNING or VERSION.fullmatch(word) for word in tune.left) and bool(
                TUNING.intersection(tune.left)
            )
        telling = self._telling(tune.base)
        return self._has_version(tune.base) and not any(
            self._is_another(word, tune.base) or _is_nearly(word, telling) for word in tune.left
        )

    def _telling(self, base: tuple[str, ...]) -> frozenset[str]:
        """Return the words by which the members of a family differ; a misspelt one makes no fine-tune."""
        words = {word for other in self.by_first[base[0]] for word in other if word.isalpha()}
        return frozenset((words | UNSAID) - set(base))

    def _is_another(self, word: str, base: tuple[str, ...]) -> bool:
        is_size = SIZE.fullmatch(word) or ACTIVE.fullmatch(word)
        is_other_family = word in self.families and word not in SERIES and word not in base
        return bool(is_size or OTHER_SHAPE.fullmatch(word)) or is_other_family

    def _has_version(self, base: tuple[str, ...]) -> bool:
        """Return whether a base says its version, or is of a family without versions."""
        core = _core(base)
        return not any(
            len(other) > len(core) and other[: len(core)] == core and VERSION.fullmatch(other[len(core)])
            for other in self.by_first[base[0]]
        )


def spelled_out(words: Sequence[str]) -> tuple[str, ...]:
    """Return words with a shortened Llama 3 in full, where one of its sizes stands beside it.

    >>> spelled_out(("l3.3", "euryale", "70b")), spelled_out(("minilm", "l3", "v2"))
    (('llama', '3.3', 'euryale', '70b'), ('minilm', 'l3', 'v2'))
    """
    if not SHORTENED_SIZES.intersection(words):
        return tuple(words)
    short = (SHORTENED.fullmatch(word) for word in words)
    parts = (("llama", said[1]) if said else (word,) for said, word in zip(short, words, strict=True))
    return tuple(part for each in parts for part in each)


def _is_nearly(word: str, telling: Iterable[str]) -> bool:
    """Return whether a word is another one but for one letter: of two letters one as long, as `vy` for `vl`."""
    if len(word) < LEAST_TYPED and (word in TUNING or not word.isalpha()):
        return False
    return any(
        OSA.distance(word, each, score_cutoff=1) == 1
        for each in telling
        if len(word) >= LEAST_TYPED or (len(word) == len(each) == SHORT and each not in UNSAID)
    )


def _told(base: tuple[str, ...], asked: tuple[str, ...], place: int) -> Tune | None:
    """Return what a name tells of a base from a place on: the whole of it, or its size somewhere behind."""
    if asked[place : place + len(base)] == base:
        return Tune(base=base, left=asked[:place] + asked[place + len(base) :])
    core = _core(base)
    if len(core) < 2 or len(core) == len(base) or asked[place : place + len(core)] != core:
        return None
    left = list(asked[:place] + asked[place + len(core) :])
    for word in base[len(core) :]:
        if word not in left:
            return None
        left.remove(word)
    return Tune(base=base, left=tuple(left))


def _core(base: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a name before its size."""
    place = next((place for place, word in enumerate(base) if SIZE.fullmatch(word)), len(base))
    return base[:place]


def _is_sized(words: Sequence[str]) -> bool:
    return any(SIZE.fullmatch(word) and not ACTIVE.fullmatch(word) for word in words)


def bases_of(names: Iterable[Sequence[str]], families: frozenset[str]) -> Bases:
    """Return the names that fine-tunes may tell.

    >>> bases = bases_of([("llama", "3.1", "70b"), ("llama", "3", "70b")], frozenset({"llama"}))
    >>> bases.of(("hermes", "3", "llama", "3.1", "70b"))
    Tune(base=('llama', '3.1', '70b'), left=('hermes', '3'))
    >>> bases.of(("llama", "3.1", "70b", "vision")), bases.of(("llama", "70b", "hermes"))
    (None, None)
    """
    by_first: dict[str, dict[tuple[str, ...], None]] = {}
    for words in names:
        base = tuple(word for word in words if word not in UNSAID)
        if len(base) > 1:
            by_first.setdefault(base[0], {})[base] = None
    return Bases(by_first={first: tuple(bases) for first, bases in by_first.items()}, families=families)
