"""How close a name that no GPU has comes to those of GPUs."""

from collections.abc import Mapping
from typing import Final

from rapidfuzz import fuzz

MOST_COMPARED: Final = 60  # characters of a name that no GPU has
# Whose card it is, where the name says so: a neighbour is of the same maker.
MAKER_OF: Final[Mapping[str, str]] = {
    **dict.fromkeys(("nvidia", "geforce", "tesla", "quadro", "jetson", "rtx", "gtx"), "nvidia"),
    **dict.fromkeys(("amd", "instinct", "radeon", "rx", "ryzen"), "amd"),
    **dict.fromkeys(("intel", "arc", "gaudi"), "intel"),
}


def likeness(asked: frozenset[str], words: frozenset[str]) -> float:
    """Return how close two names are: half by letters, half by the words they share, in per cent."""
    shared = asked & words or {each for each in asked if any(each.startswith(word) for word in words if len(word) > 3)}
    scorer = fuzz.WRatio if shared else fuzz.ratio  # what letters share beyond words is chance
    letters = scorer(" ".join(sorted(asked))[:MOST_COMPARED], " ".join(sorted(words)))
    return letters / 2 + 50 * len(asked & words) / len(asked | words)
