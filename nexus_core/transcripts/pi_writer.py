"""Writer for pi: `~/.pi/agent/sessions/<directory>/<time>_<id>.jsonl`.

Each entry names the entry before it, and each tool result is an entry. pi itself decides which reasoning it sends to
which model, by the API and the model of the reply.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.responses import DIALECT as RESPONSES
from nexus_core.tokens.prices import Cost
from nexus_core.transcripts.writer import (
    PortableMessage,
    PortableReply,
    ResumeHint,
    TranscriptWriter,
    format_iso_time,
    format_json,
    format_json_lines,
    is_image_data,
    write_arguments,
)
from nexus_core.types.messages import Image, Message, Reasoning, Text, ToolCall, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.transcripts.writer import ExportReport, PortableCompaction, PortableConversation, ReplyPart
    from nexus_core.types.messages import Part, ToolResult

_VERSION = 3
_APIS = {
    "anthropic": ("anthropic-messages", "anthropic"),
    "openai": ("openai-completions", "openai"),
    "responses": ("openai-responses", "openai"),
    "gemini": ("google-generative-ai", "google"),
}
"""pi's names of the API and of the provider, by dialect."""
_STOP_REASONS = {"tools": "toolUse", "length": "length", "error": "error", "broken": "aborted"}


def write_session(conversation: PortableConversation, report: ExportReport) -> str:
    """Return the lines of a session."""
    return _PiSessionWriter(conversation, report).write()


def locate_session(conversation: PortableConversation) -> ResumeHint:
    """Return the file of a session, in the directory of its working directory."""
    directory = re.sub(r"[/\\:]", "-", re.sub(r"^[/\\]", "", conversation.cwd))
    session, time = conversation.derive_uuid("pi"), re.sub(r"[:.]", "-", format_iso_time(conversation.started))
    file = f"~/.pi/agent/sessions/--{directory}--/{time}_{session}.jsonl"
    return ResumeHint(file, "pi --session FILE")


class _PiSessionWriter:
    def __init__(self, conversation: PortableConversation, report: ExportReport) -> None:
        self._conversation = conversation
        self._report = report
        self._lines: list[dict[str, Any]] = []
        self._last: str | None = None
        self._item_ids: list[str] = []  # of the first entry of each item

    def write(self) -> str:
        conversation = self._conversation
        self._lines.append(
            {
                "type": "session",
                "version": _VERSION,
                "id": conversation.derive_uuid("pi"),
                "timestamp": format_iso_time(conversation.started),
                "cwd": conversation.cwd,
            }
        )
        for item in conversation.items:
            self._item_ids.append(self._next_id())
            if isinstance(item, PortableMessage):
                self._add_message(item)
            elif isinstance(item, PortableReply):
                self._add_reply(item)
            else:
                self._add_compaction(item)
        return format_json_lines(self._lines)

    def _next_id(self) -> str:
        # pi's own ids have eight digits; a longer one cannot occur twice in a long session.
        return self._conversation.derive_hex(16, "pi", len(self._lines))

    def _add_line(self, kind: str, time: int, fields: dict[str, Any]) -> None:
        name = self._next_id()
        line = {"type": kind, "id": name, "parentId": self._last, "timestamp": format_iso_time(time)}
        self._lines.append({**line, **fields})
        self._last = name

    def _add_message(self, item: PortableMessage) -> None:
        content = _write_parts(item.parts)
        if item.kind == "said":
            message = {"role": "user", "content": content, "timestamp": item.time}
            self._add_line("message", item.time, {"message": message})
        else:
            self._add_line("custom_message", item.time, {"customType": "nexus", "content": content, "display": True})

    def _add_reply(self, item: PortableReply) -> None:
        api, provider = _APIS.get(item.api, ("openai-completions", "unknown"))
        message = {
            "role": "assistant",
            "content": [self._write_reply_part(part) for part in item.parts],
            "api": api,
            "provider": provider,
            "model": item.model,
            "usage": _write_usage(item.usage or Usage(), item.cost),
            "stopReason": _STOP_REASONS.get(item.stop, "stop"),
            "timestamp": item.time,
        }
        self._add_line("message", item.time, {"message": message})
        for result in item.results:
            self._add_line("message", item.time, {"message": _write_result(result, item.time)})

    def _write_reply_part(self, part: ReplyPart) -> dict[str, Any]:
        if isinstance(part, ToolCall):
            arguments = write_arguments(part, self._report)
            return {"type": "toolCall", "id": part.id, "name": part.name, "arguments": arguments}
        if isinstance(part, Reasoning):
            return _write_reasoning(part)
        return {"type": "text", "text": part.text if isinstance(part, Text) else ""}

    def _add_compaction(self, item: PortableCompaction) -> None:
        fields = {
            "summary": item.summary,
            "firstKeptEntryId": [*self._item_ids][item.kept_from],  # its own id if nothing is kept
            "tokensBefore": item.tokens_before or 0,
        }
        self._add_line("compaction", item.time, fields)


def _write_parts(parts: Iterable[Part]) -> list[dict[str, Any]]:
    found = []
    for part in parts:
        if isinstance(part, Text):
            found.append({"type": "text", "text": part.text})
        elif isinstance(part, Image):
            found.append({"type": "image", "data": part.data, "mimeType": part.mime or "image/png"})
    return found


def _write_result(result: ToolResult, time: int) -> dict[str, Any]:
    return {
        "role": "toolResult",
        "toolCallId": result.call_id,
        "toolName": result.name,
        "content": _write_parts(result.parts),
        "isError": result.is_error,
        "timestamp": time,
    }


def _write_reasoning(part: Reasoning) -> dict[str, Any]:
    """Return a block of reasoning. Its signature is, for the Responses API, the whole item."""
    block: dict[str, Any] = {"type": "thinking", "thinking": part.text}
    if part.api == "responses":
        items = RESPONSES.write([Message("assistant", (part,), api=part.api)])
        return {**block, "thinkingSignature": format_json(items[0])} if items else block
    if part.encrypted:
        return {**block, "thinkingSignature": part.encrypted, "redacted": True}
    return {**block, "thinkingSignature": part.signature} if part.signature else block


def _write_usage(usage: Usage, cost: Cost | None) -> dict[str, Any]:
    """Return the usage of a reply, which pi expects with every reply, with 0 for unknown costs.

    Its `input` excludes cached tokens.
    """
    counts = {
        "input": max(usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens, 0),
        "output": usage.output_tokens,
        "cacheRead": usage.cached_input_tokens,
        "cacheWrite": usage.cache_write_tokens,
    }
    known = cost or Cost()
    costs = {
        "input": float(known.input),
        "output": float(known.output),
        "cacheRead": float(known.cache_read),
        "cacheWrite": float(known.cache_write),
        "total": float(known.total),
    }
    return {**counts, "totalTokens": usage.total_tokens, "cost": costs}


WRITER = TranscriptWriter(
    write_session,
    locate_session,
    reasoning_apis=frozenset(_APIS),
    accepts=is_image_data,
    cache_write_counts=frozenset({"cache_write_tokens"}),
)
