"""Which path was meant by one at which there is nothing."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from fastapi.routing import iter_route_contexts
from rapidfuzz import fuzz, process
from starlette.routing import BaseRoute

MOST_READ: Final = 100  # characters of a path
CLOSE_SCORE: Final = 75  # of a path
ALIKE_SCORE: Final = 100
SLASHES: Final = re.compile(r"/+")
BEFORE: Final = re.compile(r"/(?:api(?:/v[0-9]+)?|v[0-9]+)(?=/)")  # where others keep theirs
# What other services call theirs.
CALLED: Final = {
    **dict.fromkeys(("/health", "/healthz", "/ping", "/status", "/-/healthy", "/alive"), "/livez"),
    **dict.fromkeys(("/ready", "/readiness", "/-/ready"), "/readyz"),
    **dict.fromkeys(("/swagger", "/redoc", "/api", "/help"), "/docs"),
    **dict.fromkeys(("/models", "/v1/models"), "/catalog/models"),
}
# What is asked for in other words, and how it is asked here.
INSTEAD: Final = {
    "/plan": "each model with its load as a question of POST /size:batch",
    "/schedule": "the load of each hour as a question of POST /size:batch; a live one by /workloads/{name}/replicas",
}
Templates = tuple[tuple[re.Pattern[str], frozenset[str], str], ...]  # pattern, methods, template of each route


def known_paths(routes: Sequence[BaseRoute]) -> frozenset[str]:
    """Return every path, with `{name}` where the name of an entry stands."""
    return frozenset(
        str(context.path).replace(":path}", "}") for context in iter_route_contexts(routes) if context.path
    )


def instead_of(path: str) -> str | None:
    """Return how it is asked here what a path of another shape of this service would answer; None of any other."""
    plain = SLASHES.sub("/", path[:MOST_READ].lower()).rstrip("/")
    return INSTEAD.get(BEFORE.sub("", plain, count=1))


def templates_of(routes: Sequence[BaseRoute]) -> Templates:
    """Return every route's pattern, methods and template."""
    contexts = (context for context in iter_route_contexts(routes) if context.path and context.path_regex)
    return tuple((one.path_regex, frozenset(one.methods or ()), str(one.path)) for one in contexts)


def path_meant(path: str, known: Collection[str]) -> str | None:
    """Return the path that a misspelt one may mean, None where none is like it; names in it are not repeated.

    >>> path_meant("//Size/", {"/size", "/capacity"}), path_meant("/healthz", {"/livez"}), path_meant("/x", {"/size"})
    ('/size', '/livez', None)
    >>> path_meant("/workloads/chat/replica", {"/workloads/{name}/replicas", "/workloads"})
    '/workloads/{name}/replicas'
    """
    plain = SLASHES.sub("/", path[:MOST_READ].lower()).rstrip("/") or "/"
    for called in (plain, BEFORE.sub("", plain, count=1)):
        if called in known or CALLED.get(called) in known:
            return called if called in known else CALLED[called]
    fixed = sorted(each for each in known if "{" not in each)
    close = process.extractOne(plain, fixed, scorer=fuzz.ratio, score_cutoff=CLOSE_SCORE)
    scores = _of_entries(plain, known)
    best = max(scores, key=scores.__getitem__, default=None)
    if close and (best is None or scores[best] < ALIKE_SCORE):
        return close[0]
    return best if best is not None and scores[best] >= CLOSE_SCORE else None


def _of_entries(path: str, known: Collection[str]) -> Mapping[str, float]:
    """Return how like a path is to each of an entry, by what stands around the name."""
    steps = path.split("/")
    told = {each: _unnamed(steps, each.split("/")) for each in sorted(known) if each.count("/") == path.count("/")}
    return {each: fuzz.ratio(mine, each) for each, mine in told.items() if "{" in each and "//" not in mine}


def _unnamed(steps: Sequence[str], named: Sequence[str]) -> str:
    """Return a path with the marks of another in the place of its names."""
    return "/".join(mark if mark.startswith("{") and step else step for step, mark in zip(steps, named, strict=True))
