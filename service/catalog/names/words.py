"""Splits names into words that compare: `Llama-3_3-70B` and `llama3.3 70b` are the same three."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

NUMBER_UNDERSCORE: Final = re.compile(r"(?<=[0-9])_(?=[0-9](?![0-9.]*[bmt]))")  # `3_1` of `llama3_1_8b`, not `2_2b`
SEPARATOR: Final = re.compile(r"[^a-z0-9.]+|(?<![0-9])\.|\.(?![0-9])")
IN_WORDS: Final = re.compile(r"(?<=[0-9])[-_ ]?(b|m|t)(?:illion|rillion|n)(?![a-z0-9])")  # `32 billion`
# `4-bit`, `FP-8`: a format whose figure stands apart.
FIGURE_APART: Final = re.compile(
    r"(?<=[0-9])[-_ ](?=bits?(?![a-z0-9]))|"
    r"(?:(?<=[^a-z0-9]fp)|(?<=[^a-z0-9]int)|(?<=[^a-z0-9]nvfp)|(?<=[^a-z0-9]mxfp))[-_ ](?=[48](?![a-z0-9.]))"
)
LETTERS_THEN_NUMBER: Final = re.compile(r"([a-z]{2,})([0-9].*)")
NUMBER_THEN_LETTERS: Final = re.compile(r"([0-9][0-9.]*)([a-z]{2,}.*)")
SIZE_THEN_ACTIVE: Final = re.compile(r"([0-9][0-9.]*b)(a[0-9][0-9.]*b)")
VERSION_OF_TWO_DIGITS: Final = re.compile(r"v0[1-9]")  # `v03` of hosts that take no point
POINT_AS_LETTER: Final = re.compile(r"([a-z]?)([0-9])p([0-9])")  # `v3p1` of hosts that take no point
DOTTED_EDITION: Final = re.compile(r"v[1-9]\.[0-9]")
WHOLE_EDITION: Final = re.compile(r"v[1-9]")
PLUS: Final = re.compile(r"(?<=[a-z0-9])\+")  # `command r+`
TUNED: Final = frozenset({"instruct", "it", "chat", "inst", "hf"})  # said of models and of what they were tuned to
SERVED: Final = frozenset({"versatile", "instant", "turbo", "latest", "reference"})
ALWAYS_SERVED: Final = frozenset(
    {
        "maas",
        "free",
        "tput",
        "highspeed",
        "cloud",
        "exacto",
        "batch",
        "extended",
        "fast",
        "basic",
        "tee",
        "flex",
        "lightning",
        "cheaper",
        "original",
        "fw",
        "cs",
    }
)
TWO_DIGITS: Final = re.compile(r"[1-9][0-9]")  # `25` of `qwen25`, whose point was left out
ONE_DIGIT: Final = re.compile(r"[0-9]")
BEHIND_A_POINT: Final = re.compile(r"[0-9]v?")  # `6v` of `glm-4-6v`, which sees
KEPT_WHOLE: Final = re.compile(
    r"(?:bf|fp|mxfp|nvfp|int|nf|uint|float|bfloat|exl)[0-9].*|[0-9]+bits?|sxm[0-9]|[0-9]+gi?b"
)

# `70b`, `8x7b`, `1.5m`, `e4b`: how large a model is; two that differ here are two models.
SIZE: Final = re.compile(r"e?[0-9]+(?:\.[0-9]+)?[bmt]|[0-9]+x[0-9]+(?:\.[0-9]+)?b")
ACTIVE: Final = re.compile(r"a[0-9]+(?:\.[0-9]+)?b|[0-9]+e")  # `a3b`, `16e`: said by one name, left out by another
EDITION: Final = re.compile(r"[0-9]{4}|v[0-9]+(?:\.[0-9]+)+")  # `2507`, `v0.3`: when a model was published


def plain(text: str) -> str:
    """Return a name in lower case, in the plainest form of every character."""
    return unicodedata.normalize("NFKC", text).lower().strip().strip("\"'`")


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a name.

    >>> words_of("Llama-3_3-Nemotron-Super-49B-v1_5")
    ('llama', '3.3', 'nemotron', 'super', '49b', 'v1.5')
    >>> words_of("qwen3vl:30ba3b fp8")
    ('qwen', '3', 'vl', '30b', 'a3b', 'fp8')
    """
    return tuple(word for piece in pieces_of(text) for word in _split(piece))


def pieces_of(text: str) -> tuple[str, ...]:
    """Return what stands between the separators of a name.

    >>> pieces_of("Llama-3_3-70B-4-bit")
    ('llama', '3.3', '70b', '4bit')
    """
    together = IN_WORDS.sub(r"\1", FIGURE_APART.sub("", PLUS.sub(" plus", plain(text))))
    return tuple(piece for piece in SEPARATOR.split(NUMBER_UNDERSCORE.sub(".", together)) if piece)


def _split(piece: str) -> tuple[str, ...]:
    """Return the words that a name writes as one."""
    if VERSION_OF_TWO_DIGITS.fullmatch(piece):
        return (f"v0.{piece[-1]}",)
    if KEPT_WHOLE.fullmatch(piece):
        return (piece,)
    lettered = POINT_AS_LETTER.fullmatch(piece)
    if lettered:
        return (f"{lettered[1]}{lettered[2]}.{lettered[3]}",)
    for joined in (LETTERS_THEN_NUMBER, SIZE_THEN_ACTIVE, NUMBER_THEN_LETTERS):
        parts = joined.fullmatch(piece)
        if parts:
            return (*_split(parts[1]), *_split(parts[2]))
    return (piece,)


def without_served(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return words without those by which providers tell how they serve a model, or how they serve a stated size.

    >>> without_served(("llama", "3.3", "70b", "versatile")), without_served(("qwen", "turbo"))
    (('llama', '3.3', '70b'), ('qwen', 'turbo'))
    >>> without_served(("glm", "5", "maas"))
    ('glm', '5')
    """
    while words[1:] and words[-1] in ALWAYS_SERVED:
        words = words[:-1]
    if not any(SIZE.fullmatch(word) for word in words):
        return words
    return tuple(word for word in words if word not in SERVED)


def without_edition_letter(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return words with the version behind a family's name as a figure alone, as hosts without points write it.

    >>> without_edition_letter(("llama", "v3", "70b")), without_edition_letter(("mistral", "7b", "v3"))
    (('llama', '3', '70b'), ('mistral', '7b', 'v3'))
    """
    if len(words) > 1 and WHOLE_EDITION.fullmatch(words[1]):
        return (words[0], words[1][1:], *words[2:])
    return words


def with_points(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return words with the points that names of hosts cannot write: `3`, `1` is `3.1`, as is `v3.1`.

    >>> with_points(("llama", "3", "1", "8b")), with_points(("llama", "v3.1", "8b"))
    (('llama', '3.1', '8b'), ('llama', '3.1', '8b'))
    """
    joined: list[str] = []
    for said in words:
        word = said[1:] if DOTTED_EDITION.fullmatch(said) else said
        if joined and BEHIND_A_POINT.fullmatch(word) and ONE_DIGIT.fullmatch(joined[-1]):
            joined[-1] += f".{word}"
        else:
            joined.append(word)
    return tuple(joined)


def with_pointed_edition(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return words with the point of an edition that hosts write apart.

    >>> with_pointed_edition(("deepseek", "v3", "1"))
    ('deepseek', 'v3.1')
    """
    joined: list[str] = []
    for word in words:
        if joined and ONE_DIGIT.fullmatch(word) and WHOLE_EDITION.fullmatch(joined[-1]):
            joined[-1] += f".{word}"
        else:
            joined.append(word)
    return tuple(joined)


def with_points_left_out(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return words with a point between two figures that stand behind a family's name.

    >>> with_points_left_out(("qwen", "25", "7b")), with_points_left_out(("llama", "31", "8b"))
    (('qwen', '2.5', '7b'), ('llama', '3.1', '8b'))
    """
    behind = (word.isalpha() and len(word) > 1 for word in ("", *words))
    pairs = zip(words, behind, strict=False)
    return tuple(f"{word[0]}.{word[1]}" if named and TWO_DIGITS.fullmatch(word) else word for word, named in pairs)


def joined_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return words as one, without those of every tuned model, and the sizes among them: 57b is no 7b behind a 5.

    >>> joined_words(("gptoss", "20b")), joined_words(("qwen", "2", "57b", "instruct"))
    (('gptoss20b', '20b'), ('qwen257b', '57b'))
    """
    said = [word for word in words if word not in TUNED]
    return ("".join(said), *sorted(word for word in said if SIZE.fullmatch(word)))
