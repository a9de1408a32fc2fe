"""Reader for Cursor: `agent-transcripts/<id>/<id>.jsonl` of a project, and the database `state.vscdb` of its chats.

A line of a transcript is a message with `role` and `message.content`, in blocks of Anthropic. The database has one
value for each chat (`composerData:<id>`) and one for each message (`bubbleId:<chat>:<message>`); each chat becomes a
document.

Not in a transcript: the results of tool calls, ids of calls, times, the model, tokens. The directory is only in the
name of the folder, with every separator replaced, so it cannot be told. What Cursor still has in the database's
write-ahead log is not read, and neither are the files and rules that it sent along.
"""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from nexus_core.plugin import Reasoning, Text, ToolCall, ToolResult
from nexus_core.plugin.transcripts import (
    SCORE_NONE,
    SCORE_OWN,
    SCORE_SHARED,
    EntryCollector,
    JsonLine,
    TranscriptFormat,
    build_tool_call,
    build_tool_result,
    find_object,
    find_text,
    list_objects,
    read_blocks,
    read_document_records,
    read_time,
)
from nexus_plugins.transcripts._databases import open_database
from nexus_plugins.transcripts._pieces import parse_piece

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nexus_core.plugin import Part
    from nexus_core.plugin.transcripts import LineAccount, LocatedValue, Transcript

NAME = "cursor"
_USER_BUBBLE, _REPLY_BUBBLE = 1, 2


def score_line(value: dict[str, Any]) -> int:
    """Score a line of a transcript, or the document of a chat."""
    if "composerId" in value and isinstance(value.get("messages"), list):
        return SCORE_OWN
    if value.get("type") == "turn_ended":
        return SCORE_SHARED
    is_nested = isinstance(value.get("role"), str) and isinstance(value.get("message"), dict)
    return SCORE_OWN if is_nested and "content" not in value and "type" not in value else SCORE_NONE


def read_lines(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse a transcript of the agent."""
    found = EntryCollector(NAME, account)
    for record in records:
        value = record.value
        body = find_object(value, "message")
        if not body:
            kind = find_text(value, "type") or "untyped"
            found.keep(record, kind) if kind == "turn_ended" else found.keep_unknown(record, kind)
            continue
        role = found.find_role(record, find_text(value, "role"))
        parts = [
            # The importer pairs calls with results by id, and these have none.
            part if not isinstance(part, ToolCall) or part.id else _with_id(part, f"line-{record.number}-{index}")
            for index, part in enumerate(read_blocks(body.get("content"), NAME), 1)
        ]
        results = [part for part in parts if isinstance(part, ToolResult)]
        others = [part for part in parts if not isinstance(part, ToolResult)]
        time = read_time(value.get("timestamp"))
        if results:
            found.add("tool", results, record, time=time)
        if others or not results:
            found.add(role, others, record, time=time)
    path = PurePath(account.name)
    is_named = path.suffix == ".jsonl" and path.stem == path.parent.name
    return found.build(id=path.stem if is_named else "")


def _with_id(call: ToolCall, name: str) -> ToolCall:
    return ToolCall(name, call.name, call.arguments, call.raw, call.extra)


def read_document(text: str, found: Mapping[str, LocatedValue], account: LineAccount) -> Transcript:
    """Parse a chat of the database."""
    header, records = read_document_records(text, found, "messages", account)
    collector = EntryCollector(NAME, account)
    collector.keep(header, "header")
    for record in records:
        _add_bubble(record, collector)
    return collector.build(id=find_text(header.value, "composerId"), asked=find_text(header.value, "model"))


def _add_bubble(record: JsonLine, found: EntryCollector) -> None:
    value = record.value
    kind, time = value.get("type"), read_time(value.get("createdAt"))
    name = find_text(value, "bubbleId")
    parts: list[Part] = []
    if thought := find_text(find_object(value, "thinking"), "text"):
        signature = find_text(find_object(value, "thinking"), "signature")
        parts.append(Reasoning(text=thought, signature=signature, api=NAME))
    if text := find_text(value, "text"):
        parts.append(Text(text))
    if kind == _USER_BUBBLE:
        found.add("user", parts, record, id=name, time=time)
        return
    if kind != _REPLY_BUBBLE:
        found.keep_unknown(record, f"bubble of type {kind}")
        return
    tool = find_object(value, "toolFormerData")
    if not tool:
        found.add("assistant", parts, record, id=name, time=time)
        return
    call_id = find_text(tool, "toolCallId") or name or f"line-{record.number}"
    arguments = tool.get("rawArgs") or tool.get("params")
    parts.append(build_tool_call(call_id, tool.get("name") or tool.get("tool"), arguments))
    found.add("assistant", parts, record, id=name, time=time, stop="tools")
    content = tool.get("result") if tool.get("result") is not None else tool.get("error")
    if content is not None:
        failed = find_text(tool, "status") == "error"
        found.add(
            "tool",
            [build_tool_result(call_id, content, NAME, name=find_text(tool, "name"), is_error=failed)],
            record,
            time=time,
        )


def gather_files(path: Path) -> str | None:
    """Return the chats of a database as a list of documents."""
    if path.name != "state.vscdb":
        return None
    with open_database(path, "cursorDiskKV") as database:
        if database is None:
            return None
        documents = []
        seen: set[str] = set()
        for _key, text in database.read_pairs("cursorDiskKV", "composerData:"):
            chat = parse_piece(text)
            name = find_text(chat, "composerId")
            if not name or name in seen:
                continue
            seen.add(name)
            bubbles = list_objects(chat.get("conversation"))
            headers = [find_text(each, "bubbleId") for each in list_objects(chat.get("fullConversationHeadersOnly"))]
            if not bubbles and headers:
                stored = dict(database.read_pairs("cursorDiskKV", f"bubbleId:{name}:"))
                bubbles = [parse_piece(stored.get(f"bubbleId:{name}:{each}", "")) for each in dict.fromkeys(headers)]
            if any(bubbles):
                about: dict[str, Any] = {key: chat[key] for key in ("composerId", "name", "createdAt") if key in chat}
                model = find_text(find_object(chat, "modelConfig"), "modelName")
                shown = [each for each in bubbles if each]
                documents.append(about | {"model": model, "messages": shown})
    return json.dumps(documents, ensure_ascii=False)


FORMAT = TranscriptFormat(
    NAME,
    "a Cursor agent transcript",
    score_line,
    read_lines=read_lines,
    read_document=read_document,
    gather_files=gather_files,
)
