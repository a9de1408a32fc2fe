"""The arguments of `client.messages.create`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.anthropic.marking import mark_last_tool
from nexus_core.dialects.anthropic.reading import read_message, read_system
from nexus_core.dialects.anthropic.writing import write_messages, write_system
from nexus_core.dialects.notes import fields_of
from nexus_core.dialects.requests import arguments_of, listed, read_each
from nexus_core.dialects.tools import read_tools, write_tools
from nexus_core.errors import MessageError
from nexus_core.values.api import BEFORE_MESSAGES
from nexus_core.values.conversation import Conversation

if TYPE_CHECKING:
    from nexus_core.values.api import Marks
    from nexus_core.values.conversation import Tool


def read_request(body: object) -> Conversation:
    """A request as it is given to the SDK or sent."""
    given = arguments_of(body)
    if "messages" not in given:
        raise MessageError("there is no 'messages'", path="messages", hint="it must be a list of messages")
    messages = read_each(listed(given.pop("messages"), "messages"), read_message, "messages")
    # What is empty or null stays where it is, to be told from nothing at all.
    if given.get("system"):
        messages = (read_system(given.pop("system")), *messages)
    tools: tuple[Tool, ...] = ()
    if given.get("tools"):
        tools = read_tools(listed(given.pop("tools"), "tools"), "anthropic")
    return Conversation(messages=messages, tools=tools, api="anthropic", extra=given)


def write_request(conversation: Conversation, marks: Marks | None = None) -> dict[str, Any]:
    """The arguments of the SDK's call; those of another provider's request mean something else and are left out."""
    body: dict[str, Any] = fields_of(conversation.extra) if conversation.api in ("anthropic", "") else {}
    if system := write_system(conversation.messages, marks):
        body["system"] = system
    body["messages"] = write_messages(conversation.messages, marks)
    if tools := write_tools(conversation.tools, "anthropic"):
        if marks and BEFORE_MESSAGES in marks:
            mark_last_tool(tools, marks[BEFORE_MESSAGES])
        body["tools"] = tools
    return body
