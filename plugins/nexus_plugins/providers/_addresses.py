"""Where an endpoint is, and whether a key may go there."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

_SCHEMES = ("https", "http")
_STRANGE = re.compile(r"[\x00-\x20\x7f\\]")


def fault_of(url: str, *, allow_http: bool = False) -> str:
    """What is wrong with an address, for a sentence that begins with it; "" if nothing is. Never repeats any of it."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises where it is none
    except ValueError:
        return "is not an address"
    is_read_by_others = parts.scheme == "http" and not allow_http and not _is_here(parts.hostname or "")
    faults = {
        "contains a character that cannot be in an address": _STRANGE.search(url),
        "must begin with https:// and the name of a server": parts.scheme not in _SCHEMES or not parts.hostname,
        "must not contain a password; name an environment variable in key_env or headers": "@" in parts.netloc,
        "must not have anything after a ? or #": "?" in url or "#" in url,
        "must begin with https://, or others could read the key; allow_http permits that": is_read_by_others,
    }
    return next((fault for fault, is_so in faults.items() if is_so), "")


def is_encrypted(url: str) -> bool:
    """Whether nobody on the way can read along."""
    return urlsplit(url).scheme == "https"


def host_of(url: str) -> str:
    """The name of the server, in small letters."""
    return urlsplit(url).hostname or ""


def _is_here(host: str) -> bool:
    """Whether what is sent there stays on this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
