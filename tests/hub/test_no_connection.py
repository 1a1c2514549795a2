"""Sixty addresses an import must not be led to: nobody connects anywhere, by the sockets themselves."""

import asyncio
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest

from service.engine.errors import EngineError
from service.hub.client import Hub
from service.hub.errors import HubError
from service.hub.fetch import Fetcher

PRIVATE = (
    "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.1.254", "127.0.0.2", "0.0.0.0",  # noqa: S104 - an address to be refused

    "169.254.169.254", "169.254.170.2", "100.64.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "[::1]", "[::]",
    "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[::ffff:127.0.0.1]", "[::ffff:169.254.169.254]", "[64:ff9b::7f00:1]",
    "2130706433", "0x7f000001", "017700000001", "127.1", "0", "127.0.0.1.nip.io", "localhost.", "LOCALHOST:80",
    "metadata.google.internal", "kubernetes.default.svc", "consul.service.consul", "instance-data",
)  # fmt: skip
TRICKS = (
    "https://huggingface.co@127.0.0.1", "https://huggingface.co:443@10.0.0.1", "https://huggingface.co.evil.example",
    "https://evil.example/huggingface.co", "https://evil.example#huggingface.co", "https://evil.example?huggingface.co",
    "https://huggingface.co%2eevil.example", "https://huggingface%2eco", "https://huggingface.co\\@evil.example",
    "https:///huggingface.co", "https:huggingface.co", "//huggingface.co", "huggingface.co", "file:///etc/passwd",
    "file://huggingface.co/etc/passwd", "gopher://127.0.0.1:6379/_INFO", "ftp://huggingface.co", "dict://127.0.0.1:11211",
    "ldap://127.0.0.1", "jar:http://127.0.0.1!/", "data:application/json,{}", "http://huggingface.co", "HTTP://huggingface.co",
    "https://hugging\u212aface.co", "https://xn--huggingface-co", "", " ",
)  # fmt: skip
ADDRESSES = (*(f"https://{host}" for host in PRIVATE), *TRICKS)


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What anybody connected to, or looked up."""
    made: list[Any] = []

    def connected(_self: socket.socket, address: Any) -> None:
        made.append(address)
        raise ConnectionRefusedError

    def looked_up(host: Any, *_: Any, **__: Any) -> list[Any]:
        made.append(host)
        raise socket.gaierror

    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(socket.socket, "connect", connected)
    monkeypatch.setattr(socket.socket, "connect_ex", connected)
    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    return made


def test_there_are_sixty() -> None:
    assert len(set(ADDRESSES)) >= 60


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_hub_that_is_not_allowed_is_not_even_looked_up(connections: list[Any], address: str) -> None:
    with pytest.raises((HubError, ValueError)):
        Fetcher(address, frozenset({"huggingface.co"}), 1.0)

    assert connections == []


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_redirect_is_not_followed_there(connections: list[Any], address: str) -> None:
    fetcher = Fetcher("https://huggingface.co", frozenset({"huggingface.co"}), 1.0)

    try:
        target = fetcher._redirected("https://huggingface.co/a/resolve/main/config.json", address)  # noqa: SLF001
    except HubError:
        target = "https://huggingface.co/"

    assert (urlsplit(target).scheme, urlsplit(target).hostname) == ("https", "huggingface.co")
    assert connections == []


@pytest.mark.parametrize("address", [it for it in ADDRESSES if it.strip()])
def test_a_model_named_like_an_address_is_asked_of_the_hub_alone(connections: list[Any], address: str) -> None:
    hub = Hub(Fetcher("https://huggingface.co", frozenset({"huggingface.co"}), 1.0), 5.0)

    with pytest.raises((HubError, EngineError)):
        hub.published(address)

    assert {entry if isinstance(entry, str) else entry.decode() for entry in connections} <= {"huggingface.co"}


PRIVATE_ADDRESSES = ("10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1", "::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1", "100.64.0.1", "0.0.0.0", "224.0.0.1")  # noqa: S104 # fmt: skip


@pytest.mark.parametrize("address", PRIVATE_ADDRESSES)
def test_an_allowed_name_that_leads_into_a_private_network_is_not_followed(
    connections: list[Any], monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *_, **__: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))]
    )

    with pytest.raises(HubError, match="not public"):
        asyncio.run(asked())

    assert connections == []


def test_a_name_is_looked_up_once_and_its_address_connected_to(
    connections: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []

    def moving(host: Any, port: Any, *_: Any, **__: Any) -> list[Any]:
        name = host.decode() if isinstance(host, bytes) else host
        if name == "huggingface.co":  # public at first, and private for whoever looks again
            looked_up.append(name)
            name = "8.8.8.8" if len(looked_up) == 1 else "10.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, port))]

    monkeypatch.setattr(socket, "getaddrinfo", moving)
    with pytest.raises(HubError):
        asyncio.run(asked())

    assert looked_up == ["huggingface.co"]
    assert connections == [("8.8.8.8", 443)]


async def asked() -> None:
    """Ask an allowed hub for anything."""
    fetcher = Fetcher("https://huggingface.co", frozenset({"huggingface.co"}), 1.0)
    async with fetcher.client() as client:
        await fetcher.document(client, "a", "a")


def test_the_spy_sees_a_connection(connections: list[Any]) -> None:
    with pytest.raises(HubError):
        asyncio.run(asked())
    assert connections
