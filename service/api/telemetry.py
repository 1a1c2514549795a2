"""The service seen from outside: counts and times by route, a line of JSON for each request, times in the answer.

No label grows with what callers send: routes are templates, other methods are one, and no address or key is written.
"""

import json
import logging
import re
import sys
from collections.abc import Iterator
from itertools import count
from time import perf_counter, time
from typing import Final
from uuid import uuid4

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.nearby import Templates, templates_of
from service.api.reception import Reception
from service.catalog.keeper import CatalogKeeper

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE"})
UNMATCHED: Final = "unmatched"
REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
BUCKETS_S: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
logger = logging.getLogger("service.requests")


class Sight:
    """What is counted, in a registry of its own: two services in one process do not mix."""

    def __init__(self, *, writes_lines: bool = False) -> None:
        """Start at zero; a line of JSON for each request is written where lines are wanted."""
        self._writes_lines = writes_lines
        if writes_lines:
            logger.setLevel(logging.INFO)
            if not logger.handlers:
                logger.addHandler(logging.StreamHandler(sys.stdout))
            logger.propagate = False
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "sizer_http_requests", "Requests answered", ("route", "method", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "sizer_http_request_seconds", "Until answered", ("route",), buckets=BUCKETS_S, registry=self.registry
        )
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}  # as many as labels
        self._id, self._ids = uuid4().hex[:20], count(1)
        self.kept = Counter("sizer_kept_replies", "Answers sent as kept", ("route",), registry=self.registry)

    def note(self, route: str, method: str, status: int, seconds: float, request_id: str, **known: str | None) -> None:
        """Count a request that was answered, and write its line.

        Args:
            route: its template.
            method: as it came.
            status: of the answer.
            seconds: until it was answered. [s]
            request_id: of the request.
            known: what else a line says of it.
        """
        method = method if method in METHODS else "other"
        children = self._children.get((route, method, status))
        if children is None:
            children = self.requests.labels(route, method, str(status)), self.seconds.labels(route)
            self._children[route, method, status] = children
        children[0].inc()
        children[1].observe(seconds)
        if self._writes_lines:
            line = {"at": round(time(), 3), "request_id": request_id, "method": method, "route": route}
            times = {"status": status, "ms": round(1000 * seconds, 1)}
            logger.info(json.dumps({**line, **times, "caller": None, **known}))

    def request_id(self, stated: bytes | None) -> bytes:
        """Return the caller's own id where it is a plain one, else a new one."""
        if stated is not None and REQUEST_ID.fullmatch(stated):
            return stated
        return b"%b%012x" % (self._id.encode(), next(self._ids))

    def watch(self, keeper: CatalogKeeper, reception: Reception) -> None:
        """Read gauges of these when asked."""
        self.registry.register(_Gauges(keeper, reception))

    def text(self) -> str:
        """Return everything as Prometheus reads it."""
        return generate_latest(self.registry).decode()


class _Gauges(Collector):
    """What is so at the moment of asking."""

    def __init__(self, keeper: CatalogKeeper, reception: Reception) -> None:
        self._keeper, self._reception = keeper, reception

    def collect(self) -> Iterator[Metric]:
        """Yield the catalog's age and revision, kept answers, and what work takes."""
        health = self._keeper.health
        age_s = health.age_s(time())
        revision = float(self._keeper.snapshot.revision)
        yield GaugeMetricFamily("sizer_catalog_revision", "The catalog's revision", value=revision)
        if age_s is not None:
            yield GaugeMetricFamily("sizer_catalog_age_seconds", "Since the catalog was confirmed", value=age_s)
        yield GaugeMetricFamily("sizer_catalog_refresh_failures", "Refreshes that failed", value=float(health.failures))
        answers = float(len(self._reception.desk.kept))
        yield GaugeMetricFamily("sizer_answers_kept", "Answers kept in memory", value=answers)
        mean = GaugeMetricFamily("sizer_work_mean_seconds", "What a computation took lately", labels=("room",))
        waiting = GaugeMetricFamily("sizer_work_waiting", "Computations that wait for a thread", labels=("room",))
        admission = self._reception.admission
        for room, turns in (("quick", admission.quick), ("dear", admission.dear)):
            mean.add_metric((room,), turns.mean_s)
            waiting.add_metric((room,), float(turns.num_waiting))
        yield from (mean, waiting)


class Seen:
    """ASGI middleware: notes each request, and tells how long it took."""

    def __init__(self, app: ASGIApp, sight: Sight, paths: frozenset[str]) -> None:
        """Wrap an application whose kept answers are at these paths."""
        self._app, self._sight, self._paths = app, sight, paths
        self._templates: Templates | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and remember what became of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began_at, status = perf_counter(), 500
        request_id = self._sight.request_id(dict(scope["headers"]).get(b"x-request-id"))

        async def send_timed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], *timing_headers(request_id, perf_counter() - began_at)]
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self._app(scope, receive, send_timed)
        finally:
            self._note(scope, status, perf_counter() - began_at, request_id.decode())

    def _note(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        route = self._route(scope, status)
        self._sight.note(route, scope["method"], status, seconds, request_id, **_known(scope, route, status))

    def _route(self, scope: Scope, status: int) -> str:
        """Return the template of a route; an answer that never came to one was kept, or refused before."""
        template = getattr(scope.get("route"), "path", None)
        if template is None and scope["path"] in self._paths:
            if status in (200, 304):
                self._sight.kept.labels(scope["path"]).inc()
            return str(scope["path"])
        return str(template or self._template(scope) or UNMATCHED)

    def _template(self, scope: Scope) -> str | None:
        """Return the template of the route that a request would have come to: its own method's, or else any's."""
        if self._templates is None:
            self._templates = templates_of(scope["app"].routes)
        path, method = scope["path"], scope["method"]
        fits = [(methods, template) for pattern, methods, template in self._templates if pattern.match(path)]
        return next((template for methods, template in fits if method in methods), fits[0][1] if fits else None)


def timing_headers(request_id: bytes, seconds: float) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
    """Return what an answer says of its own making.

    >>> timing_headers(b"a1", 0.0012)
    ((b'x-request-id', b'a1'), (b'server-timing', b'total;dur=1.2'))
    """
    return (b"x-request-id", request_id), (b"server-timing", b"total;dur=%.1f" % (1000 * seconds))


def _known(scope: Scope, route: str, status: int) -> dict[str, str | None]:
    """Return who asked, and for which workload: neither a query string nor a key."""
    known = {"caller": getattr(scope.get("state", {}).get("caller"), "name", None)}
    name = scope.get("path_params", {}).get("name")
    return (
        {**known, "workload": name} if route.startswith("/workloads/") and name is not None and status < 400 else known
    )
