"""Lists of messages of any API, alone, in a request, or one on each line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.finding import BUILT_IN, NAMES, UNTOLD
from nexus_core.dialects.requests import read_each
from nexus_core.dialects.transcripts.document import elements, place
from nexus_core.dialects.transcripts.lines import objects_in, word_in
from nexus_core.dialects.transcripts.transcript import Entry, Transcript
from nexus_core.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.dialects.finding import Dialects
    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.document import Piece
    from nexus_core.dialects.transcripts.lines import Record
    from nexus_core.values.conversation import Conversation
    from nexus_core.values.message import Message

FORMAT = "messages"
_LISTS = ("messages", "contents", "input", "history")
"""What a list of messages is called in a request, or by programs that keep one."""
_PLACE = re.compile(r"(?:messages|contents|input|history)\[(\d+)\](.*)", re.DOTALL)


def recognises(value: dict[str, Any]) -> bool:
    """Whether a line is surely a message: it says who speaks, or is an item of Responses."""
    return isinstance(value.get("role"), str) or BUILT_IN.get("responses").recognises(value)


def is_request(value: Mapping[str, Any]) -> bool:
    """Whether an object holds a list of messages."""
    return any(isinstance(value.get(key), list) for key in _LISTS) or isinstance(value.get("input"), str)


def read_lines(records: Sequence[Record], account: Account) -> Transcript:
    """A message on each line; lines that are none are kept as they are."""
    spoken = [record for record in records if recognises(record.value) or account.dialects.offering(record.value)]
    numbers = {record.number for record in spoken}
    for record in records:
        if record.number not in numbers:
            account.keep(record.number, word_in(record.value, "type") or "untyped", record.value)
            account.note(record.number, "no message")
    values = [record.value for record in spoken]
    return _read_list(values, [record.number for record in spoken], account)


def read_list(text: str, account: Account, start: Piece | None = None) -> Transcript:
    """A JSON list of messages."""
    pieces = list(elements(text, start))
    account.lines = len(pieces)
    return _read_list([piece.value for piece in pieces], [piece.line for piece in pieces], account)


def read_request(text: str, found: Mapping[str, Piece], account: Account) -> Transcript:
    """A request, or any object that holds a list of messages; its other fields are kept."""
    key = next(key for key in _LISTS if key in found and isinstance(found[key].value, list | str))
    given = found[key].value
    items = given if isinstance(given, list) else [given]
    lines = [piece.line for piece in elements(text, found[key])] if isinstance(given, list) else [found[key].line]
    for name, piece in found.items():
        if name != key:
            account.keep(piece.line, name, piece.value)
    account.lines = len(items) + len(found) - 1
    body = {name: piece.value for name, piece in found.items()}
    if key == "history":
        return _read_list(items, lines, account)
    try:
        conversation = account.dialects.get(_name_of(key, body, account.dialects)).read_request(body)
    except MessageError as error:
        raise _placed(error, lines, account.name) from None
    return _conversation(conversation, items, lines, account)


def _read_list(values: Sequence[Any], lines: Sequence[int], account: Account) -> Transcript:
    values = [_with_call_id(value) for value in values]
    try:
        speaking = account.dialects.recognise(values)
        messages = read_each(values, speaking.read, "messages")
    except MessageError as error:
        raise _placed(error, lines, account.name) from None
    return _transcript(speaking.name, messages, values, lines, account)


def _conversation(
    conversation: Conversation, items: Sequence[Any], lines: Sequence[int], account: Account
) -> Transcript:
    beside = len(conversation.messages) - len(items)
    model = conversation.extra.get("model")
    return _transcript(
        conversation.api or "neutral",
        conversation.messages[beside:],
        items,
        lines,
        account,
        system=conversation.messages[:beside],
        tools=conversation.tools,
        model=model if isinstance(model, str) else "",
    )


def _transcript(
    api: str,
    messages: Sequence[Message],
    values: Sequence[Any],
    lines: Sequence[int],
    account: Account,
    *,
    model: str = "",
    **beside: Any,  # noqa: ANN401 - more fields of a transcript
) -> Transcript:
    account.use("message", *lines)
    entries = tuple(
        Entry(
            message=message,
            lines=(line,),
            model=model if message.role == "assistant" else "",
            raw=(value,) if isinstance(value, dict) else (),
        )
        for message, line, value in zip(messages, lines, values, strict=True)
    )
    return Transcript(
        format=FORMAT,
        api=api,
        entries=entries,
        report=account.report(),
        asked=model,
        metadata=account.metadata,
        **beside,
    )


def _name_of(key: str, body: Mapping[str, Any], dialects: Dialects) -> str:
    if "nexus" in body:
        return "neutral"
    if key != "messages":
        return {"contents": "gemini", "input": "responses"}[key]
    return name_of_request(body, dialects) or UNTOLD


def name_of_request(body: Mapping[str, Any], dialects: Dialects) -> str:
    """The dialect of a request that has a list of `messages`; "" where nothing tells.

    Raises:
        MessageError: One of them is no message in any shape.
    """
    told = dialects.told(body["messages"])
    if told and told not in NAMES:
        return told
    # Chat has its instructions among the messages.
    defines = any("input_schema" in tool for tool in objects_in(body.get("tools")))
    return "anthropic" if "system" in body or defines else told


def _placed(error: MessageError, lines: Sequence[int], name: str) -> MessageError:
    """The same error with the line of the message it is about."""
    found = _PLACE.fullmatch(error.path)
    where = place(name, lines[int(found[1])]) if found else name
    path = ", ".join(filter(None, (where, error.path)))
    return MessageError(error.what, path=path, hint=error.hint, command=error.command)


def _with_call_id(value: Any) -> Any:  # noqa: ANN401 - an element of any list
    """A result with the id of its call, where a program keeps it in a list of its own (SWE-agent)."""
    if not isinstance(value, dict) or value.get("role") != "tool" or "tool_call_id" in value:
        return value
    ids = value.get("tool_call_ids")
    return value | {"tool_call_id": ids[0]} if isinstance(ids, list) and len(ids) == 1 else value
