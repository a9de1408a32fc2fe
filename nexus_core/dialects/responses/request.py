"""The arguments of `client.responses.create`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.family import carried
from nexus_core.dialects.fields import optional_text_in
from nexus_core.dialects.notes import noted
from nexus_core.dialects.openai.writing import spelled_role
from nexus_core.dialects.requests import arguments_of, listed, read_each
from nexus_core.dialects.responses.reading import read_item
from nexus_core.dialects.responses.writing import write_items
from nexus_core.dialects.tools import read_tools, write_tools
from nexus_core.values.conversation import Conversation
from nexus_core.values.message import Message
from nexus_core.values.parts import Text

if TYPE_CHECKING:
    from nexus_core.values.api import Marks
    from nexus_core.values.conversation import Tool


def read_request(body: object) -> Conversation:
    """A request as it is given to the SDK or sent."""
    given = arguments_of(body)
    messages: tuple[Message, ...] = ()
    if instructions := optional_text_in(given, "instructions"):
        del given["instructions"]
        messages = (Message("system", (Text(instructions),), api="responses", extra={"_instructions": True}),)
    spelling = "nothing"
    if given.get("input") is not None:
        said = given.pop("input")
        spelling = "text" if isinstance(said, str) else "list"
        messages += _read_input(said)
    tools: tuple[Tool, ...] = ()
    if given.get("tools"):
        tools = read_tools(listed(given.pop("tools"), "tools"), "responses")
    return Conversation(messages=messages, tools=tools, api="responses", extra=noted(given, input=spelling))


def write_request(conversation: Conversation, marks: Marks | None = None) -> dict[str, Any]:
    """The arguments of the SDK's call.

    The first message becomes `instructions` where that is what it is, unless it is to be marked: only items are.
    """
    marks = marks or {}
    rest = conversation.messages
    body: dict[str, Any] = {}
    if rest and _instructs(rest[0]) and 0 not in marks:
        body["instructions"] = rest[0].content
        rest, marks = rest[1:], {place - 1: lifetime for place, lifetime in marks.items()}
    items = write_items(rest, marks)
    spelling = conversation.extra.get("_input") if conversation.api == "responses" else "list"
    if spelling == "text" and len(items) == 1 and _is_simple(rest):
        body["input"] = rest[0].content
    elif items or spelling != "nothing":
        body["input"] = items
    if tools := write_tools(conversation.tools, "responses"):
        body["tools"] = tools
    return carried(conversation, "responses") | body


def _read_input(said: object) -> tuple[Message, ...]:
    if isinstance(said, str):
        return (Message("user", (Text(said),), api="responses"),)
    return read_each(listed(said, "input"), read_item, "input")


def _instructs(message: Message) -> bool:
    """Whether it goes beside the items: it came from there, or from an API that has nothing of the kind."""
    beside = message.api != "responses" or "_instructions" in message.extra
    words = len(message.parts) == 1 and isinstance(message.parts[0], Text)
    return beside and words and message.role == "system" and spelled_role(message) == "system"


def _is_simple(messages: tuple[Message, ...]) -> bool:
    only = messages[0]
    return only.role == "user" and len(only.parts) == 1 and isinstance(only.parts[0], Text)
