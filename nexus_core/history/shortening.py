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

    A text that fits comes back as it is. What is too short to be cut becomes the line alone, if that is shorter.
    """
    kept = head_and_tail(text, limit, count, _line)
    if kept is None:
        return text
    head, tail = kept
    if head + tail:
        return _joined(text, head, tail, _line)
    line = _line(len(text))
    return line if count(line) < count(text) else text


def head_and_tail(
    text: str, limit: int, count: Callable[[str], int], line: Callable[[int], str]
) -> tuple[int, int] | None:
    """How many characters of head and tail stay, with a line between them, so that it takes at most `limit` tokens.

    Args:
        text: The text.
        limit: Tokens there are.
        count: Who counts.
        line: What stands between head and tail, given how many characters are left out.

    Returns:
        None where the text fits as it is; two zeros where only the line is left.
    """
    tokens, limit = count(text), max(limit, 0)
    if tokens <= limit:
        return None
    keep = int(len(text) * limit / tokens)
    while True:
        head, tail = int(keep * HEAD), keep - int(keep * HEAD)
        if keep == 0 or count(_joined(text, head, tail, line)) <= limit:
            return head, tail
        keep = keep * 9 // 10


def _joined(text: str, head: int, tail: int, line: Callable[[int], str]) -> str:
    return f"{text[:head]}\n{line(len(text) - head - tail)}\n{text[len(text) - tail :]}"


def _line(left_out: int) -> str:
    return f"[… {left_out:,} characters left out …]"


def _shorten(result: ToolResult, limit: int, count: Callable[[str], int]) -> ToolResult:
    parts = tuple(_shorten_text(part, limit, count) if isinstance(part, Text) else part for part in result.parts)
    return result if all(map(_same, parts, result.parts)) else replace(result, parts=parts)


def _shorten_text(part: Text, limit: int, count: Callable[[str], int]) -> Text:
    short = shorten_text(part.text, limit, count)
    return part if short is part.text else replace(part, text=short)


def _same(first: object, second: object) -> bool:
    return first is second
