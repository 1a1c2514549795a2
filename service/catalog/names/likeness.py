"""How close a name that no GPU has comes to those of GPUs."""

import re
from collections.abc import Mapping
from typing import Final

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA, Prefix

MOST_COMPARED: Final = 60  # characters of a name that no GPU has
# Whose card it is, where the name says so: a neighbour is of the same maker.
MAKER_OF: Final[Mapping[str, str]] = {
    **dict.fromkeys(("nvidia", "geforce", "tesla", "quadro", "jetson", "rtx", "gtx"), "nvidia"),
    **dict.fromkeys(("amd", "instinct", "radeon", "rx", "ryzen"), "amd"),
    **dict.fromkeys(("intel", "arc", "gaudi"), "intel"),
}

KEYS: Final = "1234567890 qwertyuiop asdfghjkl zxcvbnm"
AS_FIGURES: Final = str.maketrans("oil", "011")
TWICE: Final = re.compile(r"([a-z])\1")
APART: Final = re.compile(r"[^a-z0-9]+")
MAKERS: Final = frozenset({"nvidia", "geforce", "tesla", "amd", "instinct"})
MOST_BY_HAND: Final = 11  # letters and figures of a name that was typed, and not copied
BY_HAND: Final = 0.7  # from which a name is another one with a slip of the finger, by letters that stand as they should


def misspelt(key: str, names: Mapping[str, str]) -> str | None:
    """Return what a name means that differs by a letter or two from this one; None where none is so close.

    A letter that was hit twice is one, and one that looks like a figure stands for it. Of several as close the one as
    long, then the one that begins alike: 200 for 201, and not 20; then the one whose letter is beside the one that
    was hit.

    >>> misspelt("bb200", {"gb200": "gb200-nvl72", "b200": "b200-sxm"}), misspelt("j100", {"a100": "a", "h100": "h"})
    ('b200-sxm', 'h')
    >>> misspelt("h201", {"h20": "h20-sxm", "h200": "h200-sxm"}), misspelt("h100-pice", {"h100 pcie": "h100-pcie"})
    ('h200-sxm', 'h100-pcie')
    >>> misspelt("h1oo", {"h100": "h100-sxm", "h10": "h10"}), misspelt("ml300x", {"mi300x": "mi300x", "l20": "l20"})
    ('h100-sxm', 'mi300x')
    """
    asked = _letters(key)
    if len(asked) > MOST_BY_HAND:
        return None

    def closeness(name: str) -> tuple[float, bool, int, bool]:
        plain = _letters(name)
        if plain == TWICE.sub(r"\1", asked) or plain.translate(AS_FIGURES) == asked.translate(AS_FIGURES):
            return 1.0, True, len(plain), True
        alike = OSA.normalized_similarity(asked, plain)
        return alike, len(plain) == len(asked), Prefix.similarity(asked, plain), _is_beside(asked, plain)

    best = max(names, key=closeness, default=None)
    return None if best is None or closeness(best)[0] < BY_HAND else names[best]


def _is_beside(asked: str, plain: str) -> bool:
    """Return whether every letter that differs is beside the one that was hit, in its row of keys."""
    return len(asked) == len(plain) and all(
        hit == meant or f"{hit}{meant}" in KEYS or f"{meant}{hit}" in KEYS
        for hit, meant in zip(asked, plain, strict=True)
    )


def _letters(name: str) -> str:
    """Return letters and figures of a name without its maker."""
    words = (
        word for word in APART.split(name.lower()) if word not in ("nvidia", "geforce", "tesla", "amd", "instinct")
    )
    return "".join(words)[:MOST_COMPARED]


def likeness(asked: frozenset[str], words: frozenset[str]) -> float:
    """Return how close two names are: half by letters, half by the words they share, in per cent."""
    shared = asked & words or {each for each in asked if any(each.startswith(word) for word in words if len(word) > 3)}
    scorer = fuzz.WRatio if shared else fuzz.ratio  # what letters share beyond words is chance
    letters = scorer(" ".join(sorted(asked))[:MOST_COMPARED], " ".join(sorted(words)))
    return letters / 2 + 50 * len(asked & words) / len(asked | words)
