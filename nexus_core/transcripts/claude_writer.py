"""Writer for Claude Code: `~/.claude/projects/<directory>/<session>.jsonl`.

Each message is a line that names the line before it. A compaction is a boundary and a summary; the boundary names the
first and the last message that Claude Code still sends.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.anthropic import DIALECT
from nexus_core.transcripts.writer import (
    PortableMessage,
    PortableReply,
    ResumeHint,
    TranscriptWriter,
    format_iso_time,
    format_json_lines,
)
from nexus_core.types.messages import Image, Message

if TYPE_CHECKING:
    from nexus_core.transcripts.writer import ExportReport, PortableCompaction, PortableConversation
    from nexus_core.types.messages import File, Usage

_VERSION = "2.1.0"
"""The version of Claude Code whose lines these are."""
_STOP_REASONS = {"tools": "tool_use", "length": "max_tokens", "refusal": "refusal", "pause": "pause_turn"}
_IMAGE_MIMES = ("image/gif", "image/jpeg", "image/png", "image/webp")
_DOCUMENT_MIMES = ("application/pdf", "text/plain")


def write_session(conversation: PortableConversation, report: ExportReport) -> str:
    """Return the lines of a session."""
    return _ClaudeSessionWriter(conversation, report).write()


def locate_session(conversation: PortableConversation) -> ResumeHint:
    """Return the file of a session, in the directory of the project."""
    directory = re.sub(r"[^A-Za-z0-9]", "-", conversation.cwd)
    session = conversation.derive_uuid("claude-code")
    return ResumeHint(f"~/.claude/projects/{directory}/{session}.jsonl", f"claude --resume {session}")


class _ClaudeSessionWriter:
    def __init__(self, conversation: PortableConversation, report: ExportReport) -> None:
        self._conversation = conversation
        self._report = report
        self._session = conversation.derive_uuid("claude-code")
        self._lines: list[dict[str, Any]] = []
        self._last: str | None = None
        self._item_ids: list[tuple[str, str]] = []  # ids of the first and the last line of each item

    def write(self) -> str:
        for item in self._conversation.items:
            first, lines = self._next_id(), len(self._lines)
            if isinstance(item, PortableMessage):
                self._add_message(item)
            elif isinstance(item, PortableReply):
                self._add_reply(item)
            else:
                self._add_compaction(item)
            last = self._last or first
            self._item_ids.append((first if len(self._lines) > lines else last, last))
        return format_json_lines(self._lines)

    def _next_id(self) -> str:
        return self._conversation.derive_uuid("claude-code", len(self._lines))

    def _add_line(self, kind: str, time: int, fields: dict[str, Any]) -> None:
        name = self._next_id()
        line = {
            "parentUuid": self._last,
            "isSidechain": False,
            "userType": "external",
            "cwd": self._conversation.cwd,
            "sessionId": self._session,
            "version": _VERSION,
            "gitBranch": "",
            "type": kind,
            "uuid": name,
            "timestamp": format_iso_time(time),
        }
        self._lines.append({**line, **fields})
        self._last = name

    def _write_body(self, message: Message) -> dict[str, Any] | None:
        """Return a message of the API, None if it would be empty: it has only blocks that the API rejects."""
        bodies: list[dict[str, Any]] = DIALECT.write([message])
        if not bodies:
            self._report.count_left_out("block", len(message.parts))
        return bodies[0] if bodies else None

    def _add_message(self, item: PortableMessage) -> None:
        body = self._write_body(Message("user", item.parts))
        if body is None:
            return
        fields = {"message": body}
        self._add_line("user", item.time, fields if item.kind == "said" else {**fields, "isMeta": True})

    def _add_reply(self, item: PortableReply) -> None:
        body = self._write_body(Message("assistant", item.parts, api=item.api))
        if body is None:
            return
        name = self._conversation.derive_hex(24, "reply", len(self._lines))
        message: dict[str, Any] = {
            "id": f"msg_{name}",
            "type": "message",
            "role": "assistant",
            "model": item.model or "<synthetic>",
            "content": _list_blocks(body["content"]),
            "stop_reason": _STOP_REASONS.get(item.stop, "end_turn"),
            "stop_sequence": None,
        }
        if item.usage is not None:  # a count of 0 would be taken for the provider's
            message["usage"] = _write_usage(item.usage)
        self._add_line("assistant", item.time, {"message": message})
        if item.results:
            (answer,) = DIALECT.write([Message("tool", item.results)])
            self._add_line("user", item.time, {"message": answer})

    def _add_compaction(self, item: PortableCompaction) -> None:
        kept = self._item_ids[item.kept_from :]
        metadata: dict[str, Any] = {"trigger": "manual", "preTokens": item.tokens_before or 0}
        if kept:
            anchor = self._conversation.derive_uuid("claude-code", len(self._lines) + 1)  # the summary
            metadata["preservedSegment"] = {
                "headUuid": kept[0][0],
                "anchorUuid": anchor,
                "tailUuid": kept[-1][1],
            }
        boundary = {
            "parentUuid": None,
            "logicalParentUuid": self._last,
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": False,
            "level": "info",
            "compactMetadata": metadata,
        }
        self._add_line("system", item.time, boundary)
        summary = {
            "message": {"role": "user", "content": item.summary},
            "isCompactSummary": True,
            "isVisibleInTranscriptOnly": True,
        }
        self._add_line("user", item.time, summary)


def _list_blocks(content: object) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _write_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": max(usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens, 0),
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_input_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": max(usage.cache_write_tokens - usage.cache_write_1h_tokens, 0),
            "ephemeral_1h_input_tokens": usage.cache_write_1h_tokens,
        },
        "output_tokens": usage.output_tokens,
    }


def _accepts(part: Image | File) -> bool:
    mimes = _IMAGE_MIMES if isinstance(part, Image) else _DOCUMENT_MIMES
    return part.mime in mimes if part.data else part.url.startswith("https://")


WRITER = TranscriptWriter(
    write_session,
    locate_session,
    reasoning_apis=frozenset({"anthropic"}),
    block_apis=frozenset({"anthropic"}),
    needs_signature=True,
    accepts=_accepts,
    writes_cost=False,
)
