"""Formats without a reader, recognized so that they are rejected by name.

When a reader is written, the score function moves from here to its module.
"""

from __future__ import annotations

from typing import Any

from nexus_core.transcripts.base import SCORE_NONE, SCORE_OWN, SCORE_SHARED, TranscriptFormat, find_object, find_text


def _score_antigravity(value: dict[str, Any]) -> int:
    return SCORE_OWN if {"step_index", "source", "type", "status"} <= value.keys() else SCORE_NONE


def _score_copilot(value: dict[str, Any]) -> int:
    if "chatMessages" in value and "timeline" in value:  # the older format, one document
        return SCORE_OWN
    is_event = "." in find_text(value, "type") and isinstance(value.get("data"), dict)
    return SCORE_OWN if is_event and {"id", "timestamp"} <= value.keys() else SCORE_NONE


def _score_cursor(value: dict[str, Any]) -> int:
    if value.get("type") == "turn_ended":
        return SCORE_SHARED
    is_nested = isinstance(value.get("role"), str) and isinstance(value.get("message"), dict)
    return SCORE_OWN if is_nested and "content" not in value and "type" not in value else SCORE_NONE


_DROID_STREAM = ("toolCallId", "finalText", "text")


def _score_droid(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if kind == "session_start":
        return SCORE_OWN if "id" in value else SCORE_NONE
    if "session_id" in value and isinstance(kind, str) and "message" not in value:
        return SCORE_OWN if any(key in value for key in _DROID_STREAM) else SCORE_SHARED
    return (
        SCORE_SHARED if kind == "message" and isinstance(value.get("message"), dict) and "id" in value else SCORE_NONE
    )


def _score_gemini_log(value: dict[str, Any]) -> int:
    is_prompt = {"sessionId", "messageId", "type"} <= value.keys() and isinstance(value.get("message"), str)
    return SCORE_OWN if is_prompt else SCORE_NONE


_GROK_FIELDS = ("synthetic_reason", "prompt_index", "model_fingerprint", "prior_turn_interrupt")


def _score_grok(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if "role" in value or "message" in value or "uuid" in value or "timestamp" in value:
        return SCORE_NONE
    if kind == "backend_tool_call" or (isinstance(kind, str) and not value.keys().isdisjoint(_GROK_FIELDS)):
        return SCORE_OWN
    if kind == "tool_result":
        return SCORE_SHARED if "tool_call_id" in value else SCORE_NONE
    return (
        SCORE_SHARED
        if kind == "reasoning" or (kind in ("system", "user", "assistant") and "content" in value)
        else SCORE_NONE
    )


_KIMI_EVENTS = ("config.", "context.", "llm.", "permission.", "tools.", "turn.", "usage.")
_KIMI_ROLES = ("_checkpoint", "_system_prompt", "_usage")


def _score_kimi(value: dict[str, Any]) -> int:
    kind, role = find_text(value, "type"), find_text(value, "role")
    if kind == "metadata" and "protocol_version" in value:
        return SCORE_OWN
    if kind:
        return SCORE_OWN if kind.startswith(_KIMI_EVENTS) and "data" not in value and "time" in value else SCORE_NONE
    if role:
        return SCORE_OWN if role in _KIMI_ROLES else SCORE_SHARED if "content" in value else SCORE_NONE
    inner = find_object(value, "message")
    return (
        SCORE_OWN if "timestamp" in value and "payload" in inner and isinstance(inner.get("type"), str) else SCORE_NONE
    )


def _score_opencode(value: dict[str, Any]) -> int:
    time = find_object(value, "time")
    if "sessionID" in value and ("role" in value or "messageID" in value):
        return SCORE_OWN
    if "projectID" in value and "directory" in value and time:
        return SCORE_OWN
    if "start" in time and {"id", "type"} <= value.keys():  # a part in a separate file
        return SCORE_OWN
    listed = value.get("messages")
    if isinstance(value.get("info"), dict) and isinstance(listed, list):  # `opencode export`
        return (
            SCORE_OWN
            if any(isinstance(each, dict) and {"info", "parts"} <= each.keys() for each in listed)
            else SCORE_NONE
        )
    return SCORE_NONE


def _score_qwen(value: dict[str, Any]) -> int:
    if "uuid" not in value or "sessionId" not in value:
        return SCORE_NONE
    message = find_object(value, "message")
    if "systemPayload" in value or (isinstance(message.get("parts"), list) and "content" not in message):
        return SCORE_OWN
    return SCORE_NONE if message else SCORE_SHARED


def _score_vscode(value: dict[str, Any]) -> int:
    return SCORE_OWN if isinstance(value.get("requests"), list) and "responderUsername" in value else SCORE_NONE


UNSUPPORTED = (
    TranscriptFormat("antigravity", "an Antigravity trajectory", _score_antigravity),
    TranscriptFormat("copilot", "a Copilot CLI event log", _score_copilot),
    TranscriptFormat("cursor", "a Cursor agent transcript", _score_cursor),
    TranscriptFormat("droid", "a session of Droid", _score_droid),
    TranscriptFormat(
        "gemini-log", "the list of prompts of Gemini CLI (its sessions are in `chats`)", _score_gemini_log
    ),
    TranscriptFormat("grok", "a session of Grok CLI", _score_grok),
    TranscriptFormat("kimi", "a session of Kimi CLI", _score_kimi),
    TranscriptFormat("opencode", "a part of an OpenCode session", _score_opencode),
    TranscriptFormat("qwen", "a session of Qwen Code", _score_qwen),
    TranscriptFormat("vscode-chat", "a chat session of VS Code", _score_vscode),
)
"""Formats that are recognized, so that they are rejected by name and not mistaken for another format."""
