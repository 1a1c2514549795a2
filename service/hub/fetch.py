"""Fetches files from one hub, confined to hosts, sizes and times; what comes is read, never executed."""

import json
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import httpx2

from service.hub.errors import HubError, NotOnHubError, RedirectedAwayError, UnusableHubAnswerError
from service.outward.errors import OutwardError
from service.outward.pinning import pinned_address

MAX_BYTES: Final = 5 * 1024 * 1024
MAX_REDIRECTS: Final = 3
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
FILE_NOT_HERE: Final = "the hub has no such model or file"
NOT_IN_TIME: Final = "the hub did not answer in time"


class Fetcher:
    """A client of one hub or mirror that follows nobody off the list of allowed hosts."""

    def __init__(self, base_url: str, allowed_hosts: frozenset[str], timeout_seconds: float) -> None:
        """Keep where to ask; plain http is accepted for a loopback mirror only.

        Args:
            base_url: of the hub or mirror.
            allowed_hosts: that may be talked to.
            timeout_seconds: for which the hub may be silent.

        Raises:
            HubError: the base URL is not https, or its host is not allowed.
        """
        self.base = base_url.rstrip("/") + "/"
        self._hosts = allowed_hosts
        self._timeout_seconds = timeout_seconds
        scheme, host, _ = _origin(self.base)
        if scheme != "https" and not (scheme == "http" and host in LOOPBACK):
            raise HubError("the hub must be reached over https")
        if host not in allowed_hosts:
            raise HubError(f"the host {host!r} is not on the list of allowed hosts")

    def client(self) -> httpx2.AsyncClient:
        """Return a client for one import, to be closed."""
        # A proxy or stored credentials from the environment have no business with a mirror on this machine.
        is_public = _origin(self.base)[1] not in LOOPBACK
        return httpx2.AsyncClient(timeout=self._timeout_seconds, follow_redirects=False, trust_env=is_public)

    async def document(
        self, client: httpx2.AsyncClient, path: str, what: str, most_bytes: int = MAX_BYTES
    ) -> dict[str, Any]:
        """Return a JSON object.

        Raises:
            HubError: it is not there, too large, not readable, or on a host off the list.
        """
        return json_object(await self._fetched(client, path, {}, 0, most_bytes), what)

    async def part(self, client: httpx2.AsyncClient, path: str, first: int, length_bytes: int) -> bytes:
        """Return so many bytes of a file, or as many as there are.

        Raises:
            HubError: as for a document.
        """
        wanted = {"range": f"bytes={first}-{first + length_bytes - 1}"}
        return await self._fetched(client, path, wanted, first, length_bytes)

    async def _fetched(
        self, client: httpx2.AsyncClient, path: str, headers: dict[str, str], first: int, most_bytes: int
    ) -> bytes:
        url = urljoin(self.base, path)
        plainly = {"accept-encoding": "identity", **headers}  # what is capped is what is sent
        try:
            for _ in range(MAX_REDIRECTS + 1):
                where, host, extensions = await _pinned(url)
                asked = client.stream("GET", where, headers={**plainly, **host}, extensions=extensions)
                async with asked as response:
                    if not response.is_redirect:
                        _check_status(response)
                        return await _limited(response, first, most_bytes, is_part=bool(headers))
                    url = self._redirected(url, response.headers.get("location", ""))
        except httpx2.InvalidURL as error:
            raise UnusableHubAnswerError("the hub redirects to something that is no URL") from error
        except httpx2.TimeoutException as error:
            raise HubError(NOT_IN_TIME) from error
        except httpx2.HTTPError as error:
            raise HubError("the hub could not be reached, or broke off") from error
        raise HubError("the hub redirects too often")

    def _redirected(self, url: str, location: str) -> str:
        """Return where a redirect leads: within the hub, or to an allowed host over https."""
        try:
            target = urljoin(url, location)
            scheme, host, port = _origin(target)
        except ValueError as error:
            raise UnusableHubAnswerError("the hub redirects to something that is no URL") from error
        allowed = scheme == "https" and host in self._hosts and port == 443
        if not allowed and (scheme, host, port) != _origin(self.base):
            raise RedirectedAwayError(
                f"the hub redirects to {host[:100]!r}, which is not on the list of allowed hosts over https"
            )
        return target


async def _pinned(url: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return a URL by its address, and the headers and extensions that still name the host; a mirror here stays."""
    _, host, port = _origin(url)
    try:
        address = None if host in LOOPBACK else await pinned_address(host, port)
    except OutwardError as error:
        raise HubError(f"the hub's {error}") from error
    if address is None:
        return url, {}, {}
    return str(httpx2.URL(url).copy_with(host=address)), {"host": host}, {"sni_hostname": host}


async def _limited(response: httpx2.Response, first: int, most_bytes: int, *, is_part: bool) -> bytes:
    """Return a body from its first byte wanted on; a whole one that is larger than wanted is refused.

    A server that ignores ranges sends the file from its start.
    """
    skip = first if response.status_code == 200 else 0
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if is_part and len(body) >= skip + most_bytes:
            break
        if len(body) > skip + most_bytes:
            raise UnusableHubAnswerError(f"the hub's answer is larger than {most_bytes >> 20} MiB")
    return bytes(body[skip : skip + most_bytes])


def _origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL.

    Raises:
        ValueError: it is no URL.
    """
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)


def _check_status(response: httpx2.Response) -> None:
    if response.status_code in (401, 403):
        raise UnusableHubAnswerError(
            "the model is gated, private or not there; paste its config.json as model_config instead"
        )
    if response.status_code == 404:
        raise NotOnHubError(FILE_NOT_HERE)
    if response.status_code not in (200, 206):
        raise HubError(f"the hub answered {response.status_code}")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise UnusableHubAnswerError("the hub's answer is compressed, although it was asked for plainly")


def json_object(body: bytes, what: str) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        UnusableHubAnswerError: it is none; `what` says of what.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnusableHubAnswerError(f"{what} is not readable JSON") from error
    if not isinstance(document, dict):
        raise UnusableHubAnswerError(f"{what} is not a JSON object")
    return document
