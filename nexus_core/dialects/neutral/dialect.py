"""The dialect of Nexus's own messages."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.neutral import from_json, to_json
from nexus_core.dialects.neutral.json_form import decode, encode, is_marked
from nexus_core.dialects.plain import plain_mapping
from nexus_core.dialects.requests import read_each
from nexus_core.values.conversation import Conversation, Reply, Tool
from nexus_core.values.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_core.values.api import ApiRules, Dialect, Marks

_TOOL_FIELDS = frozenset(field.name for field in fields(Tool))


class NeutralDialect:
    """Message objects as they are, and their form in JSON."""

    name = "neutral"

    @property
    def rules(self) -> ApiRules:
        """Everything is allowed."""
        from nexus_core.dialects.rules import NEUTRAL  # noqa: PLC0415 - most want our form in JSON, and no API

        return NEUTRAL

    def recognises(self, item: Mapping[str, Any]) -> bool:
        """Return True if the message is marked as one of Nexus's own."""
        return is_marked(item) and "role" in item

    def read(self, item: object) -> Message:
        """A Message, the very same, or one in JSON."""
        return item if isinstance(item, Message) else from_json(item)

    def write(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """The messages in JSON."""
        return [to_json(message) for message in messages]

    def read_request(self, body: object) -> Conversation:
        """A Conversation, or one in JSON."""
        return body if isinstance(body, Conversation) else decode(Conversation, body)

    def write_request(self, conversation: Conversation, marks: Marks | None = None) -> dict[str, Any]:  # noqa: ARG002 - no provider, no cache
        """A conversation in JSON."""
        return encode(conversation)

    def read_reply(self, reply: object) -> Reply:
        """A Reply, or one in JSON."""
        return reply if isinstance(reply, Reply) else decode(Reply, reply)

    def read_tools(self, tools: Iterable[object]) -> tuple[Tool, ...]:
        """Tools as they are, in JSON, or in any API's shape."""
        return tuple(tool for found in read_each(tools, _read_tool, "tools") for tool in found)

    def write_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Tools in JSON."""
        return [encode(tool) for tool in tools]


def _read_tool(item: object) -> tuple[Tool, ...]:
    if isinstance(item, Tool):
        return (item,)
    block = plain_mapping(item)
    if block.keys() <= _TOOL_FIELDS:
        return (decode(Tool, block),)
    from nexus_core.dialects.tools import read_tools  # noqa: PLC0415 - as above

    return read_tools([block], "openai")


DIALECT: Dialect = NeutralDialect()
