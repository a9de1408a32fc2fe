"""Formats without a reader, recognized so that they are rejected by name.

When a reader is written, the score function moves from here to its module.
"""

from __future__ import annotations

from typing import Any

from nexus_core.transcripts.base import SCORE_NONE, SCORE_OWN, TranscriptFormat


def _score_gemini_log(value: dict[str, Any]) -> int:
    is_prompt = {"sessionId", "messageId", "type"} <= value.keys() and isinstance(value.get("message"), str)
    return SCORE_OWN if is_prompt else SCORE_NONE


def _score_vscode(value: dict[str, Any]) -> int:
    return SCORE_OWN if isinstance(value.get("requests"), list) and "responderUsername" in value else SCORE_NONE


UNSUPPORTED = (
    TranscriptFormat(
        "gemini-log", "the list of prompts of Gemini CLI (its sessions are in `chats`)", _score_gemini_log
    ),
    TranscriptFormat("vscode-chat", "a chat session of VS Code", _score_vscode),
)
"""Formats that are recognized, so that they are rejected by name and not mistaken for another format."""
