"""The service seen from outside: counts and times by route, a line of JSON for each request, times in the answer.

No label grows with what callers send: routes are templates, other methods are one, and no address or key is written.
"""

import json
import logging
import re
import sys
from collections.abc import Iterator
from time import perf_counter, time
from typing import Any, Final
from uuid import uuid4

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.reception import Reception
from service.catalog.keeper import CatalogKeeper

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE"})
UNMATCHED: Final = "unmatched"
REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
BUCKETS_S: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
logger = logging.getLogger("service.requests")


class Sight:
    """What is counted, in a registry of its own: two services in one process do not mix."""

    def __init__(self) -> None:
        """Start at zero."""
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "sizer_http_requests", "Requests answered", ("route", "method", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "sizer_http_request_seconds", "Until answered", ("route",), buckets=BUCKETS_S, registry=self.registry
        )
        self.kept = Counter("sizer_kept_replies", "Answers sent as kept", ("route",), registry=self.registry)

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
    """ASGI middleware: counts each request, tells how long it took, and writes its line where lines are wanted."""

    def __init__(self, app: ASGIApp, sight: Sight, paths: frozenset[str], *, writes_lines: bool) -> None:
        """Wrap an application whose kept answers are at these paths."""
        self._app, self._sight, self._paths = app, sight, paths
        if writes_lines:
            logger.setLevel(logging.INFO)
            if not logger.handlers:
                logger.addHandler(logging.StreamHandler(sys.stdout))
            logger.propagate = False
        self._writes_lines = writes_lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and remember what became of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began_at, status = perf_counter(), 500
        request_id = _request_id(scope)

        async def send_timed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                headers["Server-Timing"] = f"total;dur={1000 * (perf_counter() - began_at):.1f}"
            await send(message)

        try:
            await self._app(scope, receive, send_timed)
        finally:
            self._note(scope, status, perf_counter() - began_at, request_id)

    def _note(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        route = self._route(scope, status)
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._sight.requests.labels(route, method, str(status)).inc()
        self._sight.seconds.labels(route).observe(seconds)
        if self._writes_lines:
            logger.info(_line(scope, route, method, status, seconds, request_id))

    def _route(self, scope: Scope, status: int) -> str:
        """Return the template of a route; an answer that never came to one was kept, or refused before."""
        template = getattr(scope.get("route"), "path", None)
        if template is None and scope["path"] in self._paths:
            if status in (200, 304):
                self._sight.kept.labels(scope["path"]).inc()
            return str(scope["path"])
        return str(template or UNMATCHED)


def _request_id(scope: Scope) -> str:
    """Return the caller's own id where it is a plain one, else a new one."""
    stated: bytes = dict(scope["headers"]).get(b"x-request-id", b"")
    return stated.decode() if REQUEST_ID.fullmatch(stated) else uuid4().hex


def _line(scope: Scope, route: str, method: str, status: int, seconds: float, request_id: str) -> str:
    """Return what a log keeps of a request: neither its query string nor its key."""
    caller = scope.get("state", {}).get("caller")
    line: dict[str, Any] = {
        "at": round(time(), 3),
        "request_id": request_id,
        "method": method,
        "route": route,
        "status": status,
        "ms": round(1000 * seconds, 1),
        "caller": getattr(caller, "name", None),
    }
    name = scope.get("path_params", {}).get("name")
    if route.startswith("/workloads/") and name is not None and status < 400:
        line["workload"] = name
    return json.dumps(line)
