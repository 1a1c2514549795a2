"""Reads how many GPUs a name counts: `8xH100`, `H100:8`, `H100 (x8)`, `four L40S`, `DGX H100`."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

NUMBERS: Final[Mapping[str, int]] = {
    "single": 1, "one": 1, "dual": 2, "two": 2, "quad": 4, "four": 4, "eight": 8, "octa": 8,
}  # fmt: skip
GPUS_OF_SYSTEM: Final = 8  # of a DGX of separate GPUs, by NVIDIA's data sheets
BEFORE: Final = re.compile(r"(?:gpu[-_])?([0-9]{1,6})[ _-]*[x*][ _-]*(.+)")
BEHIND: Final = re.compile(
    r"(.+?)[ _(-]+[x*] ?([0-9]{1,6})\)?|(.+?)[ _-]+([0-9]{1,6})[ -]?(?:x|gpus?)|(.+?): ?([0-9]{1,6})"
)
TIGHT: Final = re.compile(r"(.+?)[x*]([0-9]{1,3})")
SPACED: Final = re.compile(r"([0-9]{1,3}) (.+?)")
SYSTEM: Final = re.compile(r"(?:nvidia )?dgx[ _-](.+)")
BARE_MEMORY: Final = re.compile(r".*[a-z0-9][ _-][0-9]{2,3}")  # `H100-80`, where a GPU of the name has as many GB


def counts(key: str) -> Iterator[tuple[int, str]]:
    """Yield how many a name may count, and of what, as it stands and as one of them; the plainest way first.

    >>> next(counts("8 x a100 80gb")), list(counts("two h100s"))
    ((8, 'a100 80gb'), [(2, 'h100s'), (2, 'h100')])
    """
    for count, counted in _counts(key):
        yield count, counted
        if counted.endswith("s"):
            yield count, counted[:-1]


def _counts(key: str) -> Iterator[tuple[int, str]]:
    before = BEFORE.fullmatch(key)
    if before:
        yield int(before[1]), before[2]
    behind = BEHIND.fullmatch(key)
    if behind:
        count = behind[2] or behind[4] or behind[6]
        yield int(count), behind[1] or behind[3] or behind[5]
    first, _, rest = key.partition(" ")
    if first in NUMBERS:
        yield NUMBERS[first], rest
    system = SYSTEM.fullmatch(key)
    if system:
        yield GPUS_OF_SYSTEM, system[1]
    for pattern, count_at, rest_at in ((TIGHT, 2, 1), (SPACED, 1, 2)):
        counted = pattern.fullmatch(key)
        if counted:
            yield int(counted[count_at]), counted[rest_at]


def uncounted(key: str) -> str:
    """Return what a name counts, without how many."""
    return next((rest for _, rest in counts(key)), key)
