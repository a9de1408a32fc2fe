"""Entries of a newer version of a program: kept, counted, and reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nexus_core.transcripts.read import read_transcript
from tests.transcripts.support import AGENTS, SAMPLES

TIME = "2026-03-02T10:00:00.000Z"
UNKNOWN: dict[str, dict[str, Any]] = {
    "antigravity.jsonl": {"step_index": 90, "source": "MODEL", "type": "NEW", "status": "DONE", "created_at": TIME},
    "claude.jsonl": {"type": "NEW", "sessionId": "bakery-1", "timestamp": TIME},
    "codex.jsonl": {"type": "NEW", "timestamp": TIME, "payload": {"oven": 1}},
    "copilot.jsonl": {"type": "assistant.NEW", "data": {"oven": 1}, "id": "x", "timestamp": TIME, "parentId": None},
    "cursor.jsonl": {"type": "NEW", "oven": 1},
    "droid.jsonl": {"type": "NEW", "oven": 1},
    "droid_stream.jsonl": {"type": "NEW", "session_id": "s"},
    "gemini_cli.jsonl": {"type": "NEW", "timestamp": TIME, "content": "hot"},
    "grok.jsonl": {"type": "NEW", "oven": 1},
    "kimi.jsonl": {"type": "context.NEW", "time": 1772355700000},
    "kimi_context.jsonl": {"role": "_NEW", "content": "hot"},
    "openhands_events.jsonl": {"kind": "NEW", "id": "x", "source": "agent", "timestamp": TIME},
    "pi.jsonl": {"type": "NEW", "timestamp": TIME},
    "qwen.jsonl": {"type": "NEW", "sessionId": "s", "timestamp": TIME},
}
"""By sample, an entry that no version of its program has written yet."""


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_entry_is_kept_counted_and_reported(name: str) -> None:
    folder = SAMPLES if (SAMPLES / name).exists() else AGENTS
    known = (folder / name).read_text(encoding="utf-8")
    entry = json.dumps(UNKNOWN[name])
    before = read_transcript(known, name)

    after = read_transcript(f"{known}{entry}\n{entry}\n", name)

    assert [each.message for each in after.entries] == [each.message for each in before.entries]
    assert [line.value for line in after.metadata].count(UNKNOWN[name]) == 2
    (note,) = (each.text for each in after.report.notes if "NEW" in each.text)
    assert note.endswith("2 times: kept, not part of a message")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ({"type": "NEW", "text": "hot"}, "NEW"),
        ({"type": "NEW", "payload": 5}, "NEW"),
        ({"type": "response_item", "payload": 5}, "response_item without a payload"),
        ({"type": "compacted", "message": "hot"}, "compacted without a payload"),
        ({"type": ["NEW"]}, "untyped"),
    ],
)
def test_an_unknown_line_of_codex_without_a_payload_is_reported(line: dict[str, Any], kind: str) -> None:
    known = (SAMPLES / "codex.jsonl").read_text(encoding="utf-8")
    before = read_transcript(known)

    after = read_transcript(f"{known}{json.dumps(line)}\n")

    assert (after.messages, after.compactions) == (before.messages, before.compactions)
    assert after.metadata[-1].value == line
    assert after.report.notes[-1].text == f"unknown type '{kind}', once: kept, not part of a message"


def test_an_unknown_event_of_codex_is_reported() -> None:
    known = (SAMPLES / "codex.jsonl").read_text(encoding="utf-8")
    event = {"type": "event_msg", "timestamp": TIME, "payload": {"type": "NEW", "oven": 1}}

    transcript = read_transcript(f"{known}{json.dumps(event)}\n")

    assert transcript.report.notes[-1].text.startswith("an event that is new (NEW); it is kept as it is")


@pytest.mark.parametrize("name", ["cursor.jsonl", "droid.jsonl", "kimi.jsonl"])
def test_a_message_with_an_unknown_role_is_shown_with_a_note(name: str) -> None:
    text = (AGENTS / name).read_text(encoding="utf-8").replace('"role": "user"', '"role": "baker"', 1)

    transcript = read_transcript(text, name)

    assert "unknown role 'baker', shown as the user's" in [note.text for note in transcript.report.notes]
