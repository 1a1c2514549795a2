"""Where a host is, looked up once and held to: no name leads a request where the operator did not mean it to go."""

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.request import getproxies, proxy_bypass

from service.outward.errors import NotAllowedError, OutwardError

NOT_PUBLIC: Final = "name leads to an address that is not public"
UNKNOWN: Final = "name is not known here"
METADATA: Final = ip_address("fd00:ec2::254")  # where a cloud tells a machine its secrets; others are link-local
TRANSLATED: Final = ip_network("64:ff9b::/96")  # RFC 6052; a gateway asks the address of version 4 at its end
SHARED: Final = ip_network("100.64.0.0/10")  # RFC 6598; pods of some clusters


async def pinned_address(host: str, port: int, *, may_be_private: bool = False) -> str | None:
    """Return the one address to connect to; None where a proxy looks the name up.

    Args:
        host: a name, or an address.
        port: of the service.
        may_be_private: whether it may be in a private network; then no proxy is asked.

    Raises:
        NotAllowedError: any of its addresses is private and may not be, link-local, or otherwise nobody's.
        OutwardError: the name is unknown.
    """
    if not may_be_private and "https" in getproxies() and not proxy_bypass(host):
        return None
    try:
        known = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OutwardError(UNKNOWN) from error
    addresses = [str(entry[4][0]) for entry in known]
    if not addresses or not all(
        is_public(address) or (may_be_private and is_private(address)) for address in addresses
    ):
        raise NotAllowedError(NOT_PUBLIC)
    return addresses[0]


def is_public(address: str) -> bool:
    """Return whether an address is on the public network, also inside one of version 6."""
    stated, inner = _read(address)
    return bool(inner.is_global and stated.is_global) and not stated.is_multicast


def is_private(address: str) -> bool:
    """Return whether an address is of this machine or a private network; those that clouds keep secrets at are not.

    >>> is_private("10.0.0.1"), is_private("127.0.0.1"), is_private("169.254.169.254"), is_private("8.8.8.8")
    (True, True, False, False)
    """
    stated, inner = _read(address)
    if METADATA in (stated, inner) or inner.is_link_local or inner.is_unspecified or inner.is_multicast:
        return False
    is_loopback = inner.is_loopback or stated.is_loopback
    return is_loopback or inner in SHARED or (inner.is_private and not inner.is_reserved)


def _read(address: str) -> tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address]:
    """Return an address, and the one of version 4 inside it."""
    stated = ip_address(address.partition("%")[0])
    if isinstance(stated, IPv6Address) and stated in TRANSLATED:
        return stated, IPv4Address(int(stated) & 0xFFFFFFFF)
    return stated, getattr(stated, "ipv4_mapped", None) or getattr(stated, "sixtofour", None) or stated
