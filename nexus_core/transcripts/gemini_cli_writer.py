"""Writer for Gemini CLI: `~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl`.

A message of the model has its tool calls together with their results. A compaction is a change of the header that
replaces all messages so far.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.gemini import DIALECT
from nexus_core.transcripts.writer import (
    PortableCompaction,
    PortableMessage,
    PortableReply,
    ResumeHint,
    TranscriptWriter,
    format_iso_time,
    format_json_lines,
    has_data,
    write_arguments,
)
from nexus_core.types.messages import Message, Text, ToolCall

if TYPE_CHECKING:
    from nexus_core.transcripts.base import EntryKind
    from nexus_core.transcripts.writer import ExportReport, InputPart, PortableConversation
    from nexus_core.types.messages import Usage

_COMMAND_STARTS = ("/", "?")
_CONTEXT_STARTS = ("<session_context>", "<hook_context>")
"""Beginnings of user messages that Gemini CLI takes for commands or for its own context, and does not send."""
_QUOTE_MARK = "[quoted message]"


def write_session(conversation: PortableConversation, report: ExportReport) -> str:
    """Return the lines of a session."""
    start = format_iso_time(conversation.started)
    lines: list[dict[str, Any]] = [
        {
            "sessionId": conversation.derive_uuid("gemini-cli"),
            "projectHash": sha256(conversation.cwd.encode(errors="replace")).hexdigest(),
            "startTime": start,
            "lastUpdated": start,
            "kind": "main",
        }
    ]
    written: list[dict[str, Any] | None] = []  # the message of each item, None for a compaction
    for index, item in enumerate(conversation.items):
        base = {
            "id": conversation.derive_uuid("gemini-cli", index),
            "timestamp": format_iso_time(item.time),
        }
        if isinstance(item, PortableCompaction):
            summary = {**base, "type": "user", "content": _write_input((Text(item.summary),))}
            kept = [each for each in written[item.kept_from :] if each is not None]
            lines.append({"$set": {"messages": [summary, *kept], "lastUpdated": base["timestamp"]}})
            written.append(None)
            continue
        if isinstance(item, PortableMessage):
            message = {**base, "type": "user", "content": _write_input(item.parts, item.kind)}
        else:
            message = {**base, **_write_reply(item, report)}
        written.append(message)
        lines.append(message)
    return format_json_lines(lines)


def locate_session(conversation: PortableConversation) -> ResumeHint:
    """Return the file of a session, in the directory that Gemini CLI names after the project's.

    If two projects have the same name, `~/.gemini/projects.json` says which name it uses.
    """
    session = conversation.derive_uuid("gemini-cli")
    project = re.sub(r"[^a-z0-9]+", "-", PurePath(conversation.cwd).name.lower()).strip("-") or "project"
    time = format_iso_time(conversation.started)[:16].replace(":", "-")
    file = f"~/.gemini/tmp/{project}/chats/session-{time}-{session[:8]}.jsonl"
    return ResumeHint(file, f"gemini --resume {session}")


def _write_input(given: tuple[InputPart, ...], kind: EntryKind = "said") -> list[dict[str, Any]]:
    """Return the parts of a user message, preceded by a mark if Gemini CLI would not send it.

    Context that it added itself needs none: it adds it again.
    """
    parts: list[dict[str, Any]] = DIALECT.write([Message("user", given)])[0]["parts"]
    text = "".join(part.text for part in given if isinstance(part, Text)).strip()
    ignored = _COMMAND_STARTS if kind == "injected" else (*_COMMAND_STARTS, *_CONTEXT_STARTS)
    return [{"text": _QUOTE_MARK}, *parts] if text.startswith(ignored) else parts


def _write_reply(item: PortableReply, report: ExportReport) -> dict[str, Any]:
    message: dict[str, Any] = {"type": "gemini", "content": _write_content(item), "thoughts": []}
    if item.usage is not None:
        message["tokens"] = _write_usage(item.usage)
    if item.model:
        message["model"] = item.model
    if item.results:
        message["toolCalls"] = [
            {
                "id": call.id,
                "name": call.name,
                "args": write_arguments(call, report),
                "result": DIALECT.write([Message("tool", (result,))])[0]["parts"],
                "status": "error" if result.is_error else "success",
                "timestamp": format_iso_time(item.time),
            }
            for call, result in zip(item.calls, item.results, strict=True)
        ]
    return message


def _write_content(item: PortableReply) -> list[dict[str, Any]]:
    """Return the parts of a reply. Calls are among them only if one is signed, or if there is more than texts."""
    has_more = any(not isinstance(part, Text | ToolCall) for part in item.parts)
    is_whole = has_more or any(call.extra for call in item.calls)
    parts = item.parts if is_whole else tuple(each for each in item.parts if isinstance(each, Text))
    return DIALECT.write([Message("assistant", parts, api=item.api)])[0]["parts"] if parts else []


def _write_usage(usage: Usage) -> dict[str, int]:
    """Return the usage of a reply: `output` excludes thoughts."""
    return {
        "input": usage.input_tokens,
        "output": max(usage.output_tokens - usage.reasoning_tokens, 0),
        "cached": usage.cached_input_tokens,
        "thoughts": usage.reasoning_tokens,
        "tool": 0,
        "total": usage.total_tokens,
    }


WRITER = TranscriptWriter(
    write_session,
    locate_session,
    reasoning_apis=frozenset({"gemini"}),
    block_apis=frozenset({"gemini"}),
    accepts=has_data,
    writes_cost=False,
    cache_write_counts=frozenset(),
)
