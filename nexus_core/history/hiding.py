"""Pictures and documents told in words, where a request would be too large with them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.dialects.sizes import measure_message
from nexus_core.history.groups import groups
from nexus_core.tokens.base64_bytes import Base64Bytes
from nexus_core.values.parts import File, Image, Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.values.message import Message
    from nexus_core.values.parts import Part, ResultPart

RULE = "request_bytes"
"""What decisions name: the setting of a model that says how large a request may be."""


def count_media(message: Message) -> int:
    """How many pictures and documents a message holds, those elsewhere not counted."""
    return sum(map(_count, message.parts))


def tell_media(message: Message) -> Message:
    """The message with words for each picture and document in it; the same where there is none."""
    return replace(message, parts=tuple(map(_told, message.parts))) if count_media(message) else message


def hide_oldest(messages: Sequence[Message], most: int) -> tuple[list[Message], int]:
    """Messages with as few pictures and documents in words as can be, the oldest first, and how many bytes they have.

    Args:
        messages: All of them; the newest group stays as it is.
        most: The bytes there are.
    """
    sizes = list(map(measure_message, messages))
    told, size = list(messages), sum(sizes)
    for place in range(groups(messages)[-1].first if messages else 0):
        if size <= most:
            break
        told[place] = tell_media(messages[place])
        size += measure_message(told[place]) - sizes[place]
    return told, size


def _count(part: Part) -> int:
    if isinstance(part, ToolResult):
        return sum(map(_count, part.parts))
    return int(isinstance(part, Image | File) and bool(_content(part)))


def _told(part: Part) -> Part:
    if isinstance(part, ToolResult):
        return replace(part, parts=tuple(map(_words, part.parts))) if _count(part) else part
    return _words(part) if isinstance(part, Image | File) else part


def _words(part: ResultPart) -> ResultPart:
    if not isinstance(part, Image | File) or not (content := _content(part)):
        return part
    kind = "image" if isinstance(part, Image) else "file"
    called = (part.name if isinstance(part, File) else "") or part.mime
    size = f"{len(Base64Bytes(content)):,} bytes"
    return Text(f"[{kind} left out, the request would be too large: {', '.join(filter(None, (called, size)))}]")


def _content(part: Image | File) -> str:
    """The bytes in base64; "" where they are elsewhere, which takes no room."""
    return part.data or (part.url.partition(",")[2] if part.url.startswith("data:") else "")
