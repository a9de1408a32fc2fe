"""The arguments of `client.chat.completions.create`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.family import carried
from nexus_core.dialects.notes import noted
from nexus_core.dialects.openai.reading import read_message
from nexus_core.dialects.openai.writing import write_messages
from nexus_core.dialects.requests import arguments_of, listed, read_each
from nexus_core.dialects.tools import read_tools, write_tools
from nexus_core.dialects.tools.openai import is_former, read_functions, write_functions
from nexus_core.errors import MessageError
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
    tools: tuple[Tool, ...] = ()
    # An empty list and null stay where they are, to be told from nothing at all.
    if given.get("tools"):
        tools = read_tools(listed(given.pop("tools"), "tools"), "openai")
    if given.get("functions"):
        tools += read_functions(listed(given.pop("functions"), "functions"))
    return Conversation(messages=messages, tools=tools, api="openai", extra=noted(given))


def write_request(conversation: Conversation, marks: Marks | None = None) -> dict[str, Any]:
    """The arguments of the SDK's call."""
    body: dict[str, Any] = {"messages": write_messages(conversation.messages, marks)}
    if tools := write_tools([tool for tool in conversation.tools if not is_former(tool)], "openai"):
        body["tools"] = tools
    if functions := write_functions(conversation.tools):
        body["functions"] = functions
    return carried(conversation, "openai") | body
