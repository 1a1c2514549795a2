"""A span for each request, sent to a collector by OTLP: its route, its status, and the trace it is part of.

Neither the query string nor a key is told. Needs the extra `otel`; where no collector is named, nothing is loaded.

Source: open-telemetry/semantic-conventions, `docs/http/http-spans.md`: `{method} {route}`, `http.request.method`,
`http.route`, `http.response.status_code`; only 5xx is an error of the server.
"""

from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.telemetry import METHODS

EXPORT_S: Final = 5.0
SEND_EACH_MS: Final = 1_000
CARRIED: Final = frozenset({b"traceparent", b"tracestate"})
PROPAGATOR: Final = TraceContextTextMapPropagator()


class Tracing:
    """Makes spans, and sends them from a thread of its own."""

    def __init__(self, endpoint: str) -> None:
        """Send to a collector's address, such as http://collector:4318/v1/traces."""
        self._provider = TracerProvider(resource=Resource.create({SERVICE_NAME: "sizer"}))
        exporter = OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_S)
        self._provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=SEND_EACH_MS))
        self.tracer = self._provider.get_tracer("sizer")

    @property
    def middleware(self) -> type["Traced"]:
        """Return what makes a span of each request."""
        return Traced

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


class Traced:
    """ASGI middleware: each request is a span."""

    def __init__(self, app: ASGIApp, tracing: Tracing) -> None:
        """Wrap an application."""
        self._app, self._tracing = app, tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on inside its span."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        carrier = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in CARRIED}
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        parent = PROPAGATOR.extract(carrier)
        with self._tracing.tracer.start_as_current_span(method, parent, kind=SpanKind.SERVER) as span:
            span.set_attribute("http.request.method", method)

            async def send_seen(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(Status(StatusCode.ERROR))
                await send(message)

            await self._app(scope, receive, send_seen)
            route = getattr(scope.get("route"), "path", None)
            if route is not None:
                span.update_name(f"{method} {route}")
                span.set_attribute("http.route", route)
