"""The tokens of messages and of tools, for any counter of texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from json.encoder import JSONEncoder
from typing import TYPE_CHECKING, Protocol

from nexus_core.tokens.media import BYTES_PER_TOKEN, count_file, count_image
from nexus_core.values.counting import MESSAGE_OVERHEAD
from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.conversation import Tool
    from nexus_core.values.message import Message
    from nexus_core.values.parts import Part

_BLOB = re.compile(r"[A-Za-z0-9+/_\-]{4096,}={0,2}")
"""Bytes in base64: no words, and never read as such."""
_SEALED_CHARACTERS_PER_TOKEN = 4
"""A sealed thought is about as long as the thought, and the provider counts that."""


class CountsTexts(Protocol):
    """Whatever counts texts."""

    def count(self, text: str) -> int:
        """The tokens of a text."""


def count_messages(counter: CountsTexts, messages: Iterable[Message]) -> int:
    """The tokens of messages, 4 more for each than what it says.

    Texts and thoughts count as they stand, calls of tools as their name and their arguments as JSON, results as their
    parts, pictures and documents by the rules of the API they were read from, unknown blocks as JSON.
    """
    return sum([_count_message(counter, message) for message in messages])


def count_tools(counter: CountsTexts, tools: Iterable[Tool]) -> int:
    """The tokens of definitions of tools, each as JSON and 4 more."""
    return sum(MESSAGE_OVERHEAD + counter.count(compact_json(_definition(tool))) for tool in tools)


def compact_json(value: object) -> str:
    """A value as JSON without blanks, with letters as they are; what is no JSON stands in it as its text."""
    return _encode(value)


def _count_message(counter: CountsTexts, message: Message) -> int:
    name = counter.count(message.name) if message.name else 0
    return MESSAGE_OVERHEAD + name + sum([_count_part(counter, part, message.api) for part in message.parts])


def _count_part(counter: CountsTexts, part: Part, api: str) -> int:
    if isinstance(part, Text):
        return counter.count(part.text)
    if isinstance(part, ToolCall):
        arguments = compact_json(part.arguments) if part.raw is None else part.raw
        return counter.count(part.name) + counter.count(arguments)
    if isinstance(part, ToolResult):
        return sum([_count_part(counter, each, api) for each in part.parts])
    if isinstance(part, Reasoning):
        return counter.count(part.text) + -(-len(part.encrypted) // _SEALED_CHARACTERS_PER_TOKEN)
    return _count_block(counter, part) if isinstance(part, Opaque) else _count_media(counter, part, api)


def _count_media(counter: CountsTexts, part: Image | File, api: str) -> int:
    return count_image(part, api) if isinstance(part, Image) else count_file(part, api, counter.count)


def _count_block(counter: CountsTexts, part: Opaque) -> int:
    blobs: list[str] = []

    def take(blob: re.Match[str]) -> str:
        blobs.append(blob[0])
        return ""

    words = _BLOB.sub(take, compact_json(part.block))
    return counter.count(words) + sum(len(blob) * 3 // 4 // BYTES_PER_TOKEN for blob in blobs)


def _definition(tool: Tool) -> dict[str, object]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters, **tool.extra}


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


# Made once: there is a call in every other message.
_encode = JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain).encode
