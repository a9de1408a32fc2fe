"""Text placeholders for images and documents in requests that are too large."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.dialects.requests import count_message_bytes
from nexus_core.history.groups import group_messages
from nexus_core.tokens.messages import Base64Bytes
from nexus_core.types.messages import File, Image, Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.types.messages import Message, Part, ResultPart

REQUEST_BYTES_RULE = "request_bytes"
"""The rule in decisions: the setting of a model with the maximum size of a request body."""


def count_media(message: Message) -> int:
    """Return the number of inline images and documents in a message; those behind a URL do not count."""
    return sum(map(_count_part_media, message.parts))


def replace_media(message: Message) -> Message:
    """Return the message with placeholders for inline images and documents; the same object if there are none."""
    return replace(message, parts=tuple(map(_replace_part_media, message.parts))) if count_media(message) else message


def replace_oldest_media(messages: Sequence[Message], most: int) -> tuple[list[Message], int]:
    """Replace as few images and documents as possible, oldest first; return the messages and their bytes.

    Args:
        messages: All messages; the newest group is never changed.
        most: Available bytes.
    """
    sizes = list(map(count_message_bytes, messages))
    told, size = list(messages), sum(sizes)
    for place in range(group_messages(messages)[-1].first if messages else 0):
        if size <= most:
            break
        told[place] = replace_media(messages[place])
        size += count_message_bytes(told[place]) - sizes[place]
    return told, size


def _count_part_media(part: Part) -> int:
    if isinstance(part, ToolResult):
        return sum(map(_count_part_media, part.parts))
    return int(isinstance(part, Image | File) and bool(_find_base64(part)))


def _replace_part_media(part: Part) -> Part:
    if isinstance(part, ToolResult):
        return replace(part, parts=tuple(map(_build_placeholder, part.parts))) if _count_part_media(part) else part
    return _build_placeholder(part) if isinstance(part, Image | File) else part


def _build_placeholder(part: ResultPart) -> ResultPart:
    if not isinstance(part, Image | File) or not (content := _find_base64(part)):
        return part
    kind = "image" if isinstance(part, Image) else "file"
    called = (part.name if isinstance(part, File) else "") or part.mime
    size = f"{len(Base64Bytes(content)):,} bytes"
    return Text(f"[{kind} left out, the request would be too large: {', '.join(filter(None, (called, size)))}]")


def _find_base64(part: Image | File) -> str:
    """Return the inline data in base64; "" for media behind a URL, which add nothing to the request body."""
    return part.data or (part.url.partition(",")[2] if part.url.startswith("data:") else "")
