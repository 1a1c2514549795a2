"""Versions of an engine: rows that state what differs from the row before, put in order and completed when loaded.

    values of a row = values of the next older row, with the row's own differences in their place

Rows may be written in any order. What cannot be used is refused by the row's name: a version that is none or stands
twice, a name that stands twice, and an engine of which not exactly one row says what an unstated version means.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Generic, TypeVar

from packaging.version import InvalidVersion, Version

Value = TypeVar("Value")
# An engine before its version: `rules_version` of an answer, a requirement of pip.
NAMED: Final = re.compile(r"(?:vllm|sglang|tensorrt[-_]llm) ?(?:-|==)? ?(?=v?[0-9])", flags=re.IGNORECASE)
LEADING_NUMBERS: Final = re.compile(r"v?(\d{1,6}(?:\.\d{1,6})*)(?!\d)", flags=re.ASCII)
# What candidates, builds and tags have behind them; of a build a query string turns the + into a blank.
BEHIND: Final = re.compile(
    r"(?:(?:[._-]?(?:a|b|c|rc|alpha|beta|pre|preview|dev|post|x)(?![a-z])|[._+-][a-z])[\w.+-]*"
    r"|[+-]\d+(?!\d|\.\d)[\w.-]*|[ ][a-z]+\d[\w.]*)?",
    flags=re.ASCII | re.IGNORECASE,
)


class VersionTableError(ValueError):
    """A table of versions that would be used in part only; the sentence names the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One version as written: what differs from the version before it."""

    name: str
    since: str  # lowest version that it speaks for
    differences: Mapping[str, Any]
    is_unstated: bool = False  # speaks where nobody states a version


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete(Generic[Value]):
    """One version with everything that holds for it."""

    name: str
    since: Version
    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionTable(Generic[Value]):
    """What holds from which version on, oldest first."""

    rows: tuple[Complete[Value], ...]
    unstated: Value

    def at(self, version: Version) -> Value | None:
        """Return what holds for a version; None where it is older than every row."""
        return next((row.value for row in reversed(self.rows) if version >= row.since), None)


def completed(rows: Iterable[Row]) -> tuple[Complete[Mapping[str, Any]], ...]:
    """Return the rows oldest first, each with the values of those before it.

    >>> newer = Row(name="toy-2", since="2.0", differences={"batch": {"tokens": 8192}})
    >>> older = Row(name="toy-1", since="1.10", differences={"share": 0.9, "batch": {"tokens": 2048, "requests": 256}})
    >>> completed([newer, older])[1].value
    {'share': 0.9, 'batch': {'tokens': 8192, 'requests': 256}}

    Raises:
        VersionTableError: a row's version is none, or two rows have one name or one version.
    """
    values: Mapping[str, Any] = {}
    complete: list[Complete[Mapping[str, Any]]] = []
    for since, row in in_order(rows):
        values = changed(values, row.differences)
        complete.append(Complete(name=row.name, since=since, value=values))
    return tuple(complete)


def in_order(rows: Iterable[Row]) -> list[tuple[Version, Row]]:
    """Return the rows oldest first, each with the version that it speaks from.

    Raises:
        VersionTableError: a row's version is none, or two rows have one name or one version.
    """
    ordered = sorted(((_first_version(row), row) for row in rows), key=lambda pair: pair[0])
    _check_once(ordered)
    return ordered


def unstated_of(engine: str, rows: Iterable[Row]) -> str:
    """Return the name of the row that speaks where nobody states a version.

    Raises:
        VersionTableError: no row says so, or several do.
    """
    names = [row.name for row in rows if row.is_unstated]
    if len(names) != 1:
        claimed = " and ".join(names) or "none"
        raise VersionTableError(f"of {engine} exactly one row says what an unstated version means, not {claimed}")
    return names[0]


def changed(values: Mapping[str, Any], differences: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with differences in their place, block by block.

    >>> changed({"graphs": {"base": 1, "layer": 2}}, {"graphs": {"layer": 3}})
    {'graphs': {'base': 1, 'layer': 3}}
    """
    new = dict(values)
    for name, value in differences.items():
        older = new.get(name)
        if isinstance(value, Mapping) and isinstance(older, Mapping):
            new[name] = changed(older, value)
        else:
            new[name] = value
    return new


def read_version(text: str) -> Version | None:
    """Return the numbers that a version starts with, as its makers order them; None where it starts otherwise.

    Candidates, builds and patches of a release are held to that release; of an image its tag is read, and what follows
    the engine's name.

    >>> read_version("v0.11.0rc2") == read_version("vllm-openai:v0.11"), read_version("main")
    (True, None)
    >>> read_version("vllm==0.11") == read_version("vllm-0.11")
    True
    """
    leading = _leading(text)
    return None if leading is None else Version(leading[1])


def says_more(text: str) -> bool:
    """Return whether something stands behind a version that none has: a unit, words, a second version.

    >>> [says_more(text) for text in ("0.11.0rc2", "v0.10.2+cu128", "0.9,1", "0.11-0.13", "8s", "main")]
    [False, False, True, True, True, False]
    """
    leading = _leading(text.rstrip())
    return leading is not None and BEHIND.fullmatch(leading.string, leading.end()) is None


def _leading(text: str) -> re.Match[str] | None:
    text = NAMED.sub("", text, count=1) if NAMED.match(text) else text
    return LEADING_NUMBERS.match(text) or LEADING_NUMBERS.match(text.rpartition(":")[2])


def _first_version(row: Row) -> Version:
    """Return the version that a row speaks from; a table states releases, and states them as text.

    YAML reads 0.10 without quotation marks as the number 0.1.
    """
    if not isinstance(row.since, str):
        raise VersionTableError(f"{row.name}: first_version {row.since!r} is no text; write it in quotation marks")
    try:
        version = Version(row.since)
    except InvalidVersion as error:
        raise VersionTableError(f"{row.name}: first_version {row.since!r} is no version") from error
    if version != read_version(row.since):
        raise VersionTableError(f"{row.name}: first_version {row.since!r} is no release")
    return version


def _check_once(ordered: list[tuple[Version, Row]]) -> None:
    """Raise VersionTableError where two rows would speak for one version, or share a name."""
    names: set[str] = set()
    for _, row in ordered:
        if row.name in names:
            raise VersionTableError(f"{row.name}: two rows have this name")
        names.add(row.name)
    for (older, before), (newer, row) in pairwise(ordered):
        if older == newer:
            both = " and ".join(sorted((before.name, row.name)))
            raise VersionTableError(f"{both}: both speak from version {row.since} on")
