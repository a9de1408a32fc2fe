"""OpenAI's chat completions, and the many servers that speak like it.

reading.py       from a chat message to a neutral one; writing.py: the way back
parts.py         what content consists of; calls.py: calls of tools; reasoning.py: what servers add about thoughts
request.py       the arguments of a call; reply.py: what comes back; stream.py: what comes back in pieces
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.openai.reading import read_message
from nexus_core.dialects.openai.reply import read_reply
from nexus_core.dialects.openai.request import read_request, write_request
from nexus_core.dialects.openai.writing import write_messages
from nexus_core.dialects.rules import OPENAI
from nexus_core.dialects.tools import read_tools, write_tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_core.values.api import Dialect
    from nexus_core.values.conversation import Conversation, Reply, Tool
    from nexus_core.values.message import Message

_FIELDS = frozenset({"tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content", "audio"})
_PARTS = frozenset({"image_url", "file", "refusal"})


class ChatDialect:
    """Chat completions."""

    name = "openai"
    rules = OPENAI

    def recognises(self, item: Mapping[str, Any]) -> bool:
        """Whether it is surely a chat message: a result, or with fields or parts of content that only chat has."""
        if not isinstance(item.get("role"), str) or "type" in item or "parts" in item:
            return False
        if not _FIELDS.isdisjoint(item) or item["role"] in ("tool", "function"):
            return True
        content = item.get("content")
        return isinstance(content, list) and any(_is_chat_part(part) for part in content)

    def read(self, item: object) -> Message:
        """One chat message."""
        return read_message(item)

    def write(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """The list of messages, instructions among them."""
        return write_messages(messages)

    def read_request(self, body: object) -> Conversation:
        """The arguments of `client.chat.completions.create`."""
        return read_request(body)

    def write_request(self, conversation: Conversation) -> dict[str, Any]:
        """The arguments of `client.chat.completions.create`."""
        return write_request(conversation)

    def read_reply(self, reply: object) -> Reply:
        """A completion, or the list of its chunks."""
        return read_reply(reply)

    def read_tools(self, tools: Iterable[object]) -> tuple[Tool, ...]:
        """Definitions of tools, in any API's shape."""
        return read_tools(tools, self.name)

    def write_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Definitions of tools, each nested under `function` or `custom`."""
        return write_tools(tools, self.name)


def _is_chat_part(part: object) -> bool:
    # Anthropic's pictures and documents have a `source`; a file of chat has its field.
    return isinstance(part, dict) and part.get("type") in _PARTS and part["type"] in part


DIALECT: Dialect = ChatDialect()
