"""Recognition of the program that wrote a transcript, by the evidence of the whole file.

Every line (or element, or the one object of a document) gets a score for every format. A format is a candidate if it
has a line that only its program writes; the candidate that explains most lines wins, the first one listed among equals.
Only counts are kept, so the lines of a file of any size can be scored while it is read.

Formats do not score the line itself but its outline (`extract_line_shape`): the same object with all content left out.
Most lines of a file have the same few outlines, and each outline is scored once. As a format sees nothing else, its
score cannot depend on anything that two lines with one outline differ in. A format that needs more of a line adds the
key to `_TEXTS` or `_OBJECTS`.

A format that has no reader is known by name and refused. Who adds a reader adds it to the formats in `reading.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.transcripts.lines import mapping_under, word_in

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.lines import Record
    from nexus_core.dialects.transcripts.transcript import Transcript

    LineScorer = Callable[[dict[str, Any]], int]
    ReadLines = Callable[[Sequence[Record], Account], Transcript]

NONE, SHARED, OWN = range(3)
"""Weights of a line: not of this program; of this program, or of another one; of this program only."""


_TEXTS = ("type", "role")
"""Keys whose texts are in an outline."""
_OBJECTS = ("message", "time")
"""Keys whose objects are in an outline with their own keys."""
_LIST = "messages"
"""The key whose list is in an outline with the keys of its objects."""
_MOST_OUTLINES = 1000
"""The outlines of a file whose weights are remembered; those of further ones are computed for every line."""


class TranscriptFormat(NamedTuple):
    """A format in which a program writes conversations.

    Attributes:
        name: The name of the format, as `Transcript.format` has it.
        title: The name for a person, with an article: `a Copilot CLI event log`.
        score_line: Scores the outline of an object: NONE, SHARED or OWN.
        read: Reads the lines of a file; None where there is no reader yet, or only one for documents.
    """

    name: str
    title: str
    score_line: LineScorer
    read: ReadLines | None = None


class FormatDetector:
    """Counts, for each format, the lines that it explains.

    Args:
        formats: The formats, the most specific first.
    """

    def __init__(self, formats: Iterable[TranscriptFormat]) -> None:
        self._formats = tuple(formats)
        self._own = [0] * len(self._formats)
        self._explained = [0] * len(self._formats)
        self._remembered: dict[Hashable, list[tuple[int, bool]]] = {}
        self.lines = 0

    def add(self, value: dict[str, Any]) -> None:
        """Score one more object."""
        self.lines += 1
        shape = _shape(value)
        found = self._remembered.get(shape)
        if found is None:
            found = self._score(extract_line_shape(value))
            if len(self._remembered) < _MOST_OUTLINES:
                self._remembered[shape] = found
        for index, is_own in found:
            self._explained[index] += 1
            self._own[index] += is_own

    def _score(self, outline: dict[str, Any]) -> list[tuple[int, bool]]:
        """Return the index of each format that explains a line with this outline, and whether the line is its own."""
        weights = [form.score_line(outline) for form in self._formats]
        return [(index, weight == OWN) for index, weight in enumerate(weights) if weight]

    def best(self) -> TranscriptFormat | None:
        """Return the format that explains most lines and has one that only its program writes; None for none."""
        found = [index for index, own in enumerate(self._own) if own]
        return self._formats[max(found, key=self._explained.__getitem__)] if found else None

    def nearest(self) -> tuple[str, int]:
        """Return the name of the format that explains most lines, and how many; `("", 0)` where none explains any."""
        index = max(range(len(self._formats)), key=lambda each: (self._explained[each], self._own[each]))
        return (self._formats[index].name, self._explained[index]) if self._explained[index] else ("", 0)


def extract_line_shape(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object with the keys of this one and empty values of the same types.

    Kept are the texts of `type` and `role`, the keys of the objects `message` and `time`, and in the list `messages`
    an object for each set of keys that its objects have.
    """
    outline = _emptied(value)
    for key in _TEXTS:
        if isinstance(value.get(key), str):
            outline[key] = value[key]
    for key in _OBJECTS:
        if isinstance(value.get(key), dict):
            outline[key] = _emptied(value[key])
    if isinstance(value.get(_LIST), list):
        outline[_LIST] = [dict.fromkeys(keys) for keys in _keys_in(value[_LIST])]
    return outline


def _emptied(value: dict[str, Any]) -> dict[str, Any]:
    return {key: type(inner)() for key, inner in value.items()}


def _keys_in(listed: list[Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(dict.fromkeys(tuple(each) for each in listed if isinstance(each, dict)))


def _shape(value: dict[str, Any]) -> Hashable:
    """Return a key that two objects share only if they have the same outline: all that `extract_line_shape` has."""
    shape: list[Hashable] = [tuple(value), tuple(map(type, value.values()))]
    for key in _TEXTS:
        inner = value.get(key)
        if isinstance(inner, str):
            shape.append(inner)
    for key in _OBJECTS:
        inner = value.get(key)
        if isinstance(inner, dict):
            shape += tuple(inner), tuple(map(type, inner.values()))
    if _LIST in value and isinstance(value[_LIST], list):
        shape.append(_keys_in(value[_LIST]))
    return tuple(shape)


def _score_antigravity(value: dict[str, Any]) -> int:
    return OWN if {"step_index", "source", "type", "status"} <= value.keys() else NONE


def _score_copilot(value: dict[str, Any]) -> int:
    if "chatMessages" in value and "timeline" in value:  # before events: one document
        return OWN
    is_event = "." in word_in(value, "type") and isinstance(value.get("data"), dict)
    return OWN if is_event and {"id", "timestamp"} <= value.keys() else NONE


def _score_cursor(value: dict[str, Any]) -> int:
    if value.get("type") == "turn_ended":
        return SHARED
    is_nested = isinstance(value.get("role"), str) and isinstance(value.get("message"), dict)
    return OWN if is_nested and "content" not in value and "type" not in value else NONE


_DROID_STREAM = ("toolCallId", "finalText", "text")


def _score_droid(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if kind == "session_start":
        return OWN if "id" in value else NONE
    if "session_id" in value and isinstance(kind, str) and "message" not in value:
        return OWN if any(key in value for key in _DROID_STREAM) else SHARED
    return SHARED if kind == "message" and isinstance(value.get("message"), dict) and "id" in value else NONE


_GEMINI_NOTICES = ("user", "info", "error", "warning")


def _score_gemini(value: dict[str, Any]) -> int:
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


def _score_grok(value: dict[str, Any]) -> int:
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


def _score_kimi(value: dict[str, Any]) -> int:
    kind, role = word_in(value, "type"), word_in(value, "role")
    if kind == "metadata" and "protocol_version" in value:
        return OWN
    if kind:
        return OWN if kind.startswith(_KIMI_EVENTS) and "data" not in value and "time" in value else NONE
    if role:
        return OWN if role in _KIMI_ROLES else SHARED if "content" in value else NONE
    inner = mapping_under(value, "message")
    return OWN if "timestamp" in value and "payload" in inner and isinstance(inner.get("type"), str) else NONE


def _score_opencode(value: dict[str, Any]) -> int:
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


def _score_qwen(value: dict[str, Any]) -> int:
    if "uuid" not in value or "sessionId" not in value:
        return NONE
    message = mapping_under(value, "message")
    if "systemPayload" in value or (isinstance(message.get("parts"), list) and "content" not in message):
        return OWN
    return NONE if message else SHARED


def _score_vscode(value: dict[str, Any]) -> int:
    return OWN if isinstance(value.get("requests"), list) and "responderUsername" in value else NONE


UNSUPPORTED = (
    TranscriptFormat("antigravity", "an Antigravity trajectory", _score_antigravity),
    TranscriptFormat("copilot", "a Copilot CLI event log", _score_copilot),
    TranscriptFormat("cursor", "a Cursor agent transcript", _score_cursor),
    TranscriptFormat("droid", "a session of Droid", _score_droid),
    TranscriptFormat("gemini-cli", "a session of Gemini CLI", _score_gemini),
    TranscriptFormat("grok", "a session of Grok CLI", _score_grok),
    TranscriptFormat("kimi", "a session of Kimi CLI", _score_kimi),
    TranscriptFormat("opencode", "a part of an OpenCode session", _score_opencode),
    TranscriptFormat("qwen", "a session of Qwen Code", _score_qwen),
    TranscriptFormat("vscode-chat", "a chat session of VS Code", _score_vscode),
)
"""Formats that are recognised, so that they are refused by name and not taken for another one."""
