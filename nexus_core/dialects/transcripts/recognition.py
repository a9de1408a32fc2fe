"""Recognition of the program that wrote a transcript, by the evidence of the whole file.

Every line (or element, or the one object of a document) is weighed for every format. A format is a candidate if it has
a line that only its program writes; the candidate that explains most lines wins, the first one listed among equals.
Only counts are kept, so a file of any size can be weighed while it is read.

A format that has no reader is known by name and refused. Who adds a reader adds it to the formats in `reading.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.transcripts.lines import mapping_under, word_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.lines import Record
    from nexus_core.dialects.transcripts.transcript import Transcript

    WeighLine = Callable[[dict[str, Any]], int]
    ReadLines = Callable[[Sequence[Record], Account], Transcript]

NONE, SHARED, OWN = range(3)
"""Weights of a line: not of this program; of this program, or of another one; of this program only."""


class TranscriptFormat(NamedTuple):
    """A format in which a program writes conversations.

    Attributes:
        name: The name of the format, as `Transcript.format` has it.
        title: The name for a person, with an article: `a Copilot CLI event log`.
        weigh: Weighs an object: NONE, SHARED or OWN.
        read: Reads the lines of a file; None where there is no reader yet, or only one for documents.
    """

    name: str
    title: str
    weigh: WeighLine
    read: ReadLines | None = None


class FormatEvidence:
    """Counts, for each format, the lines that it explains.

    Args:
        formats: The formats, the most specific first.
    """

    def __init__(self, formats: Iterable[TranscriptFormat]) -> None:
        self._formats = tuple(formats)
        self._own = [0] * len(self._formats)
        self._explained = [0] * len(self._formats)
        self.lines = 0

    def add(self, value: dict[str, Any]) -> None:
        """Weigh one more object."""
        self.lines += 1
        for index, form in enumerate(self._formats):
            weight = form.weigh(value)
            if weight:
                self._explained[index] += 1
                self._own[index] += weight == OWN

    def best(self) -> TranscriptFormat | None:
        """Return the format that explains most lines and has one that only its program writes; None for none."""
        found = [index for index, own in enumerate(self._own) if own]
        return self._formats[max(found, key=self._explained.__getitem__)] if found else None

    def nearest(self) -> tuple[str, int]:
        """Return the name of the format that explains most lines, and how many; `("", 0)` where none explains any."""
        index = max(range(len(self._formats)), key=lambda each: (self._explained[each], self._own[each]))
        return (self._formats[index].name, self._explained[index]) if self._explained[index] else ("", 0)


def _weigh_antigravity(value: dict[str, Any]) -> int:
    return OWN if {"step_index", "source", "type", "status"} <= value.keys() else NONE


def _weigh_copilot(value: dict[str, Any]) -> int:
    if "chatMessages" in value and "timeline" in value:  # before events: one document
        return OWN
    is_event = "." in word_in(value, "type") and isinstance(value.get("data"), dict)
    return OWN if is_event and {"id", "timestamp"} <= value.keys() else NONE


def _weigh_cursor(value: dict[str, Any]) -> int:
    if value.get("type") == "turn_ended":
        return SHARED
    is_nested = isinstance(value.get("role"), str) and isinstance(value.get("message"), dict)
    return OWN if is_nested and "content" not in value and "type" not in value else NONE


_DROID_STREAM = ("toolCallId", "finalText", "text")


def _weigh_droid(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if kind == "session_start":
        return OWN if "id" in value else NONE
    if "session_id" in value and isinstance(kind, str) and "message" not in value:
        return OWN if any(key in value for key in _DROID_STREAM) else SHARED
    return SHARED if kind == "message" and isinstance(value.get("message"), dict) and "id" in value else NONE


_GEMINI_NOTICES = ("user", "info", "error", "warning")


def _weigh_gemini(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if "projectHash" in value and "sessionId" in value:
        return OWN
    if {"sessionId", "messageId", "type"} <= value.keys() and isinstance(value.get("message"), str):  # logs.json
        return OWN
    if kind == "gemini":
        return OWN if "content" in value or "toolCalls" in value else NONE
    if "$set" in value or "$rewindTo" in value:
        return SHARED
    is_notice = kind in _GEMINI_NOTICES and "message" not in value and "uuid" not in value
    return SHARED if is_notice and {"id", "timestamp", "content"} <= value.keys() else NONE


_GROK_FIELDS = ("synthetic_reason", "prompt_index", "model_fingerprint", "prior_turn_interrupt")


def _weigh_grok(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if "role" in value or "message" in value or "uuid" in value or "timestamp" in value:
        return NONE
    if kind == "backend_tool_call" or (isinstance(kind, str) and not value.keys().isdisjoint(_GROK_FIELDS)):
        return OWN
    if kind == "tool_result":
        return SHARED if "tool_call_id" in value else NONE
    return SHARED if kind == "reasoning" or (kind in ("system", "user", "assistant") and "content" in value) else NONE


_KIMI_EVENTS = ("config.", "context.", "llm.", "permission.", "tools.", "turn.", "usage.")
_KIMI_ROLES = ("_checkpoint", "_system_prompt", "_usage")


def _weigh_kimi(value: dict[str, Any]) -> int:
    kind, role = word_in(value, "type"), word_in(value, "role")
    if kind == "metadata" and "protocol_version" in value:
        return OWN
    if kind:
        return OWN if kind.startswith(_KIMI_EVENTS) and "data" not in value and "time" in value else NONE
    if role:
        return OWN if role in _KIMI_ROLES else SHARED if "content" in value else NONE
    inner = mapping_under(value, "message")
    return OWN if "timestamp" in value and "payload" in inner and isinstance(inner.get("type"), str) else NONE


def _weigh_opencode(value: dict[str, Any]) -> int:
    time = mapping_under(value, "time")
    if "sessionID" in value and ("role" in value or "messageID" in value):
        return OWN
    if "projectID" in value and "directory" in value and time:
        return OWN
    if "start" in time and {"id", "type"} <= value.keys():  # a part in a file of its own
        return OWN
    listed = value.get("messages")
    if isinstance(value.get("info"), dict) and isinstance(listed, list):  # `opencode export`
        return OWN if any(isinstance(each, dict) and {"info", "parts"} <= each.keys() for each in listed) else NONE
    return NONE


def _weigh_qwen(value: dict[str, Any]) -> int:
    if "uuid" not in value or "sessionId" not in value:
        return NONE
    message = mapping_under(value, "message")
    if "systemPayload" in value or (isinstance(message.get("parts"), list) and "content" not in message):
        return OWN
    return NONE if message else SHARED


def _weigh_vscode(value: dict[str, Any]) -> int:
    return OWN if isinstance(value.get("requests"), list) and "responderUsername" in value else NONE


UNSUPPORTED = (
    TranscriptFormat("antigravity", "an Antigravity trajectory", _weigh_antigravity),
    TranscriptFormat("copilot", "a Copilot CLI event log", _weigh_copilot),
    TranscriptFormat("cursor", "a Cursor agent transcript", _weigh_cursor),
    TranscriptFormat("droid", "a session of Droid", _weigh_droid),
    TranscriptFormat("gemini-cli", "a session of Gemini CLI", _weigh_gemini),
    TranscriptFormat("grok", "a session of Grok CLI", _weigh_grok),
    TranscriptFormat("kimi", "a session of Kimi CLI", _weigh_kimi),
    TranscriptFormat("opencode", "a part of an OpenCode session", _weigh_opencode),
    TranscriptFormat("qwen", "a session of Qwen Code", _weigh_qwen),
    TranscriptFormat("vscode-chat", "a chat session of VS Code", _weigh_vscode),
)
"""Formats that are recognised, so that they are refused by name and not taken for another one."""
