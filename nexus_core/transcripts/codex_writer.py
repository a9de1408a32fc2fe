"""Writer for Codex: `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`.

A rollout has the items that are sent to the model, and beside them events for what Codex shows: the prompts that the
user typed, and the texts of replies. A compaction lists the items that the model reads instead of all before it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.responses import DIALECT
from nexus_core.transcripts.writer import (
    PortableCompaction,
    PortableMessage,
    PortableReply,
    ResumeHint,
    TranscriptWriter,
    format_iso_time,
    format_json_lines,
    is_image_data,
)
from nexus_core.types.messages import Message, Text, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.transcripts.writer import ExportReport, PortableConversation, PortableItem

_VERSION = "0.100.0"
"""The version of Codex whose lines these are."""
_OPENAI_MODEL = re.compile(r"(?:ft:)?(?:gpt-(?!oss)|chatgpt-|codex-|o[1-9](?:-|$))")
"""Names of OpenAI's models. Its open weights (gpt-oss) run elsewhere."""


def write_session(conversation: PortableConversation, report: ExportReport) -> str:
    """Return the lines of a rollout.

    Codex continues with the model of the last turn, so that only models that it can call are named.
    """
    lines: list[dict[str, Any]] = []

    def add(kind: str, payload: dict[str, Any], time: int) -> None:
        lines.append({"timestamp": format_iso_time(time), "type": kind, "payload": payload})

    add("session_meta", _build_header(conversation), conversation.started)
    model, total = "", Usage()
    for index, item in enumerate(conversation.items):
        if isinstance(item, PortableReply) and item.model and not _can_call(item):
            report.count_left_out("model-name")
        elif isinstance(item, PortableReply) and item.model != model:
            model = item.model
            add("turn_context", _build_turn_context(conversation, model), item.time)
        if isinstance(item, PortableCompaction):
            kept = [each for inner in conversation.items[item.kept_from : index] for each in _list_items(inner)]
            history = [*_write_items(Message("user", item.summary)), *kept]
            add("compacted", {"message": item.summary, "replacement_history": history}, item.time)
        else:
            for each in _list_items(item):
                add("response_item", each, item.time)
            for event in _list_events(item):
                add("event_msg", event, item.time)
            if isinstance(item, PortableReply) and item.usage is not None:
                total += item.usage
                add("event_msg", _build_token_count(total, item.usage), item.time)
    return format_json_lines(lines)


def _can_call(reply: PortableReply) -> bool:
    """Return True if Codex can call the model of a reply: one that has replied in its API, or any of OpenAI's."""
    return reply.api == "responses" or _OPENAI_MODEL.match(reply.model) is not None


def locate_session(conversation: PortableConversation) -> ResumeHint:
    """Return the file of a rollout, in the directory of its day."""
    session, time = conversation.derive_uuid("codex"), format_iso_time(conversation.started)
    day, clock = time[:10].replace("-", "/"), time[:19].replace(":", "-")
    return ResumeHint(f"~/.codex/sessions/{day}/rollout-{clock}-{session}.jsonl", f"codex resume {session}")


def _build_header(conversation: PortableConversation) -> dict[str, Any]:
    return {
        "id": conversation.derive_uuid("codex"),
        "timestamp": format_iso_time(conversation.started),
        "cwd": conversation.cwd,
        "originator": "nexus",
        "cli_version": _VERSION,
        "source": "cli",
    }


def _build_turn_context(conversation: PortableConversation, model: str) -> dict[str, Any]:
    """Return the settings of a turn. Codex asks before it writes anything, until the user decides otherwise."""
    return {
        "cwd": conversation.cwd,
        "approval_policy": "on-request",
        "sandbox_policy": {"type": "read-only"},
        "model": model,
        "summary": "auto",
    }


def _list_items(item: PortableItem) -> Iterator[dict[str, Any]]:
    """Yield the items that are sent to the model. A compaction has its own list of them."""
    if isinstance(item, PortableMessage):
        yield from _write_items(Message(item.role, item.parts))
    elif isinstance(item, PortableReply):
        yield from _write_items(Message("assistant", item.parts, api=item.api))
        for result in item.results:
            yield from _write_items(Message("tool", (result,)))


def _write_items(message: Message) -> list[dict[str, Any]]:
    """Return a message as items. Codex expects the content of a message as a list."""
    items: list[dict[str, Any]] = DIALECT.write([message])
    for item in items:
        if item.get("type") == "message" and isinstance(item.get("content"), str):
            kind = "output_text" if item.get("role") == "assistant" else "input_text"
            item["content"] = [{"type": kind, "text": item["content"]}]
        if item.get("role") == "system":
            item["role"] = "developer"
    return items


def _list_events(item: PortableItem) -> Iterator[dict[str, Any]]:
    """Yield what Codex shows of an item."""
    if isinstance(item, PortableMessage) and item.kind == "said" and item.role == "user":
        text = "\n".join(part.text for part in item.parts if isinstance(part, Text))
        yield {"type": "user_message", "message": text, "images": []}
    elif isinstance(item, PortableReply):
        for text in item.texts:
            yield {"type": "agent_message", "message": text}


def _build_token_count(total: Usage, last: Usage) -> dict[str, Any]:
    """Return the usage of a reply, and of all replies up to it."""
    info = {
        "total_token_usage": _write_usage(total),
        "last_token_usage": _write_usage(last),
        "model_context_window": None,
    }
    return {"type": "token_count", "info": info, "rate_limits": None}


def _write_usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_output_tokens": usage.reasoning_tokens,
        "total_tokens": usage.total_tokens,
    }


WRITER = TranscriptWriter(
    write_session,
    locate_session,
    reasoning_apis=frozenset({"responses"}),
    block_apis=frozenset({"responses"}),
    writes_system=True,
    accepts=is_image_data,
    writes_cost=False,
    cache_write_counts=frozenset(),
)
