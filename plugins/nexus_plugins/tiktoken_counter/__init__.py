"""A token counter with tiktoken and bundled rank tables. Nothing is downloaded.

_counter.py      the counter, on splintr where it is installed, else on tiktoken
_short_texts.py  exact counts of short ASCII texts, without a tokenizer
_tables.py       the bundled rank tables, and the encoding of a model
_diagnosis.py    findings of `nexus doctor`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import NexusError, hookimpl
from nexus_plugins.tiktoken_counter._counter import TiktokenCounter
from nexus_plugins.tiktoken_counter._tables import find_encoding, require_tiktoken

if TYPE_CHECKING:
    from nexus_core import Finding

__all__ = ["TiktokenCounter", "nexus_diagnose", "nexus_token_counter"]


@hookimpl
def nexus_token_counter(model: str, encoding: str) -> TiktokenCounter | None:
    """Return a counter for any model, exact for those whose encoding is bundled, or None without tiktoken."""
    try:
        require_tiktoken()
    except NexusError:
        return None
    name, exact = find_encoding(model, encoding)
    return TiktokenCounter(name, exact=exact)


@hookimpl
def nexus_diagnose() -> list[Finding]:
    """Report a missing tiktoken and missing or damaged tables."""
    from nexus_plugins.tiktoken_counter._diagnosis import diagnose_tokenizers

    return diagnose_tokenizers()
