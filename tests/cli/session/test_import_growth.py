"""A transcript that is imported while it grows gives the same answers as one that is imported at once."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nexus_core.errors import TranscriptError
from nexus_core.history.ledger.memory import MemoryLedger
from nexus_core.session.importing.tallies import tally_until
from tests.conftest import Cli
from tests.dialects.transcripts.support import SAMPLES
from tests.session.importing.support import assistant, bring, calls, live_steps_of, result, usage, user, written

SPLIT = [
    user("u", None, "Which of both is older?"),
    assistant("a", "u", {"type": "thinking", "thinking": "I look.", "signature": "c2ln"}, id="msg-1", **usage(10)),
    assistant("b", "a", "Let me look.", id="msg-1", **usage(10)),
    assistant("c", "b", {"type": "tool_use", "id": "t1", "name": "look", "input": {}}, id="msg-1", **usage(12)),
    result("r", "c", "t1"),
    assistant("d", "r", "The first.", id="msg-2", **usage(20)),
    assistant("e", "d", "It is of 1900.", id="msg-2", **usage(21)),
    user("m", "e", "Task 3 has ended.", isMeta=True),
    user("v", "m", "Thanks."),
    assistant("f", "v", "You are welcome."),
]
"""Replies in several lines, each with one block; and a program that says something behind a reply."""
REWOUND = [
    {**line, "timestamp": f"2026-03-02T09:00:0{place}.000Z"}
    for place, line in enumerate(
        [
            user("u", None, "First."),
            assistant("a", "u", "One."),
            user("v", "a", "Second."),
            assistant("b", "v", "Two."),
            user("w", "a", "Rather this."),
            assistant("c", "w", "Three."),
        ]
    )
]
"""The user went back to the first reply."""
RESUMED = [
    {**line, "sessionId": "s-1" if place < 2 else "s-2" if place < 4 else "s-3"}
    for place, line in enumerate(
        [
            user("u", None, "First."),
            assistant("a", "u", "One."),
            user("v", "a", "Second."),
            assistant("b", "v", "Two."),
            user("w", "b", "Third."),
            calls("c", "w", "t1"),
            result("r", "c", "t1"),
        ]
    )
]
"""A session that was resumed twice has three ids."""
FILES = {
    "split.jsonl": written(*SPLIT),
    "rewound.jsonl": written(*REWOUND),
    "resumed.jsonl": written(*RESUMED),
    **{path.name: path.read_text(encoding="utf-8") for path in sorted(Path(SAMPLES).glob("*.jsonl"))},
}
VARYING = {
    "created",
    "updated",
    "head",
    "tip",
    "step",
    "steps",
    "turn",
    "open_turn",
    "id",
    "root",
    "left_from",
    "forks",
}
VARYING |= {"key", "ledger", "first_kept", "first_miss"}
"""Names and times of steps, and how many there are: what was taken back stays in the ledger."""


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _comparable(each) for name, each in value.items() if name not in VARYING}
    return [_comparable(each) for each in value] if isinstance(value, list) else value


def _answers(cli: Cli, ledger: str, word: str) -> dict[str, Any]:
    """Everything that commands say of a ledger."""

    def ask(*arguments: str) -> Any:
        outcome = cli(*arguments, "--ledger", ledger, "--json")
        assert outcome.code == 0, outcome.err
        return _comparable(json.loads(outcome.out))

    listed = sorted(ask("session", "list")["sessions"], key=lambda each: str(each["label"]))
    found = ask("session", "search", word)["found"]
    answers = {
        "list": listed,
        "stats": ask("session", "stats"),
        "tree": ask("session", "tree", "--all"),
        # Results that came one by one are in steps of their own, and what forks share is found in one of them.
        "search": sorted({(each["kind"], each["text"]) for each in found if each["kind"] != "result"}),
    }
    for session in listed:
        for command in (("session", "stats"), ("session", "show"), ("context", "--session")):
            answers[f"{command} {session['label']}"] = ask(*command, session["label"])
    return answers


@pytest.mark.parametrize("name", sorted(FILES))
def test_import_line_by_line_gives_the_answers_of_an_import_at_once(
    cli: Cli, tmp_path: Path, nexus_home: Path, name: str
) -> None:
    lines = FILES[name].splitlines(keepends=True)
    file = tmp_path / name
    grown, fresh = (f"sqlite:///{nexus_home / each}" for each in ("grown.db", "fresh.db"))
    for end in range(1, len(lines) + 1):
        file.write_text("".join(lines[:end]), encoding="utf-8")
        cli("session", "import", str(file), "--ledger", grown)
    cli("session", "import", str(file), "--ledger", fresh)

    assert _answers(cli, grown, "e") == _answers(cli, fresh, "e")


@pytest.mark.parametrize("name", sorted(FILES))
def test_import_of_any_beginning_and_the_whole_is_an_import_at_once(name: str) -> None:
    lines = FILES[name].splitlines(keepends=True)
    whole = MemoryLedger()
    bring(whole, "".join(lines), name)

    for end in range(1, len(lines)):
        ledger = MemoryLedger()
        for text in ("".join(lines[:end]), "".join(lines)):
            with suppress(TranscriptError):  # some beginnings are not recognised by themselves
                bring(ledger, text, name)

        assert _numbers(ledger) == _numbers(whole), end
        assert list(ledger.verify()) == []


def _numbers(ledger: MemoryLedger) -> dict[str, object]:
    return {
        record.label: (
            tally_until(ledger, record.tip)._replace(steps=0),
            [message for step in live_steps_of(ledger, record.label) for message in step.messages],
            record.data.get("model"),
        )
        for record in ledger.sessions(status=None)
    }


def test_import_under_a_later_session_id_continues_the_session(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "resumed.jsonl"
    file.write_text(written(*RESUMED[:2]), encoding="utf-8")
    cli("session", "import", str(file))
    file.write_text(written(*RESUMED), encoding="utf-8")

    cli("session", "import", str(file))

    listed = json.loads(cli("session", "list", "--json").out)["sessions"]
    assert [(each["label"], each["turns"]) for each in listed] == [("claude-s-1", 3)]
