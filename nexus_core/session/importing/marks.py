"""What two imports of one transcript have in common, told from what was said and in which order."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from nexus_core.dialects.neutral import message_to_json
from nexus_core.ledger.json_text import write_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.types.messages import Message

Mark = bytes
"""Stands for an item and all before it."""

START: Mark = b""


def message_mark(before: Mark, message: Message) -> Mark:
    """The mark of something said."""
    return _mark(before, write_json(message_to_json(message), "a message"))


def compaction_mark(before: Mark, summary: str, messages: Iterable[Message]) -> Mark:
    """The mark of a compaction, by what the model read from then on."""
    return _mark(before, write_json([summary, *map(message_to_json, messages)], "a compaction"))


def _mark(before: Mark, text: str) -> Mark:
    return blake2b(before + text.encode(), digest_size=16).digest()
