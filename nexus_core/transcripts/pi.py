"""Reader for pi: `~/.pi/agent/sessions/<directory>/<time>_<id>.jsonl`.

Entries form a tree; the path to the last entry is the conversation.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.fields import (
    describe_json_value,
    get_object,
    get_optional_text,
    get_text,
    omit_keys,
    prefix_error_path,
    require_object,
)
from nexus_core.dialects.responses import DIALECT as RESPONSES
from nexus_core.errors import MessageError
from nexus_core.transcripts.base import (
    SCORE_NONE,
    SCORE_OWN,
    SCORE_SHARED,
    JsonLine,
    Transcript,
    TranscriptCompaction,
    TranscriptEntry,
    TranscriptFormat,
    build_opaque_message,
    find_object,
    find_text,
    read_branches,
    require_shallow,
    trace_path,
    try_read,
)
from nexus_core.transcripts.pi_writer import WRITER
from nexus_core.types.messages import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.transcripts.base import EntryKind, LineAccount, LineOutcome, PathPosition
    from nexus_core.types.messages import Part, ResultPart, Role, Stop

FORMAT_NAME = "pi"

_DIALECT_NAMES = {
    "anthropic-messages": "anthropic",
    "openai-completions": "openai",
    "openai-responses": "responses",
    "google-generative-ai": "gemini",
}
_STOP_REASONS: dict[str, Stop] = {
    "stop": "end",
    "toolUse": "tools",
    "length": "length",
    "error": "error",
    "aborted": "error",
}


def read_message(body: dict[str, Any]) -> Message:
    """Parse a message of any of pi's roles.

    Raises:
        MessageError: The role or the shape is unknown.
    """
    role = get_text(body, "role")
    if role == "assistant":
        return Message("assistant", read_parts(body.get("content"), _DIALECT_NAMES.get(find_text(body, "api"), "")))
    if role == "toolResult":
        parts: Any = read_parts(body.get("content"))
        name, failed = get_optional_text(body, "toolName"), body.get("isError") is True
        return Message("tool", (ToolResult(get_text(body, "toolCallId"), parts, name, failed),))
    if role == "bashExecution":
        return Message("user", _describe_command(body))
    if role in ("user", "custom", "hookMessage"):
        return Message("user", read_parts(body.get("content")))
    if role in ("branchSummary", "compactionSummary"):
        return Message("user", get_text(body, "summary"))
    raise MessageError(f"unknown role {role!a}", path="role")


def read_parts(content: object, api: str = "") -> tuple[Part, ...]:
    """Parse the content of a message: a text, or a list of blocks."""
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, list):
        raise MessageError(f"expected text or a list of blocks, not {describe_json_value(content)}", path="content")
    require_shallow(content)
    parts = []
    for index, block in enumerate(content):
        try:
            parts.append(_read_part(require_object(block), api))
        except MessageError as error:
            raise prefix_error_path(f"content[{index}]", error) from None
    return tuple(parts)


def read_usage(body: dict[str, Any]) -> Usage | None:
    """Return the usage of a reply. Pi's `input` excludes cached tokens."""
    given = body.get("usage")
    if not isinstance(given, dict):
        return None
    fresh, written, cached, output = (_read_count(given, key) for key in ("input", "cacheWrite", "cacheRead", "output"))
    return Usage(
        input_tokens=fresh + written + cached,
        output_tokens=output,
        cached_input_tokens=cached,
        cache_write_tokens=written,
    )


def read_stop(body: dict[str, Any]) -> Stop:
    """Return the stop reason of a reply."""
    return _STOP_REASONS.get(find_text(body, "stopReason"), "")


def _read_part(block: dict[str, Any], api: str) -> Part:
    kind = get_text(block, "type")
    if kind == "text":
        return Text(get_text(block, "text"), omit_keys(block, "type", "text"))
    if kind == "image":
        return _read_image(block)
    if kind == "thinking":
        return _read_thinking(block, api)
    if kind == "toolCall":
        extra = omit_keys(block, "type", "id", "name", "arguments")
        return ToolCall(get_text(block, "id"), get_text(block, "name"), get_object(block, "arguments"), extra=extra)
    return Opaque(FORMAT_NAME, block)


def _read_image(block: dict[str, Any]) -> ResultPart:
    return Image(
        mime=get_optional_text(block, "mimeType"),
        data=get_text(block, "data"),
        extra=omit_keys(block, "type", "mimeType", "data"),
    )


def _read_thinking(block: dict[str, Any], api: str) -> Part:
    signature = get_optional_text(block, "thinkingSignature")
    if api == "responses" and signature.startswith("{"):  # the complete Responses item
        try:
            item = RESPONSES.read(json.loads(signature))
        except (ValueError, RecursionError, MessageError):
            pass
        else:
            return item.parts[0]
    text, rest = get_text(block, "thinking"), omit_keys(block, "type", "thinking", "thinkingSignature")
    if rest.get("redacted") is True:
        return Reasoning(encrypted=signature, api=api, extra=rest)
    return Reasoning(text=text, signature=signature, api=api, extra=rest)


def _describe_command(body: dict[str, Any]) -> str:
    """Return the text that pi sends to the model for a command that the user ran."""
    output = get_optional_text(body, "output")
    code = body.get("exitCode")
    exit_code = f"\n\nExit code {code}" if isinstance(code, int) and code else ""
    return f"Ran `{get_text(body, 'command')}`\n```\n{output}\n```{exit_code}"


def _read_count(value: dict[str, Any], key: str) -> int:
    found = value.get(key)
    return found if type(found) is int and found >= 0 else 0


_INJECTED_ROLES = ("bashExecution", "custom", "hookMessage")


class _PiMessage(NamedTuple):
    """A line's message in pi's shape, and the kind of its entry."""

    body: dict[str, Any]
    kind: EntryKind


class PiSessionReader:
    """Parses a session.

    Args:
        records: The session's lines.
        account: Collects the outcome of each line.
    """

    def __init__(self, records: Sequence[JsonLine], account: LineAccount) -> None:
        self._account = account
        self._records = records
        self._id = self._cwd = ""
        self._nodes: dict[str, JsonLine] = {}
        self._parents: dict[str, str] = {}
        self._names: dict[int, str] = {}
        self._positions: dict[str, PathPosition] = {}
        last = ""
        for index, record in enumerate(records):
            if record.value.get("type") == "session":
                self._id = self._id or find_text(record.value, "id")
                self._cwd = self._cwd or find_text(record.value, "cwd")
                account.keep(record.number, "session", record.value)
            else:
                last = self._add_node(index, record, last)
        self._last = last

    def read(self) -> Transcript:
        """Return the session: the path to the last entry, and branches."""
        entries, compactions = self._read_main(trace_path(self._last, self._parents))
        branches = read_branches(reversed(list(self._nodes)), self._parents, self._positions, self._read_branch)
        return Transcript(
            format=FORMAT_NAME,
            api="",
            entries=tuple(entries),
            report=self._account.report(),
            id=self._id,
            cwd=self._cwd,
            branches=branches,
            compactions=tuple(compactions),
            metadata=self._account.metadata,
        )

    def _add_node(self, index: int, record: JsonLine, last: str) -> str:
        """Add an entry to the tree and return its id.

        In old files each follows the one before.
        """
        value = record.value
        name = find_text(value, "id") or f"line {record.number}"
        if name in self._nodes:
            self._account.keep(record.number, "repeated", value, "skipped")
            self._account.note(record.number, f"the same id as in line {self._nodes[name].number}")
            return last
        parent = find_text(value, "parentId")
        if parent and parent not in self._nodes:
            self._account.note(record.number, "it follows something that is not in this file; taken in file order")
        is_first = value.get("parentId", "") is None
        self._nodes[name] = record
        self._names[index] = name
        self._parents[name] = parent if parent in self._nodes else "" if is_first else last
        return name

    def _read_main(self, path: Sequence[str]) -> tuple[list[TranscriptEntry], list[TranscriptCompaction]]:
        entries: list[TranscriptEntry] = []
        compactions: list[TranscriptCompaction] = []
        starts: dict[str, int] = {}
        for name in path:
            record = self._nodes[name]
            starts[name] = len(entries)
            if record.value.get("type") == "compaction":
                kept_from = starts.get(self._find_first_kept(record), len(entries))
                compactions.append(self._read_compaction(name, record, len(entries), kept_from))
            else:
                entries += self._read_entry(name, record, "message")
            self._positions[name] = (None, len(entries))
        return entries, compactions

    def _read_branch(self, path: Sequence[str]) -> tuple[list[TranscriptEntry], list[int]]:
        """Return the entries of a path, and for each id the number of entries up to it."""
        entries: list[TranscriptEntry] = []
        counts = []
        for name in path:
            entries += self._read_entry(name, self._nodes[name], "branch")
            counts.append(len(entries))
        return entries, counts

    def _read_entry(self, name: str, record: JsonLine, outcome: LineOutcome) -> Iterator[TranscriptEntry]:
        """Yield the entry of a line if it is a message. Other lines are kept as metadata."""
        value, body = record.value, find_object(record.value, "message")
        found = _find_message(value, body)
        if found is None:
            kind = find_text(value, "type") or "untyped"
            keep = self._account.keep if kind in _ENTRY_TYPES else self._account.keep_unknown
            keep(record.number, kind, value)
            return
        message = try_read(read_message, found.body, self._account, record.number) or build_opaque_message(
            _guess_role(found.body), FORMAT_NAME, found.body
        )
        self._account.use(outcome, record.number)
        yield TranscriptEntry(
            message=message,
            lines=(record.number,),
            ids=(name,) if find_text(value, "id") else (),
            parent=find_text(value, "parentId"),
            kind=found.kind,
            time=find_text(value, "timestamp"),
            model=find_text(body, "model"),
            reply=find_text(body, "responseId"),
            stop=read_stop(body),
            usage=read_usage(body),
            raw=(value,),
        )

    def _read_compaction(self, name: str, record: JsonLine, at: int, kept_from: int) -> TranscriptCompaction:
        value, summary = record.value, find_text(record.value, "summary")
        self._account.use("compaction", record.number)
        before = value.get("tokensBefore")
        entry = TranscriptEntry(
            message=Message("user", summary),
            lines=(record.number,),
            ids=(name,) if find_text(value, "id") else (),
            parent=find_text(value, "parentId"),
            kind="summary",
            time=find_text(value, "timestamp"),
            raw=(value,),
        )
        return TranscriptCompaction(
            line=record.number,
            at=at,
            kept_from=kept_from,
            summary=summary,
            context=(entry,),
            id=name,
            time=entry.time,
            tokens_before=before if type(before) is int else None,
            raw=value,
        )

    def _find_first_kept(self, record: JsonLine) -> str:
        index = record.value.get("firstKeptEntryIndex")  # in files without ids
        return self._names.get(index, "") if type(index) is int else find_text(record.value, "firstKeptEntryId")


def _find_message(value: dict[str, Any], body: dict[str, Any]) -> _PiMessage | None:
    kind = value.get("type")
    if kind == "custom_message":
        return _PiMessage({"role": "custom", "content": value.get("content")}, "injected")
    if kind == "branch_summary" and find_text(value, "summary"):
        return _PiMessage({"role": "branchSummary", "summary": value["summary"]}, "branch-summary")
    if kind != "message" or not body or body.get("excludeFromContext") is True:
        return None
    return _PiMessage(body, "injected" if body.get("role") in _INJECTED_ROLES else "said")


def _guess_role(body: dict[str, Any]) -> Role:
    speakers: dict[str, Role] = {"assistant": "assistant", "toolResult": "tool"}
    return speakers.get(find_text(body, "role"), "user")


_ENTRY_TYPES = (
    "branch_summary",
    "compaction",
    "custom",
    "custom_message",
    "label",
    "message",
    "model_change",
    "session_info",
    "thinking_level_change",
)


def score_line(value: dict[str, Any]) -> int:
    """Score a line: the header of a file, an entry of the tree, or a message."""
    kind = value.get("type")
    if kind == "session":
        return SCORE_OWN if "id" in value and "timestamp" in value else SCORE_NONE
    if kind in _ENTRY_TYPES and ("parentId" in value or (kind == "message" and "message" in value)):
        return SCORE_OWN
    return SCORE_SHARED if isinstance(kind, str) and "parentId" in value else SCORE_NONE


def read_session(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse a session."""
    return PiSessionReader(records, account).read()


FORMAT = TranscriptFormat(FORMAT_NAME, "a session of pi", score_line, read_lines=read_session, writer=WRITER)
