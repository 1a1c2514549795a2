"""Reads JSON from services that the operator named: no redirects, no cookies, one deadline for all of it."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from service.outward.errors import NotAllowedError, OutwardError
from service.outward.pinning import is_private, pinned_address

MOST_BYTES: Final = 1 << 20
PORTS: Final = {"https": 443, "http": 80}


class JsonReader:
    """Keeps a connection to each service."""

    def __init__(self, timeout_s: float, *, may_be_private: bool) -> None:
        """Keep how long an answer may take, and whether it may come from a private network, then over http as well."""
        self._timeout_s, self._may_be_private = timeout_s, may_be_private
        self._clients: dict[tuple[str, str, int], httpx2.AsyncClient] = {}  # names may share an address

    async def read(self, url: str, params: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """Return the status and the JSON of an answer.

        Raises:
            NotAllowedError: the address is none that may be asked.
            OutwardError: nothing came in time, or nothing that can be read.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._read(url, params or {})
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise OutwardError(f"no answer within {self._timeout_s:g} s") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise OutwardError("not reached, or it broke off") from error

    async def _read(self, url: str, params: Mapping[str, str]) -> tuple[int, Any]:
        where, headers, extensions, client = await self._pinned(url)
        asked = client.stream(
            "GET",
            where,
            params=dict(params) or None,
            headers={"Accept": "application/json", **headers},
            extensions=extensions,
        )
        async with asked as response:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise OutwardError(f"the answer is larger than {MOST_BYTES >> 20} MiB")
        try:
            return response.status_code, json.loads(bytes(body))
        except (ValueError, RecursionError) as error:
            raise OutwardError(f"status {response.status_code}, and no JSON") from error

    async def _pinned(self, url: str) -> tuple[httpx2.URL, dict[str, str], dict[str, str], httpx2.AsyncClient]:
        """Return a URL by its address, what still names the host, and the client that keeps connections to it."""
        parts = urlsplit(url)
        host, scheme = (parts.hostname or "").lower(), parts.scheme
        port = parts.port or PORTS.get(scheme, 0)
        if scheme not in PORTS or not host or parts.username is not None:
            raise NotAllowedError("no address of http or https without a user")
        address = await pinned_address(host, port, may_be_private=self._may_be_private)
        if scheme == "http" and not (self._may_be_private and address is not None and is_private(address)):
            raise NotAllowedError("plain http is for private networks")
        client = self._clients.get((scheme, host, port))
        if client is None:
            client = self._clients[scheme, host, port] = httpx2.AsyncClient(
                timeout=self._timeout_s, follow_redirects=False, trust_env=address is None
            )
        if address is None:
            return httpx2.URL(url), {}, {}, client
        named = {"sni_hostname": host} if scheme == "https" else {}
        return httpx2.URL(url).copy_with(host=address), {"host": parts.netloc}, named, client

    async def close(self) -> None:
        """Let go of connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()
