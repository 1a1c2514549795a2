"""The flags that each version of a serving engine has, read from its sources by `python -m benchmarks.engine_flags`."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import yaml
from packaging.version import Version

from service.engine.engines.versions import read_version
from service.engine.inputs import EngineName
from service.engine.kept import Kept

MOST_VERSIONS: Final = 64  # whose flags are kept
OLDEST: Final = Version("0")
LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class FlagTable:
    """The flags of one engine by version, as the file writes them; what was read of a version is kept with it."""

    def __init__(self, versions: Iterable[str], flags: Mapping[str, str], unstated: str | None = None) -> None:
        """Keep the versions that were read, oldest first, and for each flag the spans of those that have it.

        `unstated` speaks where nobody states a version, if the newest that was read is not released yet.
        """
        self._versions = tuple(map(_version, versions))
        self._unstated = self._versions[-1] if unstated is None else _version(unstated)
        self._flags = flags
        self._of: Kept[frozenset[str]] = Kept(MOST_VERSIONS)

    def of(self, version: str | None) -> frozenset[str]:
        """Return the flags of the newest version read that is not above the one asked for.

        Without a version, or one that cannot be read, these are the newest released; below the oldest, its.
        """
        return self._of.get_or(version, lambda: self._flags_at(version))

    def _flags_at(self, version: str | None) -> frozenset[str]:
        wanted = (None if version is None else read_version(version)) or self._unstated
        speaking = max((each for each in self._versions if each <= wanted), default=self._versions[0])
        return frozenset(flag for flag, spans in self._flags.items() if _covers(spans, speaking))


@lru_cache(maxsize=1)
def flag_tables() -> Mapping[EngineName, FlagTable]:
    """Return the flags of every engine, as the release states them."""
    file = resources.files("service.catalog").joinpath("data", "engine_flags.yaml")
    document: Mapping[EngineName, Any] = yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 - a safe loader
    return {engine: FlagTable(**table) for engine, table in document.items()}


def flags_of(engine: EngineName, version: str | None) -> frozenset[str]:
    """Return the long flags of an engine's version, as `FlagTable.of` says."""
    return flag_tables()[engine].of(version)


def _version(text: str) -> Version:
    return read_version(text) or OLDEST


def _covers(spans: str, version: Version) -> bool:
    """Return whether a version lies in spans.

    >>> _covers("0.8.5..0.28.0, 0.33.0..0.33.0", Version("0.9")), _covers("0.8.5..0.28.0", Version("0.33"))
    (True, False)
    """
    ends = (span.split("..") for span in spans.split(", "))
    return any(_version(first) <= version <= _version(last) for first, last in ends)
