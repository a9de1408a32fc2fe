"""Long results of tools as their head and tail."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.values.parts import Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.values.message import Message

HEAD = 0.7
"""The share of what stays that is taken from the beginning."""


def shorten_results(message: Message, limit: int, count: Callable[[str], int]) -> Message:
    """The message with no text of a tool's result above `limit` tokens; the same object where there is none."""
    parts = tuple(_shorten(part, limit, count) if isinstance(part, ToolResult) else part for part in message.parts)
    return message if all(map(_same, parts, message.parts)) else replace(message, parts=parts)


def shorten_text(text: str, limit: int, count: Callable[[str], int]) -> str:
    """Head and tail of a text with a line between them that says what is left out; at most `limit` tokens.

    A text that fits comes back as it is. What is too short to be cut becomes the line alone.
    """
    tokens = count(text)
    if tokens <= limit:
        return text
    keep = int(len(text) * limit / tokens)
    while True:
        head, tail = int(keep * HEAD), keep - int(keep * HEAD)
        short = f"{text[:head]}\n[… {len(text) - keep:,} characters left out …]\n{text[len(text) - tail :]}"
        if keep == 0 or count(short) <= limit:
            return short.strip("\n") if keep == 0 else short
        keep = keep * 9 // 10


def _shorten(result: ToolResult, limit: int, count: Callable[[str], int]) -> ToolResult:
    parts = tuple(
        replace(part, text=shorten_text(part.text, limit, count))
        if isinstance(part, Text) and count(part.text) > limit
        else part
        for part in result.parts
    )
    return result if all(map(_same, parts, result.parts)) else replace(result, parts=parts)


def _same(first: object, second: object) -> bool:
    return first is second
