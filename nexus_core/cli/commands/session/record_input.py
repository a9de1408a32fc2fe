"""Messages, replies and tool results that `nexus session record` reads."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nexus_core.cli.input import get_input_name, parse_input_json, parse_json_lines, read_input_text
from nexus_core.dialects.fields import ErrorPath, describe_json_value
from nexus_core.dialects.registry import read_messages
from nexus_core.errors import FileError, MessageError, NexusError, did_you_mean
from nexus_core.request.input import EVENT_FIELDS, read_input
from nexus_core.session.record import is_builtin_reply, read_reply, read_results, read_usage
from nexus_core.types.assembled import AgentResult
from nexus_core.types.messages import Message, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from nexus_core.dialects.registry import DialectRegistry

TextRole = Literal["user", "assistant"]

KNOWN_SHAPES = (
    "a reply of an API, results of tools, a message with a role, an agent's result with `messages`,"
    ' or {"ask": …}, {"reply": …}, {"call": …, "result": …}'
)


class UserMessageItem(NamedTuple):
    """A user message, which opens a turn.

    Attributes:
        message: The message.
        interrupt: Whether a turn that is open is given up.
        event: Metadata of the message.
    """

    message: object
    interrupt: bool = False
    event: Mapping[str, Any] = {}


class StepItem(NamedTuple):
    """A reply, results or a whole turn is kept.

    Attributes:
        given: What `Session.record` takes.
        what: Which of these it is.
        interrupted: True if a reply was cut off; None if the input does not say so.
    """

    given: object
    what: Literal["reply", "result", "turn"]
    interrupted: bool | None = None


class CallResultItem(NamedTuple):
    """The result of one call is kept.

    Attributes:
        call: The call, by its key or its id.
        content: The result, as text.
        is_error: Whether the tool failed.
    """

    call: str
    content: str
    is_error: bool = False


RecordItem = UserMessageItem | StepItem | CallResultItem


def build_text_item(text: str, speaker: TextRole) -> RecordItem:
    """Return an item for a plain text."""
    if speaker == "user":
        return UserMessageItem(text)
    return StepItem(Reply(messages=(Message("assistant", text),), stop="end"), "reply")


def parse_record_item(value: object, dialects: DialectRegistry) -> RecordItem:
    """Return the item for one message, reply or tool result.

    Args:
        value: The parsed JSON.
        dialects: The shapes that it may be in.

    Raises:
        MessageError: It is in no shape that is known, or wrong in it; says where.
    """
    if isinstance(value, list):
        return _parse_reply_or_result(value, dialects)
    if not isinstance(value, dict):
        raise MessageError(
            f"expected an object, not {describe_json_value(value)}", hint="--role user records the file as plain text"
        )
    for key, read in (("ask", _parse_ask), ("reply", _parse_reply_envelope), ("call", _parse_call_result)):
        if key in value:
            return read(value, dialects)
    # Of whole replies, only Anthropic's have a role, and always a reason why they ended.
    if "role" in value and "stop_reason" not in value:
        return _parse_message(value, dialects)
    if "messages" in value:
        return _parse_agent_result(value, dialects)
    return (
        _parse_message(value, dialects)
        if _is_plugin_message(value, dialects)
        else _parse_reply_or_result(value, dialects)
    )


def _is_plugin_message(value: dict[str, Any], dialects: DialectRegistry) -> bool:
    """True if it is a message in a plugin's dialect."""
    speaking = None if is_builtin_reply(value) else dialects.offering(value)
    try:
        return speaking is not None and bool(speaking.read(value))
    except MessageError:  # it may be a reply
        return False


def _parse_message(value: dict[str, Any], dialects: DialectRegistry) -> RecordItem:
    if read_results(value, dialects) is not None:
        return StepItem(value, "result")
    message = dialects.recognise([value]).read(value)
    if message.role == "user":
        return UserMessageItem(message)
    if message.role != "assistant":
        hint = "what every call begins with comes from the layers: see `nexus show`"
        raise MessageError(f"a message of the {message.role} cannot be recorded", path="role", hint=hint)
    return StepItem(read_reply(message, dialects), "reply")


def _parse_reply_or_result(value: object, dialects: DialectRegistry) -> StepItem:
    if read_results(value, dialects) is not None:
        return StepItem(value, "result")
    try:
        return StepItem(read_reply(value, dialects), "reply")
    except MessageError as error:
        if error.path:
            raise
        raise MessageError(error.what, hint=f"known are {KNOWN_SHAPES}") from None


def _parse_ask(value: dict[str, Any], dialects: DialectRegistry) -> UserMessageItem:
    _require_fields(value, ("ask", "interrupt", *EVENT_FIELDS))
    event = {name: each for name, each in value.items() if name not in ("ask", "interrupt")}
    user_input = read_input(value["ask"], event, dialects)
    return UserMessageItem(user_input.message, _get_flag(value, "interrupt"), event)


def _parse_reply_envelope(value: dict[str, Any], dialects: DialectRegistry) -> StepItem:
    _require_fields(value, ("reply", "interrupted"))
    with ErrorPath("reply"):
        reply = value["reply"]
        item = (
            parse_record_item(reply, dialects) if isinstance(reply, dict) else _parse_reply_or_result(reply, dialects)
        )
        if not isinstance(item, StepItem) or item.what != "reply":
            raise MessageError("expected what a model answered")
    return item._replace(interrupted=_get_flag(value, "interrupted") if "interrupted" in value else None)


def _parse_call_result(value: dict[str, Any], _dialects: DialectRegistry) -> CallResultItem:
    _require_fields(value, ("call", "result", "is_error"))
    if not isinstance(value["call"], str) or not value["call"]:
        raise MessageError(
            f"expected the key or the id of a call, not {describe_json_value(value['call'])}", path="call"
        )
    if "result" not in value:
        raise MessageError("there is no 'result'", path="result")
    return CallResultItem(value["call"], format_tool_result(value["result"]), _get_flag(value, "is_error"))


def format_tool_result(result: object) -> str:
    """Return a tool result as text: a string as it is, anything else as JSON."""
    from json import dumps

    return result if isinstance(result, str) else dumps(result, ensure_ascii=False)


def _parse_agent_result(value: dict[str, Any], dialects: DialectRegistry) -> StepItem:
    _require_fields(value, tuple(field.name for field in fields(AgentResult)))
    if not isinstance(value["messages"], list) or not value["messages"]:
        raise MessageError(
            f"expected a list of messages, not {describe_json_value(value['messages'])}", path="messages"
        )
    read_messages(dialects.recognise(value["messages"]), value["messages"])
    with ErrorPath("usage"):
        usage = read_usage(value.get("usage"))
    return StepItem(AgentResult(**{**value, "usage": usage}), "turn")


def _require_fields(value: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in value:
        if name not in known:
            hint = did_you_mean(name, known) or f"it has {', '.join(known)}"
            raise MessageError(f"unknown field {name!a}", path=name, hint=hint)


def _get_flag(value: dict[str, Any], name: str) -> bool:
    given = value.get(name, False)
    if not isinstance(given, bool):
        raise MessageError(f"expected true or false, not {describe_json_value(given)}", path=name)
    return given


class LocatedItem(NamedTuple):
    """An item to record, and its location: `replies.jsonl:3`."""

    item: RecordItem
    where: str


def read_item_file(directory: Path, name: str, dialects: DialectRegistry) -> list[LocatedItem]:
    """Return the items of a file: one, `{"items": […]}`, or one on each line.

    Raises:
        ConfigError: It is not JSON; shows where.
        FileError: It cannot be read, or there is nothing in it.
        MessageError: Something in it is in no shape that is known; says where.
    """
    return [
        LocatedItem(_parse_located_item(value, where, dialects), where)
        for value, where in _iterate_values(directory, name)
    ]


def read_text_file(directory: Path, name: str, speaker: TextRole) -> list[LocatedItem]:
    """Return the text of a file without the line break at its end."""
    path, text = read_input_text(directory, name)
    return [LocatedItem(build_text_item(text.removesuffix("\n"), speaker), get_input_name(path, name))]


def read_result_file(directory: Path, name: str, call: str, *, is_error: bool) -> list[LocatedItem]:
    """Return a file that a tool has written, as the result of a call."""
    path, text = read_input_text(directory, name)
    return [LocatedItem(CallResultItem(call, text.removesuffix("\n"), is_error), get_input_name(path, name))]


def _iterate_values(directory: Path, name: str) -> Iterator[tuple[Any, str]]:
    path, text = read_input_text(directory, name)
    shown = get_input_name(path, name)
    if not text.strip():
        raise FileError("there is nothing in it", where=shown, hint="nothing was recorded")
    lines = parse_json_lines(path, text)
    if lines is not None:
        for number, value in lines:
            yield value, f"{shown}:{number}"
        return
    if text.lstrip()[0] not in "{[":
        hint = "--role user records it as a user message, --role assistant as a reply, --call CALL as a tool result"
        raise MessageError("expected JSON, not words", path=shown, hint=hint)
    value = parse_input_json(path, text, text)
    if isinstance(value, dict) and value.keys() == {"items"} and isinstance(value["items"], list):
        if not value["items"]:
            raise FileError("there is nothing in it", where=f"{shown}: items", hint="nothing was recorded")
        for place, item in enumerate(value["items"]):
            yield item, f"{shown}: items[{place}]"
        return
    yield value, shown


def _parse_located_item(value: object, where: str, dialects: DialectRegistry) -> RecordItem:
    try:
        return parse_record_item(value, dialects)
    except NexusError as error:
        inside = error.path if isinstance(error, MessageError) else ""
        path, hint = ": ".join(filter(None, (where, inside))), error.command or error.hint
        raise MessageError(error.what, path=path, hint=hint) from None
