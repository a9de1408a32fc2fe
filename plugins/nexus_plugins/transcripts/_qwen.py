"""Reader for Qwen Code: `~/.qwen/projects/<directory>/chats/<id>.jsonl`.

A line is a record with `uuid` and `parentUuid`; the path to the last one is the conversation. Messages have the format
of Gemini. A record `system` with the subtype `chat_compression` has the history that the model read from then on.

Not in the file: the system prompt and the tools. Sessions of older versions, in `~/.qwen/tmp`, have the format of
Gemini CLI, and are read as such.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core import Usage, get_dialect
from nexus_core.plugin.transcripts import (
    SCORE_NONE,
    SCORE_OWN,
    SCORE_SHARED,
    Transcript,
    TranscriptCompaction,
    TranscriptEntry,
    TranscriptFormat,
    build_opaque_message,
    find_object,
    find_text,
    is_shallow,
    list_objects,
    read_branches,
    read_count,
    trace_path,
    try_read,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core import Message
    from nexus_core.plugin import Role
    from nexus_core.plugin.transcripts import JsonLine, LineAccount, PathPosition

NAME = "qwen"
_MESSAGE_TYPES = ("user", "assistant", "tool_result")


def score_line(value: dict[str, Any]) -> int:
    """Score a record."""
    if "uuid" not in value or "sessionId" not in value:
        return SCORE_NONE
    message = find_object(value, "message")
    if "systemPayload" in value or (isinstance(message.get("parts"), list) and "content" not in message):
        return SCORE_OWN
    return SCORE_NONE if message else SCORE_SHARED


def read_session(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse a session."""
    return _QwenReader(records, account).read()


class _QwenReader:
    def __init__(self, records: Sequence[JsonLine], account: LineAccount) -> None:
        self._account = account
        self._nodes: dict[str, JsonLine] = {}
        self._parents: dict[str, str] = {}
        last = ""
        for record in records:
            name = find_text(record.value, "uuid") or f"line {record.number}"
            if name in self._nodes:
                account.keep(record.number, "repeated", record.value, "skipped")
                account.note(record.number, f"the same id as in line {self._nodes[name].number}")
                continue
            parent = find_text(record.value, "parentUuid")
            is_first = record.value.get("parentUuid", "") is None
            if parent and parent not in self._nodes:
                account.note(record.number, "it follows something that is not in this file; taken in file order")
            self._nodes[name] = record
            self._parents[name] = parent if parent in self._nodes else "" if is_first else last
            last = name
        self._last = last

    def read(self) -> Transcript:
        entries: list[TranscriptEntry] = []
        compactions: list[TranscriptCompaction] = []
        positions: dict[str, PathPosition] = {}
        for name in trace_path(self._last, self._parents):
            record = self._nodes[name]
            history = list_objects(find_object(record.value, "systemPayload").get("compressedHistory"))
            if history:
                compactions.append(self._read_compaction(record, history, len(entries)))
            else:
                entries += self._read_entry(record, is_branch=False)
            positions[name] = None, len(entries)
        branches = read_branches(list(self._nodes)[::-1], self._parents, positions, self._read_branch)
        values = [record.value for record in self._nodes.values()]
        return Transcript(
            format=NAME,
            api="gemini",
            entries=tuple(entries),
            report=self._account.report(),
            id=next((found for value in values if (found := find_text(value, "sessionId"))), ""),
            cwd=next((found for value in values if (found := find_text(value, "cwd"))), ""),
            branches=branches,
            compactions=tuple(compactions),
            metadata=self._account.metadata,
        )

    def _read_branch(self, path: Sequence[str]) -> tuple[list[TranscriptEntry], list[int]]:
        entries: list[TranscriptEntry] = []
        counts = []
        for name in path:
            entries += self._read_entry(self._nodes[name], is_branch=True)
            counts.append(len(entries))
        return entries, counts

    def _read_entry(self, record: JsonLine, *, is_branch: bool) -> list[TranscriptEntry]:
        value, body = record.value, find_object(record.value, "message")
        kind, subtype = find_text(value, "type"), find_text(value, "subtype")
        if kind not in _MESSAGE_TYPES or not body.get("parts"):
            is_known = kind in (*_MESSAGE_TYPES, "system")
            keep = self._account.keep if is_known else self._account.keep_unknown
            keep(record.number, f"{kind}/{subtype}" if subtype else kind or "untyped", value)
            return []
        role: Role = "assistant" if kind == "assistant" else "user"
        message = self._read_message(body, role, record.number)
        self._account.use("branch" if is_branch else "message", record.number)
        return [
            TranscriptEntry(
                message=message,
                lines=(record.number,),
                ids=(find_text(value, "uuid"),) if find_text(value, "uuid") else (),
                parent=find_text(value, "parentUuid"),
                kind="injected" if kind == "user" and subtype else "said",
                time=find_text(value, "timestamp"),
                model=find_text(value, "model") if kind == "assistant" else "",
                stop="tools" if message.tool_calls else "",
                usage=_read_usage(value) if kind == "assistant" else None,
                raw=(value,),
            )
        ]

    def _read_message(self, body: dict[str, Any], role: Role, line: int) -> Message:
        content = {"role": "model" if role == "assistant" else "user", "parts": body.get("parts")}
        found = try_read(get_dialect("gemini").read, content, self._account, line) if is_shallow(content) else None
        return found or build_opaque_message(role, NAME, body)

    def _read_compaction(self, record: JsonLine, history: list[dict[str, Any]], at: int) -> TranscriptCompaction:
        self._account.use("compaction", record.number)
        context = [
            TranscriptEntry(
                message=self._read_message(each, "assistant" if each.get("role") == "model" else "user", record.number),
                lines=(record.number,),
                kind="said" if index else "summary",
            )
            for index, each in enumerate(history)
        ]
        return TranscriptCompaction(
            line=record.number,
            at=at,
            kept_from=at,
            summary=context[0].message.content,
            context=tuple(context),
            id=find_text(record.value, "uuid"),
            time=find_text(record.value, "timestamp"),
            raw=record.value,
        )


def _read_usage(value: dict[str, Any]) -> Usage | None:
    given = find_object(value, "usageMetadata")
    if not given:
        return None
    thoughts = read_count(given.get("thoughtsTokenCount"))
    return Usage(
        input_tokens=read_count(given.get("promptTokenCount")),
        output_tokens=read_count(given.get("candidatesTokenCount")) + thoughts,
        cached_input_tokens=read_count(given.get("cachedContentTokenCount")),
        reasoning_tokens=thoughts,
    )


FORMAT = TranscriptFormat(NAME, "a session of Qwen Code", score_line, read_lines=read_session)
