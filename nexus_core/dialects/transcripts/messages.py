"""Lists of messages of any API, alone, in a request, or one on each line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.finding import NAMES, UNTOLD
from nexus_core.dialects.requests import read_each
from nexus_core.dialects.responses.calls import OUTPUTS
from nexus_core.dialects.responses.reading import SENT_ITEMS
from nexus_core.dialects.transcripts.document import elements, place
from nexus_core.dialects.transcripts.lines import objects_in, word_in
from nexus_core.dialects.transcripts.recognition import NONE, OWN
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


_ITEMS = frozenset(
    {
        *OUTPUTS,
        *OUTPUTS.values(),
        *SENT_ITEMS,
        "code_interpreter_call",
        "compaction",
        "file_search_call",
        "image_generation_call",
        "mcp_approval_request",
        "mcp_call",
        "mcp_list_tools",
        "reasoning",
        "web_search_call",
    }
)
"""Types of items of Responses without a role, those that Nexus has a word for and those that it keeps whole."""


def score_line(value: dict[str, Any]) -> int:
    """Score an object: a message says who speaks, an item of Responses what it is, a request has a list of them."""
    return OWN if is_message(value) or is_request(value) else NONE


def is_message(value: Mapping[str, Any]) -> bool:
    """True if the object is a message of an API, or an item of Responses."""
    return isinstance(value.get("role"), str) or is_responses_item(value)


def is_responses_item(value: Mapping[str, Any]) -> bool:
    """True if the object is an item of Responses of a known type."""
    kind = value.get("type")
    return isinstance(kind, str) and (kind in _ITEMS or (kind == "message" and "content" in value))


def is_request(value: Mapping[str, Any]) -> bool:
    """True if an object holds a list of messages."""
    if value.keys().isdisjoint(_LISTS):  # most lines of most files
        return False
    return any(isinstance(value.get(key), list) for key in _LISTS) or isinstance(value.get("input"), str)


def read_lines(records: Sequence[Record], account: Account) -> Transcript:
    """A message on each line; lines that are none are kept as they are."""
    # An item of a new type is kept at its place among other items; elsewhere such a line says nothing to a model.
    has_items = any(is_responses_item(record.value) for record in records)
    offering = account.dialects.offering
    spoken = [
        record
        for record in records
        if is_message(record.value) or (has_items and "type" in record.value) or offering(record.value)
    ]
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
    items = [_normalized(item) for item in items]
    body[key] = given if isinstance(given, str) else items
    try:
        name = _name_of(key, body, account.dialects)
        if key == "messages" and name == "responses":  # its items in a list that its requests do not have
            return _read_list(items, lines, account)
        conversation = account.dialects.get(name).read_request(body)
    except MessageError as error:
        raise _placed(error, lines, account.name) from None
    if len(conversation.messages) < len(items):  # the dialect of a plugin that joins messages: nothing has its line
        return _read_list(items, lines, account)
    return _conversation(conversation, items, lines, account)


def _read_list(values: Sequence[Any], lines: Sequence[int], account: Account) -> Transcript:
    values = [_normalized(value) for value in values]
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


def _normalized(value: Any) -> Any:  # noqa: ANN401 - an element of any list
    """Return a message as APIs have it, where a program deviates in a way that has one meaning."""
    if not isinstance(value, dict):
        return value
    content, ids = value.get("content"), value.get("tool_call_ids")
    if isinstance(content, list) and any(isinstance(part, str) for part in content):  # texts without their type
        parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
        value = value | {"content": parts}
    is_result = value.get("role") == "tool" and "tool_call_id" not in value
    if is_result and isinstance(ids, list) and len(ids) == 1:  # the id of the call in a list of its own (SWE-agent)
        value = value | {"tool_call_id": ids[0]}
    return value
