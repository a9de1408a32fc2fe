"""The ledger of a url."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nexus_core.errors import LedgerError

if TYPE_CHECKING:
    from nexus_core.host.host import Host
    from nexus_core.values.ledger import Ledger

_PASSWORD = re.compile(r"(?<=password=)[^&]*")
_HOSTS = re.compile(r"[^/?#]*")


def open_ledger(host: Host, url: str) -> Ledger:
    """The ledger of a url: `memory:` is Nexus's own, the others are those of plugins.

    Raises:
        LedgerError: No plugin knows it, or it cannot be opened.
    """
    if url == "memory:":
        from nexus_core.history.ledger.memory import MemoryLedger  # noqa: PLC0415 - most keep what they say

        return MemoryLedger()
    ledger = host.ledger(url)
    if ledger is None:
        hint = "memory:, sqlite:///path and postgresql://host/name ship with Nexus; is a plugin disabled?"
        raise LedgerError(f"no plugin keeps conversations at {without_secret(url)!r}", hint=hint)
    return ledger


def without_secret(url: str) -> str:
    """A url without the password that may stand in it."""
    scheme, found, rest = url.partition("://")
    if found:
        place = _PASSWORD.sub("…", rest)
        if not rest.startswith("/"):  # a file has nobody before its name
            place = place.rpartition("@")[2]
            place = _HOSTS.sub(lambda hosts: ",".join(map(_without_odd_port, hosts[0].split(","))), place, count=1)
        return f"{scheme}://{place}"
    name, colon, rest = url.partition(":")
    return f"{name}:…" if colon and rest else url


def _without_odd_port(host: str) -> str:
    """Return a host without what is in the place of its port but is not a number: a password without its `@`."""
    name, colon, port = host.rpartition(":")
    return f"{name}:…" if colon and port and not port.isdigit() and not host.endswith("]") else host
