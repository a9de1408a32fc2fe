"""Tries the dialects that a plugin offers: something is written, and must come back when it is read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.finding import default_dialects
from nexus_core.errors import MessageError, PluginError
from nexus_core.values.conversation import Conversation, Tool
from nexus_core.values.message import Message
from nexus_core.values.parts import Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nexus_core.host.host import Host
    from nexus_core.values.api import Dialect

_SYSTEM = Message("system", "Be brief.")
_SAID = (
    Message("user", "Why does it fail?"),
    Message("assistant", (Text("I look."), ToolCall("call_1", "read_file", {"path": "a.py"}))),
    Message("tool", (ToolResult("call_1", "x = 1", name="read_file"),)),
    Message("assistant", "Because of x."),
    Message("user", "Thanks."),
)
_TOOL = Tool(
    name="read_file",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
)
_OTHERS = ({"role": "user", "content": "Why?"}, {"role": "user", "content": [{"type": "text", "text": "Why?"}]})
"""Messages that many know."""


class Tried(NamedTuple):
    """What a dialect does with a small conversation.

    Attributes:
        name: The dialect.
        written: The conversation, in its words.
        faults: What is wrong with it, each a sentence.
    """

    name: str
    written: object
    faults: tuple[str, ...]


def try_dialects(host: Host) -> list[Tried]:
    """What became of each dialect that is offered."""
    dialects = default_dialects(host)
    return [_tried(each) for each in (*dialects.replacing().values(), *dialects.offered().values())]


def _tried(speaking: Dialect) -> Tried:
    written: list[Any] = []
    faults = [fault for trial in _TRIALS for fault in _faults_of(trial, speaking, written)]
    return Tried(speaking.name, written, tuple(faults))


def _faults_of(
    trial: Callable[[Dialect, list[Any]], Iterator[str]], speaking: Dialect, written: list[Any]
) -> list[str]:
    try:
        return [f"the dialect {speaking.name!r} {fault}" for fault in trial(speaking, written)]
    except PluginError as error:
        return [error.message]
    except MessageError as error:
        return [f"the dialect {speaking.name!r} refuses what it has written itself: {error.what}, at {error.path}"]


def _messages(speaking: Dialect, written: list[Any]) -> Iterator[str]:
    items = speaking.write(_SAID)
    written += items
    read = [speaking.read(item) for item in items]
    if _parts(read) != _parts(_SAID):
        yield "does not read back what it writes: a user's text, a call, and its result"
    if any(message.api != speaking.name for message in read):
        yield f"must say of each message that it has read it: api={speaking.name!r}"
    if speaking.write(read) != items:
        yield "writes something else than it has read: what it reads and writes back must be equal"


def _request(speaking: Dialect, written: list[Any]) -> Iterator[str]:
    given = Conversation(messages=(_SYSTEM, *_SAID), tools=(_TOOL,), extra={"model": "sample"})
    body = speaking.write_request(given, {})
    written.append(body)
    read = speaking.read_request(body)
    if _parts(read.messages) != _parts(given.messages):
        yield "does not read back the messages of a request that it writes, instructions first"
    if _tools(read.tools) != _tools([_TOOL]):
        yield "does not read back the tools of a request that it writes"


def _definitions(speaking: Dialect, written: list[Any]) -> Iterator[str]:
    items = speaking.write_tools([_TOOL])
    written += items
    if _tools(speaking.read_tools(items)) != _tools([_TOOL]):
        yield "does not read back a tool that it writes"


def _recognition(speaking: Dialect, _written: list[Any]) -> Iterator[str]:
    if any(speaking.recognises(item) for item in _OTHERS):
        yield "takes a message for its own that could be many others'"


def _refusals(speaking: Dialect, _written: list[Any]) -> Iterator[str]:
    for name in ("read", "read_request", "read_reply"):
        try:
            getattr(speaking, name)(0)
        except MessageError:
            continue
        yield f"must raise a MessageError in {name} for what is none of its own, such as a number"


_TRIALS = (_messages, _request, _definitions, _recognition, _refusals)


def _parts(messages: Iterable[Message]) -> list[object]:
    """What is said, without what an API may have no room for: who brings a result, and the ids of calls."""
    return [_told(part) for message in messages for part in message.parts]


def _told(part: object) -> object:
    if isinstance(part, ToolCall):
        return ("call", part.name, dict(part.arguments))
    if isinstance(part, ToolResult):
        return ("result", [_told(each) for each in part.parts])
    return part.text if isinstance(part, Text) else part


def _tools(tools: Iterable[Tool]) -> list[Tool]:
    return [replace(tool, api="", extra={}) for tool in tools]
