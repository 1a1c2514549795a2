"""Requests are spans of whoever asks, told to a collector, without what nobody should read."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import API_KEY, seeded_service, service_settings

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")
trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@contextmanager
def collecting() -> Iterator[tuple[str, list[bytes]]]:
    """Receive OTLP over HTTP, as a collector does."""
    received: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/traces", received
    server.shutdown()
    server.server_close()


def test_each_request_is_a_span_of_its_caller_s_trace(tmp_path: Path) -> None:
    with collecting() as (endpoint, received):
        with seeded_service(service_settings(tmp_path, otlp_endpoint=endpoint)) as client:
            headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "x-api-key": API_KEY}
            client.get("/workloads/canary-name/replicas?concurrent_requests=771177", headers=headers)
            client.get("/livez")
        spans = [
            (span, {it.key: it.value.string_value or it.value.int_value for it in span.attributes})
            for body in received
            for of_resource in trace_service.ExportTraceServiceRequest.FromString(body).resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]

    (asked, told), (alone, _) = spans
    assert asked.name == "GET /workloads/{name}/replicas"
    assert told["http.route"] == "/workloads/{name}/replicas"
    assert told["http.response.status_code"] == 404
    assert (asked.trace_id.hex(), asked.parent_span_id.hex()) == (TRACE, PARENT)
    assert alone.name == "GET /livez"
    assert alone.trace_id.hex() != TRACE
    for secret in (API_KEY, "771177", "canary-name"):
        assert secret.encode() not in b"".join(received)


def test_a_collector_that_is_away_costs_no_answer(tmp_path: Path) -> None:
    with seeded_service(service_settings(tmp_path, otlp_endpoint="http://127.0.0.1:9/v1/traces")) as client:
        assert client.get("/livez").status_code == 200
