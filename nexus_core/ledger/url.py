"""Ledger URLs: opening the ledger of a URL, and hiding the password in one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nexus_core.errors import LedgerError

if TYPE_CHECKING:
    from nexus_core.host.manager import Host
    from nexus_core.types.ledger import Ledger

_CONNECTION_STRING_PATTERN = (
    r"\s*(?:host(?:addr)?|port|dbname|user|pass(?:word|file)|service(?:file)?|ssl\w+|options|application_name"
    r"|connect_timeout|target_session_attrs|client_encoding|channel_binding|gss\w+|krbsrvname|keepalives\w*)\s*="
)
"""Keywords that a connection string of libpq can begin with, such as `host=localhost password=…`."""
_CREDENTIAL_PATTERN = r"(?<=password=)[^&]*"
"""A password in the query of a URL."""
_HOSTS_PATTERN = r"[^/?#]*"


def open_ledger(host: Host, url: str) -> Ledger:
    """Return the ledger of a URL, which a plugin opens unless it is `memory:`.

    Raises:
        LedgerError: No plugin accepts the URL, or the ledger cannot be opened.
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
    """Reject a connection string of libpq, which would be used as a file name.

    The error does not quote it, because it may have a password in it.

    Raises:
        LedgerError: The text is a connection string and not a URL.
    """
    if re.match(_CONNECTION_STRING_PATTERN, text):
        raise LedgerError(
            "the ledger is given as a connection string of libpq, not as a URL",
            hint="write postgresql://USER:PASSWORD@HOST:PORT/DATABASE; in the password, @ is %40 and / is %2F",
        )


def without_secret(url: str) -> str:
    """Return a URL without its password."""
    if re.match(_CONNECTION_STRING_PATTERN, url):
        return "…"
    scheme, found, rest = url.partition("://")
    if found:
        address = re.sub(_CREDENTIAL_PATTERN, "…", rest)
        if not rest.startswith("/"):  # a file has no user before its path
            address = address.rpartition("@")[2]
            address = re.sub(
                _HOSTS_PATTERN, lambda hosts: ",".join(map(_hide_odd_port, hosts[0].split(","))), address, count=1
            )
        return f"{scheme}://{address}"
    name, colon, rest = url.partition(":")
    return f"{name}:…" if colon and rest else url


def _hide_odd_port(host: str) -> str:
    """Hide a port that is not a number: it is a password without its `@`."""
    name, colon, port = host.rpartition(":")
    return f"{name}:…" if colon and port and not port.isdigit() and not host.endswith("]") else host
