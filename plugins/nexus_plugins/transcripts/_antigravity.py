"""Reader for Antigravity: `brain/<id>/.system_generated/logs/transcript.jsonl` in its folder below `~/.gemini`.

A line is a step of the trajectory. `USER_INPUT` is the user, `PLANNER_RESPONSE` the model with its thinking and calls,
`CHECKPOINT` a compaction; other steps of the model are the results of tools.

Results do not name their call: they are paired in order. A result without a call gets one with the name of the step's
type. Arguments are kept as they are written: each value is JSON text. Long contents are cut by the program itself
(`truncated_fields`); a note tells the lines. The file does not contain the model, tokens, the directory and the tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.plugin import Reasoning, Text
from nexus_core.plugin.transcripts import (
    SCORE_NONE,
    SCORE_OWN,
    EntryCollector,
    TranscriptFormat,
    build_tool_call,
    build_tool_result,
    find_folder,
    find_text,
    list_objects,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.plugin import Part, ToolCall
    from nexus_core.plugin.transcripts import JsonLine, LineAccount, Transcript

NAME = "antigravity"
_SILENT_TYPES = ("CHECKPOINT", "CONVERSATION_HISTORY", "EPHEMERAL_MESSAGE")
_INJECTED_TYPES = ("SYSTEM_MESSAGE", "ERROR_MESSAGE")


def score_line(value: dict[str, Any]) -> int:
    """Score a step."""
    return SCORE_OWN if {"step_index", "source", "type", "status"} <= value.keys() else SCORE_NONE


def read_trajectory(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse a trajectory."""
    found = EntryCollector(NAME, account)
    pending: list[ToolCall] = []
    for record in records:
        value = record.value
        kind, text, time = find_text(value, "type"), find_text(value, "content"), find_text(value, "created_at")
        if value.get("truncated_fields"):
            found.note(record, "the program has cut its content")
        if kind == "USER_INPUT":
            pending = []
            found.add("user", text, record, time=time)
        elif kind == "PLANNER_RESPONSE" or value.get("tool_calls"):
            parts, pending = _read_response(record)
            found.add("assistant", parts, record, time=time, stop="tools" if pending else "")
        elif kind == "CHECKPOINT" and text:
            pending = []
            found.add_compaction(record, text, time=time)
        elif kind in _INJECTED_TYPES or (text and find_text(value, "source") == "SYSTEM"):
            found.add("user", text, record, kind="injected", time=time)
        elif not text:
            found.keep(record) if kind in _SILENT_TYPES else found.keep_unknown(record, kind or "untyped")
        else:
            _add_result(record, found, pending)
    is_own_folder = find_folder(account.name, "transcript.jsonl", 2) == ".system_generated"
    return found.build(id=find_folder(account.name, "transcript.jsonl", 3) if is_own_folder else "")


def _read_response(record: JsonLine) -> tuple[list[Part], list[ToolCall]]:
    value = record.value
    parts: list[Part] = []
    if thinking := find_text(value, "thinking"):
        parts.append(Reasoning(text=thinking, api=NAME))
    if text := find_text(value, "content"):
        parts.append(Text(text))
    calls = [
        build_tool_call(find_text(call, "id") or f"line-{record.number}-{index}", call.get("name"), call.get("args"))
        for index, call in enumerate(list_objects(value.get("tool_calls")), 1)
    ]
    return [*parts, *calls], calls


def _add_result(record: JsonLine, found: EntryCollector, pending: list[ToolCall]) -> None:
    value, time = record.value, find_text(record.value, "created_at")
    if pending:
        call = pending.pop(0)
    else:
        call = build_tool_call(f"line-{record.number}", find_text(value, "type").lower(), {})
        found.add("assistant", [call], record, time=time, stop="tools", merge=found.last_role == "assistant")
    is_error = find_text(value, "status") == "ERROR"
    found.add(
        "tool",
        [build_tool_result(call.id, value.get("content"), NAME, name=call.name, is_error=is_error)],
        record,
        time=time,
    )


FORMAT = TranscriptFormat(NAME, "an Antigravity trajectory", score_line, read_lines=read_trajectory)
