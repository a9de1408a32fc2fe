"""Where an endpoint is, and whether a key may go there."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit


def fault_of(url: str, *, allow_http: bool = False) -> str:
    """What is wrong with an address, for a sentence that begins with it; "" if nothing is. Never repeats any of it."""
    if any(sign <= " " or sign == "\x7f" or sign == "\\" for sign in url):
        return "has a character in it that no address has"
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises where it is none
    except ValueError:
        return "is no address"
    if parts.scheme not in ("https", "http") or not parts.hostname:
        return "must begin with https:// and the name of a server"
    if parts.username is not None or parts.password is not None:
        return "must have no password in it; name an environment variable in key_env or headers"
    if parts.query or parts.fragment:
        return "must have nothing behind a ? or #"
    if parts.scheme == "http" and not (allow_http or _is_here(parts)):
        return "must begin with https://, or everybody on the way could read the key (allow_http says that you know)"
    return ""


def is_encrypted(url: str) -> bool:
    """Whether nobody on the way can read along."""
    return urlsplit(url).scheme == "https"


def host_of(url: str) -> str:
    """The name of the server, in small letters."""
    return urlsplit(url).hostname or ""


def _is_here(parts: SplitResult) -> bool:
    """Whether what is sent there stays on this machine."""
    host = parts.hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
