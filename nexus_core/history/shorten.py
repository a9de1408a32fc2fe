"""Long tool results shortened to their head and tail."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.types.messages import Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.types.messages import Message

HEAD_SHARE = 0.7
"""The share of the kept characters that comes from the beginning of the text."""


def shorten_results(message: Message, limit: int, count: Callable[[str], int]) -> Message:
    """Return the message with texts of tool results shortened to `limit` tokens; the same object if none is longer."""
    parts = tuple(
        _shorten_result(part, limit, count) if isinstance(part, ToolResult) else part for part in message.parts
    )
    return message if all(map(_is_same_object, parts, message.parts)) else replace(message, parts=parts)


def shorten_text(text: str, limit: int, count: Callable[[str], int]) -> str:
    """Return head and tail of a text around a line with the number of characters left out; at most `limit` tokens.

    A text that fits is returned unchanged. If the limit is too small for head and tail, the line alone is returned if
    it is shorter than the text.
    """
    kept = split_head_and_tail(text, limit, count, _describe_gap)
    if kept is None:
        return text
    head, tail = kept
    if head + tail:
        return _join_head_and_tail(text, head, tail, _describe_gap)
    line = _describe_gap(len(text))
    return line if count(line) < count(text) else text


def split_head_and_tail(
    text: str, limit: int, count: Callable[[str], int], line: Callable[[int], str]
) -> tuple[int, int] | None:
    """Return how many characters of head and tail fit into `limit` tokens, with a line between them.

    Args:
        text: The text.
        limit: Maximum tokens.
        count: Returns the tokens of a text.
        line: Returns the line between head and tail for a number of characters left out.

    Returns:
        None if the whole text fits; two zeros if only the line is left.
    """
    tokens, limit = count(text), max(limit, 0)
    if tokens <= limit:
        return None
    keep = int(len(text) * limit / tokens)
    while True:
        head, tail = int(keep * HEAD_SHARE), keep - int(keep * HEAD_SHARE)
        if keep == 0 or count(_join_head_and_tail(text, head, tail, line)) <= limit:
            return head, tail
        keep = keep * 9 // 10


def _join_head_and_tail(text: str, head: int, tail: int, line: Callable[[int], str]) -> str:
    return f"{text[:head]}\n{line(len(text) - head - tail)}\n{text[len(text) - tail :]}"


def _describe_gap(left_out: int) -> str:
    return f"[… {left_out:,} characters left out …]"


def _shorten_result(result: ToolResult, limit: int, count: Callable[[str], int]) -> ToolResult:
    parts = tuple(_shorten_part(part, limit, count) if isinstance(part, Text) else part for part in result.parts)
    return result if all(map(_is_same_object, parts, result.parts)) else replace(result, parts=parts)


def _shorten_part(part: Text, limit: int, count: Callable[[str], int]) -> Text:
    short = shorten_text(part.text, limit, count)
    return part if short is part.text else replace(part, text=short)


def _is_same_object(first: object, second: object) -> bool:
    return first is second
