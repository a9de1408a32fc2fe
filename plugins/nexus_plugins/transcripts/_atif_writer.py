"""Writer for the Agent Trajectory Interchange Format, version 1.7.

A trajectory is a record, which no program continues. A reply and the results of its calls are one step. The format has
no compactions: a summary is a step of its own. Images are named by path, so that only those with a URL are in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.plugin import Image, Reasoning, Text
from nexus_core.plugin.transcripts import (
    PortableCompaction,
    PortableMessage,
    ResumeHint,
    TranscriptWriter,
    format_iso_time,
    format_json,
    write_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core import Usage
    from nexus_core.plugin import File, Part
    from nexus_core.plugin.transcripts import ExportReport, PortableConversation, PortableReply

EXTRA_COUNTS = ("cache_write_tokens", "cache_write_1h_tokens", "reasoning_tokens")
MESSAGE_KIND = "message"
"""Marks an instruction that is a message of the conversation, and not the prompt of a program."""
_IMAGE_MIMES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def write_trajectory(conversation: PortableConversation, report: ExportReport) -> str:
    """Return the document of a trajectory."""
    steps: list[dict[str, Any]] = []
    if conversation.system:
        steps.append({"source": "system", "message": conversation.system})
    for item in conversation.items:
        if isinstance(item, PortableCompaction):
            report.count_changed("compaction")
            step: dict[str, Any] = {"source": "user", "message": item.summary, "extra": {"kind": "summary"}}
        elif isinstance(item, PortableMessage):
            step = {"source": item.role, "message": _write_content(item.parts)}
            if item.role == "system":
                step["extra"] = {"kind": MESSAGE_KIND}
            elif item.kind != "said":
                step["extra"] = {"kind": item.kind}
        else:
            step = _write_reply(item, report)
        steps.append({"timestamp": format_iso_time(item.time), **step})
    agent: dict[str, Any] = {"name": "nexus", "version": "1"}
    if conversation.model:
        agent["model_name"] = conversation.model
    if conversation.tools:
        agent["tool_definitions"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in conversation.tools
        ]
    document = {
        "schema_version": "ATIF-v1.7",
        "session_id": conversation.name,
        "agent": agent,
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
    }
    return format_json(document, indent=2) + "\n"


def locate_trajectory(conversation: PortableConversation) -> ResumeHint:  # noqa: ARG001 - as all writers
    """Return no place: a trajectory may be anywhere, and no program continues it."""
    return ResumeHint("", "")


def _write_reply(item: PortableReply, report: ExportReport) -> dict[str, Any]:
    texts = [part for part in item.parts if isinstance(part, Text)]
    step: dict[str, Any] = {"source": "agent", "message": _write_content(texts)}
    thoughts = [part.text for part in item.parts if isinstance(part, Reasoning)]
    if item.model:
        step["model_name"] = item.model
    if thoughts:
        step["reasoning_content"] = "\n\n".join(thoughts)
    if item.results:
        step["tool_calls"] = [
            {"tool_call_id": call.id, "function_name": call.name, "arguments": write_arguments(call, report)}
            for call in item.calls
        ]
        step["observation"] = {
            "results": [
                {"source_call_id": result.call_id, "content": _write_content(result.parts)} for result in item.results
            ]
        }
    if item.usage is not None:
        step["metrics"] = _write_usage(item.usage)
        if item.cost is not None:
            step["metrics"]["cost_usd"] = float(item.cost.total)
    return step


def _write_content(parts: Iterable[Part]) -> str | list[dict[str, Any]]:
    """Return one text as it is, and several parts as a list."""
    found: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Text):
            found.append({"type": "text", "text": part.text})
        elif isinstance(part, Image):
            found.append({"type": "image", "source": {"media_type": part.mime, "path": part.url}})
    if not found:
        return ""
    return found[0]["text"] if len(found) == 1 and found[0]["type"] == "text" else found


def _write_usage(usage: Usage) -> dict[str, Any]:
    """Return the metrics of a step. Counts that the format does not name are in `extra`."""
    metrics: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_input_tokens,
    }
    extra = {name: count for name in EXTRA_COUNTS if (count := getattr(usage, name))}
    return {**metrics, "extra": extra} if extra else metrics


def _accepts(part: Image | File) -> bool:
    return isinstance(part, Image) and not part.data and bool(part.url) and part.mime in _IMAGE_MIMES


WRITER = TranscriptWriter(
    write_trajectory,
    locate_trajectory,
    keeps_reasoning_text=True,
    writes_system=True,
    writes_prompt=True,
    accepts=_accepts,
)
