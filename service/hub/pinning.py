"""Where a host is, looked up once and held to: no name leads a request into a private network."""

import asyncio
import socket
from ipaddress import ip_address
from typing import Final
from urllib.request import getproxies, proxy_bypass

from service.hub.errors import HubError

NOT_PUBLIC: Final = "the hub's name leads to an address that is not public"


async def pinned_address(host: str, port: int) -> str | None:
    """Return the one address to connect to; None where a proxy looks the name up.

    Raises:
        HubError: the name is unknown, or any of its addresses is private, link-local, or otherwise not public.
    """
    if "https" in getproxies() and not proxy_bypass(host):
        return None
    try:
        known = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise HubError("the hub's name is not known here") from error
    addresses = [str(entry[4][0]) for entry in known]
    if not addresses or not all(_is_public(address) for address in addresses):
        raise HubError(NOT_PUBLIC)
    return addresses[0]


def _is_public(address: str) -> bool:
    """Return whether an address is on the public network, also inside one of version 6."""
    stated = ip_address(address.partition("%")[0])
    inner = getattr(stated, "ipv4_mapped", None) or getattr(stated, "sixtofour", None) or stated
    return bool(inner.is_global and stated.is_global) and not stated.is_multicast
