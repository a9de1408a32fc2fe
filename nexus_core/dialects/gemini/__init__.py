"""Gemini's generateContent.

reading.py       from a content to a neutral message; writing.py: the way back
parts.py         what a content consists of; media.py: pictures, sound, films, documents; results.py: what functions
                 brought; spelling.py: the two names of each field
request.py       the arguments of a call; reply.py: what comes back
stream.py        what comes back in pieces; pieces.py: texts and calls in pieces; partial.py: arguments in pieces
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.gemini.parts import is_part
from nexus_core.dialects.gemini.reading import read_message
from nexus_core.dialects.gemini.reply import read_reply
from nexus_core.dialects.gemini.request import read_request, write_request
from nexus_core.dialects.gemini.writing import write_messages
from nexus_core.dialects.rules import GEMINI
from nexus_core.dialects.tools import read_tools, write_tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_core.values.api import Dialect
    from nexus_core.values.conversation import Conversation, Reply, Tool
    from nexus_core.values.message import Message


class GeminiDialect:
    """Contents of generateContent."""

    name = "gemini"
    rules = GEMINI

    def recognises(self, item: Mapping[str, Any]) -> bool:
        """Whether it is surely a content: its parts are what only Gemini's are."""
        parts = item.get("parts")
        if not isinstance(parts, list) or "content" in item or "nexus" in item:  # Nexus's own messages have parts too
            return False
        return item.get("role") == "model" or any(isinstance(part, dict) and is_part(part) for part in parts)

    def read(self, item: object) -> Message:
        """One content."""
        return read_message(item)

    def write(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """The list of contents, as REST and the SDK both take it; instructions are left out."""
        return write_messages(messages)

    def read_request(self, body: object) -> Conversation:
        """The arguments of `client.models.generate_content`, or the body that REST takes."""
        return read_request(body)

    def write_request(self, conversation: Conversation) -> dict[str, Any]:
        """The arguments of `client.models.generate_content`; the body for REST where one was read."""
        return write_request(conversation)

    def read_reply(self, reply: object) -> Reply:
        """A response, or the list of a stream's responses."""
        return read_reply(reply)

    def read_tools(self, tools: Iterable[object]) -> tuple[Tool, ...]:
        """Definitions of tools, in any API's shape."""
        return read_tools(tools, self.name)

    def write_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Definitions of tools: functions declared together, and what Gemini runs itself."""
        return write_tools(tools, self.name)


DIALECT: Dialect = GeminiDialect()
