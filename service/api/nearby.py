"""Which path was meant by one at which there is nothing."""

import re
from collections.abc import Collection, Sequence
from typing import Final

from fastapi.routing import iter_route_contexts
from rapidfuzz import fuzz, process
from starlette.routing import BaseRoute

MOST_READ: Final = 100  # characters of a path
CLOSE_SCORE: Final = 75  # of a path
SLASHES: Final = re.compile(r"/+")
# What other services call theirs.
CALLED: Final = {
    **dict.fromkeys(("/health", "/healthz", "/ping", "/status", "/-/healthy", "/alive"), "/livez"),
    **dict.fromkeys(("/ready", "/readiness", "/-/ready"), "/readyz"),
    **dict.fromkeys(("/swagger", "/redoc", "/api", "/help"), "/docs"),
    **dict.fromkeys(("/models", "/v1/models"), "/catalog/models"),
}


def fixed_paths(routes: Sequence[BaseRoute]) -> frozenset[str]:
    """Return the paths that hold no name of an entry."""
    paths = (str(context.path) for context in iter_route_contexts(routes) if context.path)
    return frozenset(path for path in paths if "{" not in path)


def path_meant(path: str, known: Collection[str]) -> str | None:
    """Return the path that a misspelt one may mean, None where none is like it.

    >>> path_meant("//Size/", {"/size", "/capacity"}), path_meant("/healthz", {"/livez"}), path_meant("/x", {"/size"})
    ('/size', '/livez', None)
    """
    plain = SLASHES.sub("/", path[:MOST_READ].lower()).rstrip("/") or "/"
    if plain in known or CALLED.get(plain) in known:
        return plain if plain in known else CALLED[plain]
    close = process.extractOne(plain, sorted(known), scorer=fuzz.ratio, score_cutoff=CLOSE_SCORE)
    return close[0] if close else None
