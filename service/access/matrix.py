"""Which scope each operation needs. One that no row names fails a test, so that none is open by being forgotten."""

import re
from typing import Final

from service.access.keys import Scope

Row = tuple[str, str, Scope | None]
NEVER_LOCKED: Final = r"/|/livez|/readyz|/metrics|/openapi\.json|/docs(/.*)?"
QUESTIONS: Final = r"/(size|capacity|replicas|recommend|compare)"
ROWS: Final[tuple[Row, ...]] = (
    ("GET", NEVER_LOCKED, None),
    ("GET", QUESTIONS, "read"),
    ("POST", QUESTIONS + r"(:batch)?", "read"),
    ("POST", r"/measurements", "read"),
    ("GET", r"/measurements/[^/]+/changes", "admin"),
    ("GET", r"/measurements(/[^/]+)?", "read"),
    ("DELETE", r"/measurements/[^/]+", "write"),
    ("GET", r"/catalog/changes", "admin"),
    ("GET", r"/catalog/.*", "read"),
    ("PUT", r"/catalog/(models|gpus|offers)/[^/]+", "write"),
    ("DELETE", r"/catalog/(models|gpus|offers)/[^/]+", "admin"),
    ("POST", r"/catalog/models/import", "admin"),
    ("GET", r"/workloads/[^/]+/changes", "admin"),
    ("GET", r"/workloads(/[^/]+(/(size|capacity|recommend|replicas))?)?", "read"),
    ("PUT", r"/workloads/[^/]+", "write"),
    ("DELETE", r"/workloads/[^/]+", "write"),
    ("GET", r"/probe|/sd", "read"),
    ("POST", r"/api/v1/getparams\.execute", "read"),
)
COMPILED: Final = tuple((method, re.compile(pattern), scope) for method, pattern, scope in ROWS)


def row_of(method: str, path: str) -> tuple[Scope | None] | None:
    """Return the scope that an operation's row states; None where none names it.

    >>> row_of("HEAD", "/size"), row_of("PUT", "/workloads/chat"), row_of("POST", "/anything/else")
    (('read',), ('write',), None)
    """
    method = "GET" if method == "HEAD" else method
    for named, pattern, scope in COMPILED:
        if named == method and pattern.fullmatch(path):
            return (scope,)
    return None
