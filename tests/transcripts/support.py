"""Small sessions of every program, made up, and what their lines became."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nexus_core.transcripts.base import Transcript, TranscriptEntry
from nexus_core.transcripts.read import read_transcript

SAMPLES = Path(__file__).parent / "samples"
AGENTS = Path(__file__).parent / "agents"
"""Sessions of the programs that the plugin `transcripts` reads."""


def sample(name: str) -> Transcript:
    return read_transcript((SAMPLES / name).read_text(encoding="utf-8"), name)


def agent_sample(name: str) -> Transcript:
    return read_transcript((AGENTS / name).read_text(encoding="utf-8"), name)


def read(*lines: dict[str, Any] | str) -> Transcript:
    """A session with these lines, objects or texts."""
    return read_transcript([line if isinstance(line, str) else json.dumps(line) for line in lines])


def said(entries: tuple[TranscriptEntry, ...]) -> list[str]:
    """What each entry says, in short: its words, calls and results."""
    return [_said(entry) for entry in entries]


def _said(entry: TranscriptEntry) -> str:
    message = entry.message
    calls = "".join(f" {call.name}()" for call in message.tool_calls)
    results = "".join(f" = {result.text.strip()}" for result in message.tool_results)
    return f"{message.role}: {message.content}{calls}{results}"


def every_line(transcript: Transcript) -> list[int]:
    """The lines in the report, whatever became of them."""
    return sorted(number for numbers in transcript.report.outcomes.values() for number in numbers)


def write_opencode_tree(root: Path) -> Path:
    """Write the session of OpenCode as its older tree of files, and return the file of the session."""
    body = json.loads((AGENTS / "opencode.json").read_text(encoding="utf-8"))
    session = root / "storage/session/p/ses_1.json"
    session.parent.mkdir(parents=True)
    session.write_text(json.dumps(body["info"]), encoding="utf-8")
    for message in body["messages"]:
        file = root / "storage/message/ses_1" / f"{message['info']['id']}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(message["info"]), encoding="utf-8")
        for number, part in enumerate(message["parts"]):
            piece = root / "storage/part" / message["info"]["id"] / f"{number:03}.json"
            piece.parent.mkdir(parents=True, exist_ok=True)
            piece.write_text(json.dumps(part), encoding="utf-8")
    return session
