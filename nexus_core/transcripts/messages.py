"""Reader for messages of any API: a list, a request, or one message per line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.calls import OUTPUT_TYPES
from nexus_core.dialects.registry import BUILT_IN_NAMES, DEFAULT_DIALECT_NAME
from nexus_core.dialects.requests import read_each
from nexus_core.dialects.responses import CLIENT_ITEM_ROLES
from nexus_core.errors import MessageError
from nexus_core.transcripts.base import (
    SCORE_NONE,
    SCORE_OWN,
    Transcript,
    TranscriptEntry,
    TranscriptFormat,
    find_text,
    format_location,
    list_objects,
    locate_elements,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.transcripts.base import JsonLine, LineAccount, LocatedValue
    from nexus_core.types.messages import Conversation, Message

FORMAT_NAME = "messages"
_LIST_KEYS = ("messages", "contents", "input", "history")
"""Keys of a message list in requests and in the files of programs."""
_ITEM_PATH = re.compile(r"(?:messages|contents|input|history)\[(\d+)\](.*)", re.DOTALL)


_ITEM_TYPES = frozenset(
    {
        *OUTPUT_TYPES,
        *OUTPUT_TYPES.values(),
        *CLIENT_ITEM_ROLES,
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
"""Types of Responses items without a role, both those that Nexus parses and those that stay opaque."""


def score_line(value: dict[str, Any]) -> int:
    """Score an object: a message, a Responses item, or a request with a list of them."""
    return SCORE_OWN if is_message(value) or has_message_list(value) else SCORE_NONE


def is_message(value: Mapping[str, Any]) -> bool:
    """Return True if the object is a message of an API, or an item of Responses."""
    return isinstance(value.get("role"), str) or is_known_responses_item(value)


def is_known_responses_item(value: Mapping[str, Any]) -> bool:
    """Return True if the object is a Responses item of a known type."""
    kind = value.get("type")
    return isinstance(kind, str) and (kind in _ITEM_TYPES or (kind == "message" and "content" in value))


def has_message_list(value: Mapping[str, Any]) -> bool:
    """Return True if the object has a list of messages."""
    if value.keys().isdisjoint(_LIST_KEYS):  # the most common case
        return False
    return any(isinstance(value.get(key), list) for key in _LIST_KEYS) or isinstance(value.get("input"), str)


def read_lines(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse a file with one message per line. Other lines are kept as metadata."""
    # Among Responses items, an item of an unknown type is part of the conversation; in other files it is metadata.
    has_items = any(is_known_responses_item(record.value) for record in records)
    find_plugin_dialect = account.dialects.offering
    found = [
        record
        for record in records
        if is_message(record.value) or (has_items and "type" in record.value) or find_plugin_dialect(record.value)
    ]
    numbers = {record.number for record in found}
    for record in records:
        if record.number not in numbers:
            account.keep(record.number, find_text(record.value, "type") or "untyped", record.value)
            account.note(record.number, "no message")
    values = [record.value for record in found]
    return _read_messages(values, [record.number for record in found], account)


def read_list(text: str, account: LineAccount, start: LocatedValue | None = None) -> Transcript:
    """Parse a JSON list of messages."""
    pieces = list(locate_elements(text, start))
    account.lines = len(pieces)
    return _read_messages([piece.value for piece in pieces], [piece.line for piece in pieces], account)


def read_request(text: str, found: Mapping[str, LocatedValue], account: LineAccount) -> Transcript:
    """Parse a request, or any object with a list of messages.

    Its other fields are kept as metadata.
    """
    key = next(key for key in _LIST_KEYS if key in found and isinstance(found[key].value, list | str))
    given = found[key].value
    items = given if isinstance(given, list) else [given]
    lines = (
        [piece.line for piece in locate_elements(text, found[key])] if isinstance(given, list) else [found[key].line]
    )
    for name, piece in found.items():
        if name != key:
            account.keep(piece.line, name, piece.value)
    account.lines = len(items) + len(found) - 1
    body = {name: piece.value for name, piece in found.items()}
    if key == "history":
        return _read_messages(items, lines, account)
    items = [_normalize_message(item) for item in items]
    body[key] = given if isinstance(given, str) else items
    try:
        name = _choose_dialect(key, body, account.dialects)
        if key == "messages" and name == "responses":  # Responses items, but not a Responses request
            return _read_messages(items, lines, account)
        conversation = account.dialects.get(name).read_request(body)
    except MessageError as error:
        raise _locate_error(error, lines, account.name) from None
    if len(conversation.messages) < len(items):  # a plugin's dialect merged messages, so lines are lost
        return _read_messages(items, lines, account)
    return _build_from_conversation(conversation, items, lines, account)


def _read_messages(values: Sequence[Any], lines: Sequence[int], account: LineAccount) -> Transcript:
    values = [_normalize_message(value) for value in values]
    try:
        dialect = account.dialects.recognise(values)
        messages = read_each(values, dialect.read, "messages")
    except MessageError as error:
        raise _locate_error(error, lines, account.name) from None
    return _build_transcript(dialect.name, messages, values, lines, account)


def _build_from_conversation(
    conversation: Conversation, items: Sequence[Any], lines: Sequence[int], account: LineAccount
) -> Transcript:
    system_count = len(conversation.messages) - len(items)
    model = conversation.extra.get("model")
    return _build_transcript(
        conversation.api or "neutral",
        conversation.messages[system_count:],
        items,
        lines,
        account,
        system=conversation.messages[:system_count],
        tools=conversation.tools,
        model=model if isinstance(model, str) else "",
    )


def _build_transcript(
    api: str,
    messages: Sequence[Message],
    values: Sequence[Any],
    lines: Sequence[int],
    account: LineAccount,
    *,
    model: str = "",
    **fields: Any,  # noqa: ANN401 - further fields of a transcript
) -> Transcript:
    account.use("message", *lines)
    entries = tuple(
        TranscriptEntry(
            message=message,
            lines=(line,),
            model=model if message.role == "assistant" else "",
            raw=(value,) if isinstance(value, dict) else (),
        )
        for message, line, value in zip(messages, lines, values, strict=True)
    )
    return Transcript(
        format=FORMAT_NAME,
        api=api,
        entries=entries,
        report=account.report(),
        asked=model,
        metadata=account.metadata,
        **fields,
    )


def _choose_dialect(key: str, body: Mapping[str, Any], dialects: DialectRegistry) -> str:
    if "nexus" in body:
        return "neutral"
    if key != "messages":
        return {"contents": "gemini", "input": "responses"}[key]
    return detect_request_dialect(body, dialects) or DEFAULT_DIALECT_NAME


def detect_request_dialect(body: Mapping[str, Any], dialects: DialectRegistry) -> str:
    """Return the dialect of a request with `messages`, "" if it is not conclusive.

    Raises:
        MessageError: An element is not a message in any dialect.
    """
    name = dialects.told(body["messages"])
    if name and name not in BUILT_IN_NAMES:
        return name
    # Chat Completions has neither a `system` field nor `input_schema`.
    has_anthropic_tools = any("input_schema" in tool for tool in list_objects(body.get("tools")))
    return "anthropic" if "system" in body or has_anthropic_tools else name


def _locate_error(error: MessageError, lines: Sequence[int], name: str) -> MessageError:
    """Return the error with the line of its message in the path."""
    found = _ITEM_PATH.fullmatch(error.path)
    location = format_location(name, lines[int(found[1])]) if found else name
    path = ", ".join(filter(None, (location, error.path)))
    return MessageError(error.what, path=path, hint=error.hint, command=error.command)


def _normalize_message(value: Any) -> Any:  # noqa: ANN401 - an element of any list
    """Return a message in an API's shape.

    Unambiguous deviations of known programs are corrected.
    """
    if not isinstance(value, dict):
        return value
    content, ids = value.get("content"), value.get("tool_call_ids")
    if isinstance(content, list) and any(isinstance(part, str) for part in content):  # texts without blocks
        parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
        value = value | {"content": parts}
    is_result = value.get("role") == "tool" and "tool_call_id" not in value
    if is_result and isinstance(ids, list) and len(ids) == 1:  # SWE-agent has the call id in a list
        value = value | {"tool_call_id": ids[0]}
    return value


FORMAT = TranscriptFormat(
    FORMAT_NAME, "a list of messages", score_line, read_lines=read_lines, read_document=read_request
)
