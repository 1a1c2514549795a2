"""The flags that each version of a serving engine has, read from its sources by `python -m benchmarks.engine_flags`."""

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import yaml

from service.engine.inputs import EngineName

Version = tuple[int, ...]
NUMBER: Final = re.compile(r"[0-9]+")
LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@lru_cache(maxsize=64)
def flags_of(engine: EngineName, version: str | None) -> frozenset[str]:
    """Return the long flags of an engine's version: those of the newest version read that is not above it.

    Without a version, or one that cannot be read, these are the newest flags known; below the oldest, its.
    """
    table = _tables()[engine]
    versions = [_version(each) or () for each in table["versions"]]
    wanted = _version(version) or versions[-1]
    index = max((place for place, each in enumerate(versions) if each <= wanted), default=0)
    return frozenset(flag for flag, spans in table["flags"].items() if _covers(spans, versions[index]))


@lru_cache(maxsize=1)
def _tables() -> Mapping[str, Any]:
    file = resources.files("service.catalog").joinpath("data", "engine_flags.yaml")
    document: Mapping[str, Any] = yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 - a safe loader
    return document


def _version(text: str | None) -> Version | None:
    """Return the numbers of a version; None where it has none."""
    numbers = tuple(int(number) for number in NUMBER.findall(text or "")[:3])
    return numbers or None


def _covers(spans: str, version: Version) -> bool:
    """Return whether a version lies in spans such as `0.8.5..0.28.0, 0.33.0..0.33.0`."""
    ends = (span.split("..") for span in spans.split(", "))
    return any((_version(first) or ()) <= version <= (_version(last) or ()) for first, last in ends)
