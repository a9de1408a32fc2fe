"""Readers for the transcripts of other agents, besides those that Nexus itself reads, and two writers.

_aider.py            Aider
_antigravity.py      Antigravity
_atif.py             Agent Trajectory Interchange Format
_atif_writer.py      trajectories of that format
_copilot.py          Copilot CLI
_cursor.py           Cursor, its agent's transcripts and the database of its chats
_droid.py            Droid
_grok.py             Grok CLI
_hermes.py           Hermes
_kimi.py             Kimi Code and Kimi CLI
_opencode.py         OpenCode
_opencode_writer.py  sessions for `opencode import`
_openhands.py        OpenHands
_qwen.py             Qwen Code
_sharegpt.py         ShareGPT
_databases.py        SQLite databases of other programs, opened so that nothing is written
_pieces.py           conversations in many files, of which each has a JSON object

Each docstring says what the format cannot tell. A module is imported when a transcript is read.
"""

from __future__ import annotations

from nexus_core import hookimpl
from nexus_core.plugin import TranscriptLocation, TranscriptReader


@hookimpl
def nexus_transcripts() -> list[TranscriptReader]:
    """Return a reader for each program, and where it keeps its files."""
    place, package = TranscriptLocation, __name__
    return [
        TranscriptReader("aider", "Aider", f"{package}._aider:FORMAT"),
        TranscriptReader(
            "antigravity",
            "Antigravity",
            f"{package}._antigravity:FORMAT",
            (
                place("~/.gemini/antigravity-cli", "brain/*/.system_generated/logs/transcript.jsonl"),
                place("~/.gemini/antigravity", "brain/*/.system_generated/logs/transcript.jsonl"),
            ),
        ),
        TranscriptReader("atif", "ATIF", f"{package}._atif:FORMAT"),
        TranscriptReader(
            "copilot",
            "Copilot CLI",
            f"{package}._copilot:FORMAT",
            (
                place("~/.copilot", "session-state/*/events.jsonl"),
                place("~/.copilot", "session-state/*.jsonl"),
                place("~/.copilot", "history-session-state/*.json"),
            ),
        ),
        TranscriptReader(
            "cursor",
            "Cursor",
            f"{package}._cursor:FORMAT",
            (
                place("~/.cursor", "projects/*/agent-transcripts/*/*.jsonl"),
                place("~/.cursor", "projects/*/agent-transcripts/*.jsonl"),
                place("~/.config/Cursor", "User/globalStorage/state.vscdb"),
                place("~/Library/Application Support/Cursor", "User/globalStorage/state.vscdb"),
            ),
        ),
        TranscriptReader(
            "droid",
            "Droid",
            f"{package}._droid:FORMAT",
            (place("~/.factory", "sessions/*/*.jsonl"), place("~/.factory", "sessions/*.jsonl")),
        ),
        TranscriptReader(
            "grok", "Grok CLI", f"{package}._grok:FORMAT", (place("~/.grok", "sessions/*/*/chat_history.jsonl"),)
        ),
        TranscriptReader(
            "hermes",
            "Hermes",
            f"{package}._hermes:FORMAT",
            (
                place("~/.hermes", "sessions/session_*.json", "HERMES_HOME"),
                place("~/.hermes", "state.db", "HERMES_HOME"),
            ),
        ),
        TranscriptReader(
            "kimi",
            "Kimi",
            f"{package}._kimi:FORMAT",
            (
                place("~/.kimi-code", "sessions/*/*/agents/*/wire.jsonl", "KIMI_CODE_HOME"),
                place("~/.kimi", "sessions/*/*/context.jsonl", "KIMI_SHARE_DIR"),
            ),
        ),
        TranscriptReader(
            "opencode",
            "OpenCode",
            f"{package}._opencode:FORMAT",
            (
                place("~/.local/share/opencode", "opencode*.db"),
                place("~/.local/share/opencode", "storage/session/*/*.json"),
            ),
        ),
        TranscriptReader(
            "openhands",
            "OpenHands",
            f"{package}._openhands:FORMAT",
            (place("~/.openhands", "conversations/*/base_state.json"),),
        ),
        TranscriptReader(
            "qwen",
            "Qwen Code",
            f"{package}._qwen:FORMAT",
            (place("~/.qwen", "projects/*/chats/*.jsonl"), place("~/.qwen", "tmp/*/chats/*.jsonl")),
        ),
        TranscriptReader("sharegpt", "ShareGPT", f"{package}._sharegpt:FORMAT"),
    ]
