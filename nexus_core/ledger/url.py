"""Ledger URLs: opening the ledger of a URL, and hiding the password in one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nexus_core.errors import LedgerError

if TYPE_CHECKING:
    from nexus_core.host.manager import Host
    from nexus_core.types.ledger import Ledger

_CONNECTION_STRING = re.compile(
    r"\s*(?:host(?:addr)?|port|dbname|user|pass(?:word|file)|service(?:file)?|ssl\w+|options|application_name"
    r"|connect_timeout|target_session_attrs|client_encoding|channel_binding|gss\w+|krbsrvname|keepalives\w*)\s*="
)
"""Keywords that a connection string of libpq can begin with, such as `host=localhost password=…`."""
_PASSWORD = re.compile(r"(?<=password=)[^&]*")
_HOSTS = re.compile(r"[^/?#]*")


def open_ledger(host: Host, url: str) -> Ledger:
    """The ledger of a url: `memory:` is Nexus's own, the others are those of plugins.

    Raises:
        LedgerError: No plugin knows it, or it cannot be opened.
    """
    refuse_connection_string(url)
    if url == "memory:":
        from nexus_core.ledger.in_memory import MemoryLedger

        return MemoryLedger()
    ledger = host.ledger(url)
    if ledger is None:
        hint = "memory:, sqlite:///path and postgresql://host/name ship with Nexus; is a plugin disabled?"
        raise LedgerError(f"no plugin keeps conversations at {without_secret(url)!r}", hint=hint)
    return ledger


def refuse_connection_string(text: str) -> None:
    """Refuse keywords of libpq, which would be taken for the name of a file; nothing of them is repeated.

    Raises:
        LedgerError: The text is a connection string and not a URL.
    """
    if _CONNECTION_STRING.match(text):
        raise LedgerError(
            "the ledger is given as a connection string of libpq, not as a URL",
            hint="write postgresql://USER:PASSWORD@HOST:PORT/DATABASE; in the password, @ is %40 and / is %2F",
        )


def without_secret(url: str) -> str:
    """A url without the password that may stand in it."""
    if _CONNECTION_STRING.match(url):
        return "…"
    scheme, found, rest = url.partition("://")
    if found:
        place = _PASSWORD.sub("…", rest)
        if not rest.startswith("/"):  # a file has nobody before its name
            place = place.rpartition("@")[2]
            place = _HOSTS.sub(lambda hosts: ",".join(map(_hide_odd_port, hosts[0].split(","))), place, count=1)
        return f"{scheme}://{place}"
    name, colon, rest = url.partition(":")
    return f"{name}:…" if colon and rest else url


def _hide_odd_port(host: str) -> str:
    """Return a host without what is in the place of its port but is not a number: a password without its `@`."""
    name, colon, port = host.rpartition(":")
    return f"{name}:…" if colon and port and not port.isdigit() and not host.endswith("]") else host
