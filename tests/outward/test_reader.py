"""Other services are asked where the operator allows it, and for no longer than they may take."""

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from service.outward.errors import NotAllowedError, OutwardError
from service.outward.pinning import is_private, is_public
from service.outward.reader import MOST_BYTES, JsonReader
from tests.hub.test_no_connection import ADDRESSES

ANSWERS = {
    "/good": (200, b'{"a": [1]}'),
    "/moved": (302, b"{}"),
    "/text": (502, b"<html>"),
    "/huge": (200, b'"' + b"x" * MOST_BYTES + b'"'),
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, body = ANSWERS[self.path.partition("?")[0]]
        self.send_response(status)
        self.send_header("location", "http://127.0.0.1:1/")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def answering() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def read(url: str, *, may_be_private: bool = True, timeout_s: float = 5) -> tuple[int, Any]:
    async def asked() -> tuple[int, Any]:
        reader = JsonReader(timeout_s, may_be_private=may_be_private)
        try:
            return await reader.read(url, {"query": "up"})
        finally:
            await reader.close()

    return asyncio.run(asked())


def test_an_answer_is_read_with_its_status_and_no_redirect_is_followed() -> None:
    with answering() as url:
        assert read(url + "/good") == (200, {"a": [1]})
        assert read(url + "/moved") == (302, {})
        with pytest.raises(OutwardError, match="no JSON"):
            read(url + "/text")
        with pytest.raises(OutwardError, match="larger"):
            read(url + "/huge")


def test_who_is_silent_is_given_up_on_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began_at = time.monotonic()
        with pytest.raises(OutwardError, match=r"no answer within 0\.3 s"):
            read(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.3)
        assert time.monotonic() - began_at < 60  # it would wait for ever


@pytest.mark.parametrize("may_be_private", [False, True])
@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "localhost", "[::1]", "[fd00::1]", "[::ffff:10.0.0.1]"])
def test_private_addresses_are_asked_only_where_that_is_configured(host: str, *, may_be_private: bool) -> None:
    if may_be_private:
        with pytest.raises(OutwardError) as told:
            read(f"http://{host}:1", timeout_s=0.2)
        assert not isinstance(told.value, NotAllowedError)
    else:
        with pytest.raises(NotAllowedError):
            read(f"http://{host}:1", may_be_private=False)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest", "http://[fd00:ec2::254]", "http://[fe80::1]", "http://0.0.0.0", "http://224.0.0.1",
        "http://8.8.8.8", "ftp://127.0.0.1", "file:///etc/passwd", "http://user:word@127.0.0.1", "http://", "127.0.0.1",
        "http://[::ffff:169.254.169.254]", "http://255.255.255.255",
    ],
)  # fmt: skip
def test_some_addresses_are_never_asked(url: str) -> None:
    with pytest.raises(NotAllowedError):
        read(url)


@pytest.mark.parametrize("address", ADDRESSES)
def test_sixty_addresses_are_not_connected_to(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """As a Prometheus, or as an issuer's keys, which are read alike; by the sockets themselves."""
    made: list[Any] = []

    def connected(_self: socket.socket, to: Any) -> None:
        made.append(to)
        raise ConnectionRefusedError

    def looked_up(host: Any, port: Any, *_: Any, **__: Any) -> list[Any]:
        name = host.decode() if isinstance(host, bytes) else host
        is_address = ":" in name or re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+", name)
        inside = name if is_address else "10.0.0.1"  # names, and numbers in disguise, lead into a private network
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (inside, port))]

    monkeypatch.setattr(socket.socket, "connect", connected)
    monkeypatch.setattr(socket.socket, "connect_ex", connected)
    monkeypatch.setattr(socket, "getaddrinfo", looked_up)

    with pytest.raises(OutwardError):
        read(address, may_be_private=False)
    assert made == []


def test_no_address_is_both_public_and_private() -> None:
    for address in ("8.8.8.8", "10.0.0.1", "100.64.0.1", "2606:4700::1111", "::1", "fe80::1", "127.8.8.8"):
        assert not (is_public(address) and is_private(address)), address
    assert json.dumps([is_private("100.64.0.1"), is_private("2606:4700::1111")]) == "[true, false]"
