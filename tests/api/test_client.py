"""The client against the real service, over a real socket."""

import asyncio
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from service.client import AsyncClient, Client, RefusedError
from service.engine.answers.results import Replicas, Sizing
from tests.api.served import Served, served
from tests.conftest import API_KEY

QUESTION: dict[str, Any] = {
    "model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 8, "input_tokens": 1000, "output_tokens": 100,
}  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("client")) as one:
        yield one


class Busy(BaseHTTPRequestHandler):
    """A service that is busy so many times, and answers then."""

    busy, status = 0, 503
    asked: list[float]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.asked.append(time.monotonic())
        is_busy = len(self.asked) <= self.busy
        body = b'{"detail": "busy"}' if is_busy else b'{"gpus": 1}'
        self.send_response(self.status if is_busy else 200)
        self.send_header("retry-after", "1")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Say nothing."""


def busy_service(times: int, status: int) -> tuple[HTTPServer, type[Busy]]:
    handler = type("Handler", (Busy,), {"busy": times, "status": status, "asked": []})
    server = HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, handler


def test_both_clients_ask_alike(service: Served) -> None:
    async def asked() -> tuple[object, object]:
        async with AsyncClient(service.url, API_KEY) as client:
            return await client.ask("size", **QUESTION), await client.ask_many("size", [QUESTION, {}])

    with Client(service.url, API_KEY) as client:
        answer, outcomes = client.ask("size", **QUESTION), client.ask_many("size", [QUESTION, {}])

    assert answer["gpus"] == 1
    assert [it.status for it in outcomes] == [200, 422]
    assert outcomes[0].answer == answer
    assert asyncio.run(asked()) == (answer, outcomes)


def test_a_refusal_is_raised_with_its_field(service: Served) -> None:
    with Client(service.url) as client, pytest.raises(RefusedError) as refused:
        client.ask("size", **{**QUESTION, "concurrent_request": 1})

    assert refused.value.status == 422
    assert refused.value.problem["errors"][0]["field"] == "concurrent_request"
    with Client(service.url) as client, pytest.raises(RefusedError, match="no workload 'chat'"):
        client.ask_about("chat", "replicas", request_rate_per_s=38)


@pytest.mark.parametrize("status", [429, 503])
def test_what_is_busy_is_asked_again_when_it_says(status: int) -> None:
    server, handler = busy_service(1, status)
    with Client(f"http://127.0.0.1:{server.server_port}") as client:
        assert client.ask("size")["gpus"] == 1
    server.shutdown()
    server.server_close()

    assert len(handler.asked) == 2
    assert handler.asked[1] - handler.asked[0] >= 1


@pytest.mark.parametrize("status", [400, 404, 422, 500, 502])
def test_nothing_else_is_asked_again(status: int) -> None:
    server, handler = busy_service(1, status)
    with Client(f"http://127.0.0.1:{server.server_port}") as client, pytest.raises(RefusedError):
        client.ask("size")
    server.shutdown()
    server.server_close()

    assert len(handler.asked) == 1


def test_an_answer_has_the_type_of_what_the_service_computes(service: Served) -> None:
    async def asked() -> Replicas:
        async with AsyncClient(service.url) as client:
            return await client.ask_as(Replicas, "replicas", **QUESTION)

    with Client(service.url) as client:
        sizing = client.ask_as(Sizing, "size", **QUESTION)
        document = client.ask("size", **QUESTION)

    assert sizing.layout.tensor_parallel_size == document["layout"]["tensor_parallel_size"]
    assert sizing.memory_per_gpu.weight_bytes == document["memory_per_gpu"]["weight_bytes"]
    assert len(sizing.assumptions) == len(document["assumptions"])
    assert asyncio.run(asked()).replicas >= 1
