"""Anthropic's Messages.

reading.py       from one of its messages to a neutral one; writing.py: the way back
blocks.py        what content consists of; media.py: pictures and documents
request.py       the arguments of a call; reply.py: what comes back; stream.py: what comes back in pieces
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.anthropic.reading import read_message
from nexus_core.dialects.anthropic.reply import read_reply
from nexus_core.dialects.anthropic.request import read_request, write_request
from nexus_core.dialects.anthropic.writing import write_messages
from nexus_core.dialects.rules import ANTHROPIC
from nexus_core.dialects.tools import read_tools, write_tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_core.values.api import Dialect
    from nexus_core.values.conversation import Conversation, Reply, Tool
    from nexus_core.values.message import Message

_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "search_result", "container_upload"})
_ENDINGS = ("_tool_use", "_tool_result")


class AnthropicDialect:
    """Messages."""

    name = "anthropic"
    rules = ANTHROPIC

    def recognises(self, item: Mapping[str, Any]) -> bool:
        """Whether it is surely one of Anthropic's messages: a block that nobody else has stands in it."""
        content = item.get("content")
        return isinstance(content, list) and "parts" not in item and any(map(_is_own_block, content))

    def read(self, item: object) -> Message:
        """One message."""
        return read_message(item)

    def write(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """The list of messages; instructions only where Anthropic itself had them in it."""
        return write_messages(messages)

    def read_request(self, body: object) -> Conversation:
        """The arguments of `client.messages.create`."""
        return read_request(body)

    def write_request(self, conversation: Conversation) -> dict[str, Any]:
        """The arguments of `client.messages.create`."""
        return write_request(conversation)

    def read_reply(self, reply: object) -> Reply:
        """A message, or the list of a stream's events."""
        return read_reply(reply)

    def read_tools(self, tools: Iterable[object]) -> tuple[Tool, ...]:
        """Definitions of tools, in any API's shape."""
        return read_tools(tools, self.name)

    def write_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Definitions of tools, each with an `input_schema`."""
        return write_tools(tools, self.name)


def _is_own_block(block: object) -> bool:
    if not isinstance(block, dict) or not isinstance(kind := block.get("type"), str):
        return False
    return kind in _BLOCKS or kind.endswith(_ENDINGS) or (kind in ("image", "document") and "source" in block)


DIALECT: Dialect = AnthropicDialect()
