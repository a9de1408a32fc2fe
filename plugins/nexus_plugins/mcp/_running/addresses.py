"""Which addresses are connected to."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def fault_of(url: str, *, own: bool) -> str:
    """Why an address is not connected to; "" when it may be.

    Args:
        url: The address, with everything in place.
        own: Whether the user wrote it down, rather than a project. A project could otherwise have the user's machine
            ask what only that machine can reach.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in {"http", "https"} or not host:
        return "is not a URL: it must start with https:// or http:// and name a host"
    if own or host in _LOOPBACK:
        return ""
    if parts.scheme != "https":
        return "is not encrypted; the server of a project must use https"
    if any(map(_is_internal, _resolved(host))):
        return "leads to this machine or to a link-local address"
    return ""


def harmless_address(host: str) -> str | None:
    """The address that a project's server is connected to under a name; None if it leads to this machine only.

    The name itself where it cannot be looked up here: somebody on the way (a proxy) may know it.
    """
    if host in _LOOPBACK:
        return host
    found = _resolved(host)
    if any(map(_is_internal, found)):
        return None
    return str(found[0]) if found else host


def _resolved(host: str) -> list[IPv4Address | IPv6Address]:
    try:
        return [ip_address(host)]
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError):
        return []  # the connection will fail as well, and say so
    return [ip_address(str(each[4][0]).partition("%")[0]) for each in found]


def _is_internal(address: IPv4Address | IPv6Address) -> bool:
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped or address
    return address.is_link_local or address.is_loopback or address.is_unspecified or address.is_multicast
