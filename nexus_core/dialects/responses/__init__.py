"""OpenAI's Responses.

reading.py       from an item to a neutral message; writing.py: the way back
parts.py         what content consists of; calls.py: calls of tools and their results
request.py       the arguments of a call; reply.py: what comes back, whole or as events
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.responses.calls import OUTPUTS
from nexus_core.dialects.responses.reading import read_item
from nexus_core.dialects.responses.reply import read_reply
from nexus_core.dialects.responses.request import read_request, write_request
from nexus_core.dialects.responses.writing import write_items
from nexus_core.dialects.rules import RESPONSES
from nexus_core.dialects.tools import read_tools, write_tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_core.values.api import Dialect
    from nexus_core.values.conversation import Conversation, Reply, Tool
    from nexus_core.values.message import Message

_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})


class ResponsesDialect:
    """Responses."""

    name = "responses"
    rules = RESPONSES

    def recognises(self, item: Mapping[str, Any]) -> bool:
        """Whether it is surely an item: it says its type, as messages of other APIs do not, or its parts do."""
        kind, content = item.get("type"), item.get("content")
        if isinstance(content, list):
            return any(isinstance(part, dict) and part.get("type") in _PARTS for part in content)
        if kind == "message":
            return isinstance(content, str)
        return isinstance(kind, str) and (kind in OUTPUTS or kind in OUTPUTS.values() or "role" not in item)

    def read(self, item: object) -> Message:
        """One item of the input or of the output."""
        return read_item(item)

    def write(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """The list of items; instructions are messages among them."""
        return write_items(messages)

    def read_request(self, body: object) -> Conversation:
        """The arguments of `client.responses.create`."""
        return read_request(body)

    def write_request(self, conversation: Conversation) -> dict[str, Any]:
        """The arguments of `client.responses.create`."""
        return write_request(conversation)

    def read_reply(self, reply: object) -> Reply:
        """A response, or the list of the events that brought it."""
        return read_reply(reply)

    def read_tools(self, tools: Iterable[object]) -> tuple[Tool, ...]:
        """Definitions of tools, in any API's shape."""
        return read_tools(tools, self.name)

    def write_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Definitions of tools, flat."""
        return write_tools(tools, self.name)


DIALECT: Dialect = ResponsesDialect()
