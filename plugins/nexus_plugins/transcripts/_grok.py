"""Reader for Grok CLI: `~/.grok/sessions/<directory>/<id>/chat_history.jsonl`.

A line is a message, or the reasoning before it. Id and directory are the names of folders only.

Not in the file: times and tokens, which are in other files of the folder, and the tools. Reasoning is a summary with an
encrypted text that only xAI can read. Of tools that xAI runs itself (`backend_tool_call`) the file has the query, and
not what they found: the status is given as their result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from nexus_core import Message
from nexus_core.plugin import Reasoning, Text, ToolResult
from nexus_core.plugin.transcripts import (
    SCORE_NONE,
    SCORE_OWN,
    SCORE_SHARED,
    EntryCollector,
    TranscriptFormat,
    build_tool_call,
    build_tool_result,
    find_folder,
    find_object,
    find_text,
    list_objects,
    read_blocks,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.plugin import Part
    from nexus_core.plugin.transcripts import JsonLine, LineAccount, Transcript

NAME = "grok"
_OWN_KEYS = ("synthetic_reason", "prompt_index", "model_fingerprint", "prior_turn_interrupt")
_FILE = "chat_history.jsonl"


def score_line(value: dict[str, Any]) -> int:
    """Score a line."""
    kind = value.get("type")
    if "role" in value or "message" in value or "uuid" in value or "timestamp" in value:
        return SCORE_NONE
    if kind == "backend_tool_call" or (isinstance(kind, str) and not value.keys().isdisjoint(_OWN_KEYS)):
        return SCORE_OWN
    if kind == "tool_result":
        return SCORE_SHARED if "tool_call_id" in value else SCORE_NONE
    is_message = kind == "reasoning" or (kind in ("system", "user", "assistant") and "content" in value)
    return SCORE_SHARED if is_message else SCORE_NONE


def read_history(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse a chat history."""
    found = EntryCollector(NAME, account)
    system: list[Message] = []
    pending: list[tuple[JsonLine, Reasoning]] = []
    for record in records:
        value, kind = record.value, find_text(record.value, "type")
        if kind == "reasoning":
            pending.append((record, _read_reasoning(value)))
            continue
        if kind == "assistant":
            _add_reply(record, found, pending)
            pending = []
            continue
        _flush(found, pending)
        pending = []
        if kind == "system":
            if parts := read_blocks(value.get("content"), NAME):
                system.append(Message("system", parts))
            found.keep(record)
        elif kind == "user":
            is_injected = bool(find_text(value, "synthetic_reason"))
            found.add(
                "user", read_blocks(value.get("content"), NAME), record, kind="injected" if is_injected else "said"
            )
        elif kind == "tool_result":
            found.add("tool", [build_tool_result(value.get("tool_call_id"), value.get("content"), NAME)], record)
        elif kind == "backend_tool_call":
            _add_server_call(record, found)
        else:
            found.keep_unknown(record, kind or "untyped")
    _flush(found, pending)
    cwd = unquote(find_folder(account.name, _FILE, 2))
    is_own_folder = cwd.startswith("/") or cwd[1:3] == ":\\"
    name = find_folder(account.name, _FILE) if is_own_folder else ""
    return found.build(id=name, cwd=cwd if is_own_folder else "", system=tuple(system))


def _read_reasoning(value: dict[str, Any]) -> Reasoning:
    summary = "\n".join(find_text(each, "text") for each in list_objects(value.get("summary")))
    return Reasoning(
        text=summary or find_text(value, "text"), encrypted=find_text(value, "encrypted_content"), api=NAME
    )


def _flush(found: EntryCollector, pending: list[tuple[JsonLine, Reasoning]]) -> None:
    """Add reasoning after which no message follows, as in a turn that was interrupted."""
    for record, part in pending:
        if part.text or part.encrypted:
            found.add("assistant", [part], record)
        else:
            found.keep(record)


def _add_reply(record: JsonLine, found: EntryCollector, pending: list[tuple[JsonLine, Reasoning]]) -> None:
    value = record.value
    parts: list[Part] = [part for _, part in pending]
    inline = find_object(value, "reasoning")  # older versions
    if inline:
        parts.append(Reasoning(text=find_text(inline, "text"), encrypted=find_text(inline, "encrypted"), api=NAME))
    parts += read_blocks(value.get("content"), NAME)
    calls = list_objects(value.get("tool_calls"))
    for call in calls:
        function = find_object(call, "function") or call
        parts.append(build_tool_call(call.get("id"), function.get("name"), function.get("arguments")))
    found.add(
        "assistant",
        parts,
        record,
        model=find_text(value, "model_id"),
        stop="tools" if calls else "",
        also=[each for each, _ in pending],
    )


def _add_server_call(record: JsonLine, found: EntryCollector) -> None:
    body = find_object(record.value, "kind")
    name = find_text(body, "id") or f"line-{record.number}"
    call = build_tool_call(name, find_text(body, "tool_type") or "backend_tool", body.get("action"))
    found.add("assistant", [call], record, stop="tools")
    status = find_text(body, "status") or "completed"
    found.add("tool", [ToolResult(name, (Text(status),), call.name)], record)


FORMAT = TranscriptFormat(NAME, "a session of Grok CLI", score_line, read_lines=read_history)
