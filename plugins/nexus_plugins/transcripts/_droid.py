"""Reader for Droid: `~/.factory/sessions/<directory>/<id>.jsonl`, and the stream of `droid exec`.

A session has a header (`session_start`) and messages in the format of Anthropic, each with the id of the one before.
The stream has one line for each message, tool call and result, and the final text again in `completion`.

Not in a session: model and tokens of a reply, which are in a settings file beside it; the system prompt; the tools. The
stream does not contain the reasoning.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nexus_core.plugin import Text, ToolCall, ToolResult
from nexus_core.plugin.transcripts import (
    SCORE_NONE,
    SCORE_OWN,
    SCORE_SHARED,
    EntryCollector,
    TranscriptFormat,
    build_tool_call,
    build_tool_result,
    find_object,
    find_text,
    read_blocks,
    read_time,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.plugin.transcripts import JsonLine, LineAccount, Transcript

NAME = "droid"
_STREAM_KEYS = ("toolCallId", "finalText", "text")
_KNOWN_TYPES = ("todo_state", "session_end", "system", "error", "session_title", "session_settings")


def score_line(value: dict[str, Any]) -> int:
    """Score a line of a session or of the stream."""
    kind = value.get("type")
    if kind == "session_start":
        return SCORE_OWN if "id" in value else SCORE_NONE
    if "session_id" in value and isinstance(kind, str) and "message" not in value:
        return SCORE_OWN if any(key in value for key in _STREAM_KEYS) else SCORE_SHARED
    is_message = kind == "message" and isinstance(value.get("message"), dict) and "id" in value
    return SCORE_SHARED if is_message or kind in ("todo_state", "compaction_state") else SCORE_NONE


def read_session(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse a session or a stream."""
    found = EntryCollector(NAME, account)
    fields: dict[str, str] = {"id": "", "cwd": "", "asked": ""}
    for record in records:
        value, kind = record.value, find_text(record.value, "type")
        fields["id"] = fields["id"] or find_text(value, "session_id")
        fields["cwd"] = fields["cwd"] or find_text(value, "cwd")
        fields["asked"] = fields["asked"] or find_text(value, "model")
        if kind == "session_start":
            fields["id"] = find_text(value, "id") or fields["id"]
            found.keep(record)
        elif kind == "message":
            _read_message(record, found)
        elif kind in ("tool_call", "reasoning"):
            _read_call(record, found)
        elif kind == "tool_result":
            _read_result(record, found)
        elif kind == "completion":
            _read_completion(record, found)
        elif kind == "compaction_state" and find_text(value, "summaryText"):
            found.add_compaction(record, find_text(value, "summaryText"), time=read_time(value.get("timestamp")))
        elif kind in _KNOWN_TYPES:
            found.keep(record)
        else:
            found.keep_unknown(record, kind or "untyped")
    return found.build(**fields)


def _read_message(record: JsonLine, found: EntryCollector) -> None:
    value = record.value
    body = find_object(value, "message") or value
    role = found.find_role(record, find_text(body, "role"))
    content = body.get("content") if "content" in body else body.get("text")
    parts = read_blocks(content, NAME)
    results = [part for part in parts if isinstance(part, ToolResult)]
    others = [part for part in parts if not isinstance(part, ToolResult)]
    name, time = find_text(value, "id"), read_time(value.get("timestamp"))
    if results:
        found.add("tool", results, record, id=name, time=time)
    if others or not results:
        has_calls = any(isinstance(part, ToolCall) for part in others)
        found.add(
            role,
            others,
            record,
            id="" if results else name,
            time=time,
            model=find_text(body, "model") if role == "assistant" else "",
            stop="tools" if has_calls else "",
        )


def _read_call(record: JsonLine, found: EntryCollector) -> None:
    value, time = record.value, read_time(record.value.get("timestamp"))
    if value.get("type") == "reasoning":
        found.add(
            "assistant", read_blocks({"type": "reasoning", "text": find_text(value, "text")}, NAME), record, time=time
        )
        return
    call = build_tool_call(value.get("toolCallId") or value.get("id"), value.get("toolName"), value.get("parameters"))
    found.add("assistant", [call], record, time=time, stop="tools", merge=True)


def _read_result(record: JsonLine, found: EntryCollector) -> None:
    value = record.value
    given = (
        value.get("value") if value.get("value") is not None else find_object(value, "error") or value.get("content")
    )
    content = json.dumps(given, ensure_ascii=False) if isinstance(given, dict | list) else given
    result = build_tool_result(
        value.get("toolCallId"), content, NAME, name=find_text(value, "toolName"), is_error=value.get("isError") is True
    )
    found.add("tool", [result], record, time=read_time(value.get("timestamp")))


def _read_completion(record: JsonLine, found: EntryCollector) -> None:
    text = find_text(record.value, "finalText")
    if not text:
        found.keep(record)
    elif found.has_text("assistant", text):
        found.mirror(record)
    else:
        found.add("assistant", [Text(text)], record, time=read_time(record.value.get("timestamp")), stop="end")


FORMAT = TranscriptFormat(NAME, "a session of Droid", score_line, read_lines=read_session)
