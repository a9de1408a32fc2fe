"""Writer for OpenCode: a document for `opencode import`.

A message of the model has its tool calls together with their results. OpenCode's ids are in the order of the messages,
and it sorts by them. A compaction is a message of the user that names the first message still read, and a summary of
the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.plugin import File, Image, Reasoning, Text, ToolCall
from nexus_core.plugin.transcripts import (
    PortableMessage,
    PortableReply,
    ResumeHint,
    TranscriptWriter,
    format_json,
    format_media_url,
    has_data,
    write_arguments,
)

if TYPE_CHECKING:
    from nexus_core.plugin import ToolResult
    from nexus_core.plugin.transcripts import ExportReport, PortableCompaction, PortableConversation

_VERSION = "1.0.0"
_AGENT = "build"
_PROVIDERS = {"claude": "anthropic", "gpt": "openai", "o3": "openai", "o4": "openai", "gemini": "google"}
"""OpenCode's name of the provider, by the beginning of the model's name. It continues with the last model."""
_UNKNOWN = "unknown"
_FINISH_REASONS = {"tools": "tool-calls", "length": "length", "error": "error"}


def write_session(conversation: PortableConversation, report: ExportReport) -> str:
    """Return the document of a session."""
    return _OpencodeSessionWriter(conversation, report).write()


def locate_session(conversation: PortableConversation) -> ResumeHint:
    """Return the commands that import any file and continue the session."""
    return ResumeHint("", f"opencode import FILE && opencode --session {_get_session_id(conversation)}")


def _get_session_id(conversation: PortableConversation) -> str:
    return f"ses_{conversation.derive_hex(26, 'opencode')}"


class _OpencodeSessionWriter:
    def __init__(self, conversation: PortableConversation, report: ExportReport) -> None:
        self._conversation = conversation
        self._report = report
        self._session = _get_session_id(conversation)
        self._unique = conversation.derive_hex(14, "opencode")
        self._messages: list[dict[str, Any]] = []
        self._item_ids: list[str] = []  # of the first message of each item
        self._parent = ""  # the last message of the user
        self._numbers = 0

    def write(self) -> str:
        conversation = self._conversation
        for item in conversation.items:
            self._item_ids.append("")
            if isinstance(item, PortableMessage):
                self._item_ids[-1] = self._add_message(item)
            elif isinstance(item, PortableReply):
                self._item_ids[-1] = self._add_reply(item)
            else:
                self._item_ids[-1] = self._add_compaction(item)
        last = conversation.items[-1].time
        info = {
            "id": self._session,
            "slug": f"nexus-{conversation.derive_hex(8, 'slug')}",
            "projectID": "global",
            "directory": conversation.cwd,
            "title": conversation.name,
            "version": _VERSION,
            "time": {"created": conversation.started, "updated": last},
        }
        return format_json({"info": info, "messages": self._messages}, indent=2) + "\n"

    def _next_id(self, prefix: str, time: int) -> str:
        """Return an id as OpenCode makes it: ordered by time, then by number."""
        self._numbers += 1
        # As OpenCode's own: milliseconds times 4096 plus a counter, of which it keeps 48 bits.
        stamp = (time * 0x1000 + self._numbers) & 0xFFFFFFFFFFFF
        return f"{prefix}_{stamp:012x}{self._numbers:06x}{self._unique[:8]}"

    def _open_message(self, info: dict[str, Any], time: int) -> tuple[str, list[dict[str, Any]]]:
        name, parts = self._next_id("msg", time), list[dict[str, Any]]()
        self._messages.append({"info": {"id": name, "sessionID": self._session, **info}, "parts": parts})
        return name, parts

    def _build_part(self, message: str, kind: str, when: int, /, **fields: object) -> dict[str, Any]:
        name = self._next_id("prt", when)
        return {"id": name, "sessionID": self._session, "messageID": message, "type": kind, **fields}

    def _open_user_message(self, time: int) -> tuple[str, list[dict[str, Any]]]:
        name = self._conversation.model
        model = {"providerID": _find_provider(name), "modelID": name or _UNKNOWN}
        info = {"role": "user", "time": {"created": time}, "agent": _AGENT, "model": model}
        self._parent, parts = self._open_message(info, time)
        return self._parent, parts

    def _open_reply(
        self, time: int, model: str, tokens: dict[str, Any], cost: float = 0, **fields: object
    ) -> tuple[str, list[dict[str, Any]]]:
        if not self._parent:  # a reply follows a message of the user
            self._open_user_message(time)
        cwd = self._conversation.cwd
        info = {
            "role": "assistant",
            "time": {"created": time, "completed": time},
            "parentID": self._parent,
            "modelID": model or _UNKNOWN,
            "providerID": _find_provider(model),
            "mode": _AGENT,
            "agent": _AGENT,
            "path": {"cwd": cwd, "root": cwd},
            "cost": cost,
            "tokens": tokens,
            **fields,
        }
        return self._open_message(info, time)

    def _add_message(self, item: PortableMessage) -> str:
        name, parts = self._open_user_message(item.time)
        fields = {} if item.kind == "said" else {"synthetic": True}
        for part in item.parts:
            if isinstance(part, Text):
                parts.append(self._build_part(name, "text", item.time, text=part.text, **fields))
            elif isinstance(part, Image | File):
                parts.append(self._build_file(name, part, item.time))
        return name

    def _add_reply(self, item: PortableReply) -> str:
        finish = _FINISH_REASONS.get(item.stop, "stop")
        cost = float(item.cost.total) if item.cost is not None else 0
        name, parts = self._open_reply(item.time, item.model, _write_usage(item), cost, finish=finish)
        results = {result.call_id: result for result in item.results}
        parts.append(self._build_part(name, "step-start", item.time))
        for part in item.parts:
            if isinstance(part, Text):
                parts.append(self._build_part(name, "text", item.time, text=part.text))
            elif isinstance(part, Reasoning):
                span = {"start": item.time, "end": item.time}
                parts.append(self._build_part(name, "reasoning", item.time, text=part.text, time=span))
            elif isinstance(part, ToolCall):
                state = self._build_state(name, part, results[part.id], item.time)
                parts.append(self._build_part(name, "tool", item.time, callID=part.id, tool=part.name, state=state))
        tokens = _write_usage(item)
        parts.append(self._build_part(name, "step-finish", item.time, reason=finish, cost=cost, tokens=tokens))
        return name

    def _build_state(self, message: str, call: ToolCall, result: ToolResult, time: int) -> dict[str, Any]:
        span = {"start": time, "end": time}
        state: dict[str, Any] = {"input": write_arguments(call, self._report), "time": span, "metadata": {}}
        media = [part for part in result.parts if isinstance(part, Image | File)]
        if result.is_error:
            self._report.count_left_out("image", len(media))
            return {"status": "error", **state, "error": result.text}
        state |= {"status": "completed", "output": result.text, "title": ""}
        if media:
            state["attachments"] = [self._build_file(message, part, time) for part in media]
        return state

    def _build_file(self, message: str, part: Image | File, time: int) -> dict[str, Any]:
        mime = part.mime or ("image/png" if isinstance(part, Image) else "application/octet-stream")
        named = {"filename": part.name} if isinstance(part, File) and part.name else {}
        return self._build_part(message, "file", time, mime=mime, **named, url=format_media_url(part))

    def _add_compaction(self, item: PortableCompaction) -> str:
        first, parts = self._open_user_message(item.time)
        kept = self._item_ids[item.kept_from]
        fields = {"tail_start_id": kept} if kept else {}
        parts.append(self._build_part(first, "compaction", item.time, auto=False, **fields))
        name, parts = self._open_reply(item.time, "", _NO_TOKENS, summary=True, finish="stop")
        parts.append(self._build_part(name, "text", item.time, text=item.summary))
        return first


def _find_provider(model: str) -> str:
    return next((provider for start, provider in _PROVIDERS.items() if model.startswith(start)), _UNKNOWN)


_NO_TOKENS = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def _write_usage(item: PortableReply) -> dict[str, Any]:
    usage = item.usage
    if usage is None:
        return _NO_TOKENS
    return {
        "input": max(usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens, 0),
        "output": max(usage.output_tokens - usage.reasoning_tokens, 0),
        "reasoning": usage.reasoning_tokens,
        "cache": {"read": usage.cached_input_tokens, "write": usage.cache_write_tokens},
    }


WRITER = TranscriptWriter(
    write_session,
    locate_session,
    reasoning_apis=frozenset({"opencode"}),
    accepts=has_data,
    cache_write_counts=frozenset({"cache_write_tokens"}),
)
