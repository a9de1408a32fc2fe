"""Counts tokens with tiktoken, whose tables are bundled: nothing is ever downloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import NexusError, hookimpl
from nexus_plugins.tiktoken_counter._counter import TiktokenCounter
from nexus_plugins.tiktoken_counter._encodings import find_encoding
from nexus_plugins.tiktoken_counter._tables import ensure_available

if TYPE_CHECKING:
    from nexus_core import Finding

__all__ = ["TiktokenCounter", "nexus_diagnose", "nexus_token_counter"]


@hookimpl
def nexus_token_counter(model: str, encoding: str) -> TiktokenCounter | None:
    """A counter for every model, exact for those whose encoding is bundled; none without tiktoken."""
    try:
        ensure_available()
    except NexusError:
        return None
    name, exact = find_encoding(model, encoding)
    return TiktokenCounter(name, exact=exact)


@hookimpl
def nexus_diagnose() -> list[Finding]:
    """Whether tiktoken and its tables are there and whole."""
    from nexus_plugins.tiktoken_counter._diagnosis import diagnose  # noqa: PLC0415 - only `nexus doctor` needs it

    return diagnose()
