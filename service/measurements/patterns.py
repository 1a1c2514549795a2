"""Lines of logs as tables: an expression, and what each of its groups says."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from service.catalog.measurement_rows import Setting
from service.engine.arithmetic import GIB
from service.engine.patience import go_on
from service.measurements.observed import Doubt, Figure, Observed

UNITS: Final[Mapping[str, int]] = {
    "BYTES": 1,
    "MIB": 1 << 20,
    "MB": 1 << 20,
    "GIB": GIB,
    "GB": GIB,
}  # "GB" of engines is GiB
# Begins where a number begins and is never taken back: a line of digits costs one look at each of them. What is less
# than nothing, as graphs are that gave memory back, is no size.
NUMBER: Final = r"(?<![\d,.])(?<![\s(]-)(\d[\d,]{0,24}+(?:\.\d{1,12}+)?)"
MEMORY: Final = NUMBER + r" ?(GiB|GB|MiB|MB)"
LEFT: Final = r"(?<![\d,])(-?\d[\d,]{0,24}+(?:\.\d{1,12}+)?) ?(GiB|GB|MiB|MB)"  # what may be less than nothing
# What terminals read as a colour, and how a log of JSON writes it.
COLOUR: Final = re.compile(r"(?:\x1b|\\u001b)\[[\d;]{0,24}[A-Za-z]")
MOST_APART: Final = 0.1  # figures of two ranks, of the larger [fraction]
MOST_CHARACTERS: Final = 8_000  # of a line that is read; the longest start-up lines have 6,000


@dataclass(frozen=True, slots=True)
class Pattern:
    """One kind of line: figures in bytes, figures as they are, and settings, by the order of its groups."""

    expression: re.Pattern[str]
    memory: str = ""  # a figure of bytes: two groups, number and unit
    figures: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    is_smallest: bool = False  # of several lines the smallest: the fullest rank decides for all
    is_largest: bool = False  # of several lines the largest figure says it, not the last: stages and drafts differ
    is_last: bool = False  # of several lines the last setting says it, and they do not contradict each other


def line_of(expression: str, **says: str | bool | tuple[str, ...]) -> Pattern:
    """Return the pattern of an expression."""
    return Pattern(re.compile(expression), **says)  # type: ignore[arg-type]


def number(text: str) -> float:
    """Return a number as logs print it."""
    return float(text.replace(",", ""))


def setting(text: str) -> Setting:
    """Return a setting as Python prints it."""
    plain = text.strip().strip("'\"")
    if plain in ("True", "False"):
        return plain == "True"
    if re.fullmatch(r"-?\d{1,18}", plain):
        return int(plain)
    return float(plain) if re.fullmatch(r"-?\d{1,18}\.\d{1,18}", plain) else plain


def read_lines(observed: Observed, patterns: Iterable[Pattern], lines: Iterable[tuple[int, str]]) -> None:
    """Keep what every line says.

    Raises:
        UnreadableTextError: two lines state a setting otherwise.
    """
    every = tuple(patterns)
    for place, line in lines:
        go_on()
        for pattern in every:
            for match in pattern.expression.finditer(line[:MOST_CHARACTERS]):
                _keep(observed, pattern, match, place)


def _keep(observed: Observed, pattern: Pattern, match: re.Match[str], place: int) -> None:
    groups = [group for group in match.groups() if group is not None]
    if pattern.memory:
        _see(observed, pattern, pattern.memory, number(groups[0]) * UNITS[groups[1].upper()], place)
        groups = groups[2:]
    for name, text in zip(pattern.figures, groups, strict=False):
        _see(observed, pattern, name, number(text), place)
    for name, text in zip(pattern.settings, groups[len(pattern.figures) :], strict=False):
        if pattern.is_last:
            observed.settings.pop(name, None)
            observed.setting_lines.pop(name, None)
        observed.state(name, setting(text), place)


def _see(observed: Observed, pattern: Pattern, name: str, value: float, place: int) -> None:
    before = observed.figures.get(name)
    if before is not None and pattern.is_smallest:
        _tell_apart(observed, before, value, place)
    is_told = before is not None and (
        (pattern.is_largest and before.value > value) or (pattern.is_smallest and before.value < value)
    )
    if not is_told:
        observed.see(name, value, place)


def _tell_apart(observed: Observed, before: Figure, value: float, place: int) -> None:
    """Say that two lines state a figure far apart: ranks of one start have about the same, stages need not."""
    least, most = sorted((before.value, value))
    lines = f"line {place} says {before.name} {value:.0f}, and line {before.line} {before.value:.0f}"
    if 0 < least < (1 - MOST_APART) * most and not any(before.name in doubt.sentence for doubt in observed.doubts):
        sentence = f"{lines}: the smaller was compared; state one start, if they are of two"
        observed.doubts.append(Doubt(sentence=sentence, fields=()))
