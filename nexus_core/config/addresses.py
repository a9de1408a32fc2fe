"""Addresses of endpoints: checks, host and port."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

_SCHEMES = ("https", "http")
_FORBIDDEN_CHARACTERS = re.compile(r"[\x00-\x20\x7f\\]")


def find_address_error(url: str, *, allow_http: bool = False) -> str:
    """Return the error in an address as a predicate, or "".

    The error never repeats the address, which may hold a password.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for an invalid port
    except ValueError:
        return "is not an address"
    is_unencrypted = parts.scheme == "http" and not allow_http and not _is_loopback(parts.hostname or "")
    errors = {
        "contains a character that cannot be in an address": _FORBIDDEN_CHARACTERS.search(url),
        "must begin with https:// and the name of a server": parts.scheme not in _SCHEMES or not parts.hostname,
        "must not contain a password; name the environment variable that holds the key": "@" in parts.netloc,
        "must not have anything after a ? or #": "?" in url or "#" in url,
        "must begin with https://, or others could read the key; allow_http permits that": is_unencrypted,
    }
    return next((error for error, applies in errors.items() if applies), "")


def is_encrypted(url: str) -> bool:
    """Return True if the address uses HTTPS."""
    return urlsplit(url).scheme == "https"


def get_host(url: str) -> str:
    """Return the host of a URL, in lower case, or "" if it has none."""
    return urlsplit(url).hostname or ""


def get_authority(url: str) -> str:
    """Return the host of a URL with its port, if it has one."""
    return urlsplit(url).netloc


def _is_loopback(host: str) -> bool:
    """Return True if a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
