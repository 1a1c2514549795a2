"""A fetcher stays with the hosts it may talk to, and reads no more than it wants."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx2
import pytest

from service.hub.errors import HubError, NotOnHubError, RedirectedAwayError, UnusableHubAnswerError
from service.hub.fetch import MAX_BYTES, Fetcher
from tests.hub.server import FILES, IGNORES_RANGES, running_hub


@pytest.fixture(scope="module")
def hub_url() -> Iterator[str]:
    with running_hub() as url:
        yield url


def fetched(url: str, ask: Callable[[Fetcher, httpx2.AsyncClient], Awaitable[Any]]) -> Any:
    async def asked() -> Any:
        fetcher = Fetcher(url, frozenset({"127.0.0.1"}), 5.0)
        async with fetcher.client() as client:
            return await ask(fetcher, client)

    return asyncio.run(asked())


def document(url: str, name: str, most_bytes: int = MAX_BYTES) -> Any:
    path = f"{name}/resolve/main/config.json"
    return fetched(url, lambda fetcher, client: fetcher.document(client, path, "config.json", most_bytes))


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("http://huggingface.co", "huggingface.co"),
        ("https://evil.example.com", "huggingface.co"),
        ("http://127.0.0.1:1", "huggingface.co"),
        ("ftp://huggingface.co", "huggingface.co"),
        ("https://huggingface.co@evil.example.com", "huggingface.co"),
        ("https://huggingface.co.evil.example.com", "huggingface.co"),
    ],
)
def test_only_https_and_allowed_hosts_are_asked(url: str, hosts: str) -> None:
    with pytest.raises(HubError):
        Fetcher(url, frozenset({hosts}), 1.0)


def test_a_document_is_read(hub_url: str) -> None:
    assert document(hub_url, "made/Tiny")["hidden_size"] == 64
    assert document(hub_url, "made/Moved")["hidden_size"] == 64


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("made/Absent", NotOnHubError),
        ("made/Broken", UnusableHubAnswerError),
        ("made/Packed", UnusableHubAnswerError),
        ("made/Gated", UnusableHubAnswerError),
        ("made/Away", RedirectedAwayError),
        ("made/Port", RedirectedAwayError),
        ("made/NoUrl", UnusableHubAnswerError),
        ("made/Loop", HubError),
        ("made/Ill", HubError),
    ],
)
def test_what_cannot_be_read_is_told_apart(hub_url: str, name: str, kind: type[HubError]) -> None:
    with pytest.raises(HubError) as refusal:
        document(hub_url, name)
    assert type(refusal.value) is kind


def test_a_document_above_its_cap_is_refused_with_the_cap(hub_url: str) -> None:
    with pytest.raises(UnusableHubAnswerError, match="larger than 2 MiB"):
        document(hub_url, "made/Huge", 2 << 20)


@pytest.mark.parametrize("name", ["made/Tiny", IGNORES_RANGES])
@pytest.mark.parametrize(("first", "length"), [(0, 8), (8, 40), (100, 1)])
def test_a_part_is_what_was_asked_for_even_of_a_hub_that_sends_all(
    hub_url: str, name: str, first: int, length: int
) -> None:
    path = f"{name}/resolve/main/model.safetensors"

    part = fetched(hub_url, lambda fetcher, client: fetcher.part(client, path, first, length))

    assert part == FILES["/made/Tiny/resolve/main/model.safetensors"][first : first + length]
