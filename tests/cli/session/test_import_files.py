"""`nexus session import`."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tracemalloc
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.errors import TranscriptError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.text.console import ProgressBar
from nexus_core.transcripts.locations import get_transcripts_directory
from nexus_core.transcripts.read import read_transcript
from nexus_core.transfer.transcript_steps import read_totals
from tests.cli.session.conftest import TypeIn
from tests.conftest import ROOT, Cli
from tests.transcripts.support import SAMPLES
from tests.transcripts.test_corpus import FILES
from tests.transfer.support import (
    assistant,
    calls,
    compacted,
    format_lines,
    import_lines,
    live_steps_of,
    result,
    sample_names,
    summary,
    usage,
    user,
)

CLAUDE = str(SAMPLES / "claude.jsonl")


@pytest.fixture(autouse=True)
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nobody's own sessions are read."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return tmp_path / "user"


def keep_for_claude(work: Path, name: str, text: str) -> Path:
    """A session that Claude Code keeps of a directory."""
    folder = get_transcripts_directory("claude") / "".join(sign if sign.isalnum() else "-" for sign in str(work))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text.replace("/srv/bakery", str(work)), encoding="utf-8")
    return folder / name


def facts(cli: Cli, *arguments: str) -> Any:
    outcome = cli("session", "import", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


# ---- what is said about it ----------------------------------------------------------------------------------------


def test_a_table_says_what_was_made_of_it(cli: Cli) -> None:
    outcome = cli("session", "import", CLAUDE)

    assert outcome.code == 0
    heading, *rows = outcome.out.splitlines()
    assert heading.split() == ["SESSION", "WHAT", "TURNS", "STEPS", "MESSAGES", "TOKENS", "FILE"]
    assert [row.split()[:5] for row in rows] == [
        ["claude-bakery-1", "new", "3", "13", "13"],
        ["claude-bakery-1/fork-1", "new", "2", "6", "7"],
        ["claude-bakery-1/agent-agent-7", "new", "1", "2", "2"],
    ]
    assert (
        "28 entries: 13 messages, 3 entries merged into others, 4 messages on branches, 2 entries of compactions,"
        " 6 entries kept as they are" in outcome.err
    )


def test_the_report_has_every_line_once(cli: Cli) -> None:
    (file,) = facts(cli, CLAUDE)["files"]

    report = read_transcript((SAMPLES / "claude.jsonl").read_text(encoding="utf-8")).report
    assert sum(file["outcomes"].values()) == file["lines"] == report.lines
    assert (file["label"], file["format"], file["id"]) == ("claude-bakery-1", "claude-code", "bakery-1")
    assert [session["kind"] for session in file["sessions"]] == ["main", "fork", "subagent"]


def test_what_was_repaired_and_what_was_skipped_is_told_with_the_reason(cli: Cli, work: Path) -> None:
    call = {"type": "tool_use", "id": "t", "name": "x", "input": {}}
    text = format_lines(user("u", None), "{broken", assistant("a", "u", "", call), user("v", "a"))
    (work / "odd.jsonl").write_text(text, encoding="utf-8")

    outcome = cli("session", "import", "odd.jsonl")

    assert "Warning: odd.jsonl:2: not JSON: " in outcome.err
    assert "1 entry skipped" in outcome.err
    assert "odd.jsonl: repaired in each request, unchanged in the ledger: 1 blank-text, 1 missing-result" in outcome.err
    assert "claude-s-1: its last turn is open: `nexus session record claude-s-1` says what it waits for" in outcome.err


def test_open_turns_of_several_sessions_are_named_in_one_line(cli: Cli, work: Path) -> None:
    for name in ("s", "t"):
        lines = format_lines(user("u", None, f"Hello {name}"), calls("a", "u", "t1")).replace("s-1", f"{name}-1")
        (work / f"{name}.jsonl").write_text(lines, encoding="utf-8")

    outcome = cli("session", "import", "s.jsonl", "t.jsonl")

    assert outcome.err.count("open") == 2  # the second is in the name of an option
    assert (
        "the last turn of 2 sessions is open (claude-s-1, claude-t-1): `nexus session record NAME` says" in outcome.err
    )


def test_what_is_said_about_an_open_turn_can_be_typed(cli: Cli, work: Path) -> None:
    (work / "s.jsonl").write_text(format_lines(user("u", None), calls("a", "u", "t1")), encoding="utf-8")
    outcome = cli("session", "import", "s.jsonl", "--name", "my talk")

    (command,) = re.findall(r"`nexus (session record .*?)`", outcome.err)
    asked = cli(*shlex.split(command))
    given_up = cli(*shlex.split(command), "--discard-open-turn")

    assert (asked.code, given_up.code) == (0, 0)
    assert "look" in asked.out + asked.err
    (listed,) = json.loads(cli("session", "list", "--json").out)["sessions"]
    assert listed["open_turn"] is None


# ---- the same numbers everywhere ----------------------------------------------------------------------------------


def counted(cli: Cli, label: str) -> dict[str, int]:
    """What `stats` says of a session."""
    stats = json.loads(cli("session", "stats", label, "--json").out)
    return {name: stats[name] for name in ("turns", "steps", "messages")} | {"tokens": sum(stats["tokens"].values())}


def reported(row: dict[str, Any]) -> dict[str, int]:
    return {name: row[name] for name in ("turns", "steps", "messages", "tokens")}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*sample_names(), *map(str, FILES)])
def test_the_report_says_what_stats_and_list_say(cli: Cli, name: str) -> None:
    planned = facts(cli, str(SAMPLES / name), "--dry-run")["files"][0]["sessions"]

    rows = facts(cli, str(SAMPLES / name))["files"][0]["sessions"]
    again = facts(cli, str(SAMPLES / name))["files"][0]["sessions"]

    assert rows == planned
    assert [reported(row) for row in rows] == [counted(cli, row["label"]) for row in rows]
    listed = {each["label"]: each for each in json.loads(cli("session", "list", "--json").out)["sessions"]}
    assert sorted(listed) == sorted(row["label"] for row in rows)
    for row in rows:
        assert {key: listed[row["label"]][key] for key in ("turns", "steps", "tokens")}.items() <= row.items()
    assert again == [row | {"what": "same", "added": 0} for row in rows]


def test_the_report_on_an_export_says_what_stats_say(cli: Cli) -> None:
    cli("session", "import", CLAUDE)
    cli("session", "fork", "claude-bakery-1", "claude-bakery-1/mine")
    cli("session", "export", "claude-bakery-1", "--with-forks", "-o", "export.jsonl")

    for ledger in ((), ("--ledger", "new.db"), ("--ledger", "new.db")):
        (file,) = facts(cli, "export.jsonl", *ledger)["files"]
        assert len(file["sessions"]) == 4
        for row in file["sessions"]:
            assert reported(row) == counted(cli, row["label"])


def test_the_numbers_go_on_where_somebody_goes_on_with_it(cli: Cli, type_in: TypeIn, work: Path) -> None:
    (work / "s.jsonl").write_text(format_lines(user("u", None), assistant("a", "u"), user("v", "a")), encoding="utf-8")
    (row,) = facts(cli, "s.jsonl")["files"][0]["sessions"]

    cli("session", "record", "claude-s-1", "--discard-open-turn")
    type_in("And now?")
    cli("session", "record", "claude-s-1", "-", "--role", "user")
    type_in("Now this.")
    cli("session", "record", "claude-s-1", "-", "--role", "assistant")

    after = counted(cli, "claude-s-1")
    (again,) = facts(cli, "s.jsonl")["files"][0]["sessions"]
    assert reported(again) == after
    assert {key: listed(cli)["claude-s-1"][key] for key in ("turns", "steps", "tokens")}.items() <= after.items()
    assert after["tokens"] > row["tokens"]


def test_what_is_new_is_told_beside_what_there_is(cli: Cli, work: Path) -> None:
    lines = [user("u", None), assistant("a", "u"), user("v", "a"), assistant("b", "v")]
    (work / "s.jsonl").write_text(format_lines(*lines[:2]), encoding="utf-8")
    cli("session", "import", "s.jsonl")
    (work / "s.jsonl").write_text(format_lines(*lines), encoding="utf-8")

    planned = cli("session", "import", "s.jsonl", "--dry-run").out.splitlines()[1]
    (row,) = facts(cli, "s.jsonl")["files"][0]["sessions"]

    assert planned.split()[:8] == ["claude-s-1", "would", "get", "2", "more", "steps", "2", "4"]
    assert (row["what"], row["added"]) == ("more", 2)
    assert reported(row) == counted(cli, "claude-s-1")


# ---- its own time and place ---------------------------------------------------------------------------------------


def listed(cli: Cli, *options: str) -> dict[str, dict[str, Any]]:
    sessions = json.loads(cli("session", "list", "--json", *options).out)["sessions"]
    return {session["label"]: session for session in sessions}


def milliseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def test_a_session_has_the_times_and_the_directory_of_the_conversation(cli: Cli) -> None:
    cli("session", "import", CLAUDE, str(SAMPLES / "codex.jsonl"), str(SAMPLES / "pi.jsonl"))

    sessions = listed(cli)
    assert {label: session["directory"] for label, session in sessions.items() if "/" not in label} == {
        "claude-bakery-1": "/srv/bakery",
        "codex-0199-weather": "/srv/weather",
        "pi-5d0c-garden": "/srv/garden",
    }
    talk = sessions["claude-bakery-1"]
    assert talk["created"] == milliseconds("2026-03-02T09:00:00Z")
    assert talk["updated"] == milliseconds("2026-03-02T09:00:24Z")
    shown = json.loads(cli("session", "show", "claude-bakery-1", "--limit", "all", "--json").out)
    steps = [step for turn in shown["turns"] for step in turn["steps"]]
    assert [step["created"] for step in steps] == [milliseconds(step["data"]["time"]) for step in steps]


def test_what_does_not_say_when_and_where_it_was_is_of_now_and_of_nowhere(cli: Cli) -> None:
    before = time.time() * 1000
    cli("session", "import", str(SAMPLES / "chat.json"))

    (session,) = listed(cli).values()
    assert session["directory"] == ""
    assert session["created"] >= int(before)


def test_one_that_was_looked_for_by_its_directory_is_about_that(cli: Cli, work: Path) -> None:
    keep_for_claude(work, "one.jsonl", format_lines(user("u", None)))

    cli("session", "import", "--from", "claude")

    assert [session["directory"] for session in listed(cli).values()] == [str(work)]


def test_it_does_not_count_as_changed_when_nothing_new_is_said(cli: Cli, work: Path) -> None:
    lines = [user("u", None, timestamp="2026-03-02T09:00:00Z"), assistant("a", "u")]
    (work / "s.jsonl").write_text(format_lines(*lines), encoding="utf-8")
    cli("session", "import", "s.jsonl")
    cli("session", "archive", "claude-s-1")
    cli("session", "export", "claude-s-1", "-o", "export.jsonl")
    before = listed(cli, "--include-archived")
    (work / "s.jsonl").write_text(format_lines(*lines, {"type": "summary", "sessionId": "s-1"}), encoding="utf-8")

    cli("session", "import", "s.jsonl")
    cli("session", "import", "export.jsonl")
    cli("session", "import", "export.jsonl", "--ledger", "elsewhere.db")

    assert listed(cli, "--include-archived") == before
    (elsewhere,) = listed(cli, "--include-archived", "--ledger", "elsewhere.db").values()
    assert elsewhere["status"] == "archived"
    assert elsewhere["updated"] == milliseconds("2026-03-02T09:00:00Z")


def test_listing_reads_no_more_of_a_longer_import(cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    thread = StoreLedger.thread

    def counting(self: StoreLedger, *names: Any, **options: Any) -> Any:
        read.append(len(steps := thread(self, *names, **options)))
        return steps

    monkeypatch.setattr(StoreLedger, "thread", counting)
    amounts = []
    for rounds in (60, 180):
        lines = [
            line
            for number in range(rounds)
            for line in (
                user(f"u{number}", f"a{number - 1}" if number else None),
                assistant(f"a{number}", f"u{number}"),
            )
        ]
        (work / "s.jsonl").write_text(format_lines(*lines), encoding="utf-8")
        cli("session", "import", "s.jsonl", "--ledger", f"{rounds}.db")
        read.clear()
        assert listed(cli, "--ledger", f"{rounds}.db")["claude-s-1"]["turns"] == rounds
        amounts.append(sum(read))

    assert 0 < amounts[0] == amounts[1]


def test_many_notes_are_cut_short(cli: Cli, work: Path) -> None:
    broken = [f"{' ' * column}broken" for column in range(9)]  # each with a note of its own
    (work / "odd.jsonl").write_text(format_lines(user("u", None), *broken), encoding="utf-8")

    outcome = cli("session", "import", "odd.jsonl")

    assert outcome.err.count("odd.jsonl:") == 7
    assert "4 more notes; --json has all of them" in outcome.err
    assert len(facts(cli, "odd.jsonl", "--ledger", "other.db")["files"][0]["notes"]) == 9


def test_note_on_several_lines_is_printed_once(cli: Cli, work: Path) -> None:
    (work / "odd.jsonl").write_text(format_lines(user("u", None), *["broken"] * 9, ""), encoding="utf-8")

    outcome = cli("session", "import", "odd.jsonl")

    assert "Warning: odd.jsonl:2, 3, 4, 5, 6, …: not JSON: " in outcome.err
    assert len(facts(cli, "odd.jsonl", "--ledger", "other.db")["files"][0]["notes"]) == 9


def test_many_files_are_summed_and_unchanged_ones_counted(cli: Cli, work: Path) -> None:
    names = [f"{number}.jsonl" for number in range(5)]
    for number, name in enumerate(names):
        text = format_lines(user(f"u{number}", None), assistant(f"a{number}", f"u{number}"))
        (work / name).write_text(text.replace('"s-1"', f'"s-{number}x"'), encoding="utf-8")

    first = cli("session", "import", *names[:4])
    second = cli("session", "import", *names)

    assert "4 files, 8 entries: 8 messages (--json has each file)\n" in first.err
    assert "0.jsonl" not in first.err
    assert "`nexus session list` lists all sessions" in first.err
    assert "4 files imported before, as they are\n" in second.err
    assert len(second.out.splitlines()) == 2


def test_nothing_that_a_transcript_says_steers_the_terminal(cli: Cli, work: Path) -> None:
    evil = user("\x1b[2J", None, "\x1b]0;x\x07") | {"sessionId": "\x1b[31m", "parentUuid": "\x1b[0m"}
    (work / "evil\x1b[5m.jsonl").write_text(format_lines(evil, "{\x1b[1m"), encoding="utf-8")

    outcome = cli("session", "import", "evil\x1b[5m.jsonl")

    assert outcome.code == 0
    assert "\x1b" not in outcome.out + outcome.err


# ---- again, and more ----------------------------------------------------------------------------------------------


def test_importing_it_again_changes_nothing(cli: Cli, nexus: Nexus) -> None:
    cli("session", "import", CLAUDE)
    before = list(nexus.ledger.steps())

    outcome = cli("session", "import", CLAUDE)

    assert outcome.out.splitlines()[1].split()[:3] == ["claude-bakery-1", "same", "3"]
    assert "imported before" in outcome.err
    assert list(nexus.ledger.steps()) == before


def test_what_is_new_is_added(cli: Cli, work: Path) -> None:
    lines = [user("u", None), assistant("a", "u"), user("v", "a"), assistant("b", "v")]
    (work / "s.jsonl").write_text(format_lines(*lines[:2]), encoding="utf-8")
    cli("session", "import", "s.jsonl")
    (work / "s.jsonl").write_text(format_lines(*lines), encoding="utf-8")

    (session,) = facts(cli, "s.jsonl")["files"][0]["sessions"]

    assert (session["what"], session["added"], session["steps"]) == ("more", 2, 4)


def test_a_fork_is_told_with_its_reason(cli: Cli, work: Path, nexus: Nexus) -> None:
    lines = [user("u", None), assistant("a", "u"), user("v", "a"), assistant("b", "v")]
    (work / "s.jsonl").write_text(format_lines(*lines[:2]), encoding="utf-8")
    cli("session", "import", "s.jsonl")
    nexus.session("claude-s-1").ask("Mine.")
    (work / "s.jsonl").write_text(format_lines(*lines), encoding="utf-8")

    outcome = cli("session", "import", "s.jsonl")

    assert outcome.code == 0
    assert "'claude-s-1' was continued here since it was imported; what is new is in 'claude-s-1/fork-1'" in (
        outcome.err
    )


def test_a_dry_run_writes_nothing(cli: Cli, nexus_home: Path) -> None:
    outcome = cli("session", "import", CLAUDE, "--dry-run")

    assert "would be new" in outcome.out
    assert not (nexus_home / "ledger.db").exists()
    assert facts(cli, CLAUDE, "--dry-run")["dry_run"] is True


@pytest.mark.parametrize("first", [[], ["a.jsonl"]])
def test_a_dry_run_of_several_files_of_a_conversation_promises_what_the_import_does(
    cli: Cli, work: Path, first: list[str]
) -> None:
    lines = Path(CLAUDE).read_text(encoding="utf-8").splitlines(keepends=True)
    (work / "a.jsonl").write_text("".join(lines[:-2]), encoding="utf-8")
    (work / "b.jsonl").write_text("".join(lines), encoding="utf-8")
    (work / "c.jsonl").write_text("".join([*lines[:2], *lines[-1:]]), encoding="utf-8")
    for name in first:
        cli("session", "import", name)
    files = ["a.jsonl", "b.jsonl", "c.jsonl", "a.jsonl"]

    planned = facts(cli, *files, "--dry-run")
    again = facts(cli, *files, "--dry-run")

    assert planned == again
    assert planned["files"] == facts(cli, *files)["files"]


def test_a_session_can_be_named(cli: Cli, nexus: Nexus) -> None:
    cli("session", "import", CLAUDE, "--name", "bakery")

    assert sorted(record.label for record in nexus.ledger.sessions()) == [
        "bakery",
        "bakery/agent-agent-7",
        "bakery/fork-1",
    ]
    assert cli("session", "import", str(SAMPLES / "pi.jsonl"), "--name", "bakery").code == 3


def test_standard_input_is_read(cli: Cli, type_in: TypeIn, nexus: Nexus) -> None:
    type_in((SAMPLES / "chat.json").read_text(encoding="utf-8"))

    outcome = cli("session", "import", "-", "--name", "chat")

    assert outcome.code == 0
    assert nexus.ledger.session("chat") is not None


def test_another_ledger_is_made_where_it_is_named(cli: Cli, work: Path, nexus: Nexus) -> None:
    assert cli("session", "import", CLAUDE, "--ledger", "new.db").code == 0

    assert (work / "new.db").exists()
    assert nexus.ledger.sessions() == []


# ---- several, and what cannot be read -----------------------------------------------------------------------------


def test_one_that_cannot_be_read_does_not_stop_the_others(cli: Cli, work: Path, nexus: Nexus) -> None:
    (work / "no.txt").write_text("hello", encoding="utf-8")

    outcome = cli("session", "import", "no.txt", "missing.jsonl", CLAUDE)

    assert outcome.code == 3
    assert "no such file" in outcome.err
    assert "no.txt:1" in outcome.err
    assert nexus.ledger.session("claude-bakery-1") is not None
    again = json.loads(cli("session", "import", "no.txt", CLAUDE, "--json").out)
    assert [each["file"] for each in again["refused"]] == ["no.txt"]


@pytest.mark.parametrize(
    "arguments",
    [
        (CLAUDE, "--from", "claude"),
        (CLAUDE, "--watch", "--dry-run"),
        ("-", "--watch"),
        (CLAUDE, CLAUDE, "--name", "x"),
        ("--from", "claud"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("session", "import", *arguments).code == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 1000,
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"a":' * 5000,
        b'{"messages":[{"role":"user","content":' + b"[" * 500 + b"]" * 500 + b"}]}",
        b'{"nexus_session":1}',
        b'{"nexus_session":99,"sessions":[]}\n',
        b'{"type":"user","message":7}\n' * 3,
        b'{"type":"user","uuid":[],"parentUuid":{},"sessionId":7,"message":{"role":"user","content":"x"}}\n' * 3,
        b'{"payload":{"type":"message","role":"user"},"type":"response_item"}\n' * 3,
        b'{"mapping":{"a":{"parent":"a","message":{"author":{"role":"user"},"content":{"parts":["x"]}}}}}',
        b'{"role":"user","content":1e999}\n',
        b"9" * 100_000,
    ],
)
def test_no_file_is_a_defect(cli: Cli, work: Path, content: bytes) -> None:
    (work / "odd.jsonl").write_bytes(content)

    outcome = cli("session", "import", "odd.jsonl")

    assert outcome.code in (0, 3), outcome.err
    assert "defect" not in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.skipif(not FILES, reason="there are no sessions of real people here")
def test_every_real_session_is_imported_and_the_ledger_is_sound(cli: Cli, nexus: Nexus) -> None:
    outcome = cli("session", "import", *map(str, FILES))

    assert outcome.code == 0, outcome.err
    assert list(nexus.ledger.verify()) == []
    assert all(row.split()[1] == "same" for row in cli("session", "import", *map(str, FILES)).out.splitlines()[1:])


def test_a_link_is_followed_but_nothing_else_is_read(cli: Cli, work: Path) -> None:
    (work / "link.jsonl").symlink_to(CLAUDE)
    (work / "environ.jsonl").symlink_to("/proc/self/environ")
    os.mkfifo(work / "pipe.jsonl")

    assert cli("session", "import", "link.jsonl").code == 0
    for name in ("environ.jsonl", "pipe.jsonl"):
        outcome = cli("session", "import", name)
        assert outcome.code == 3
        assert "not a regular file" in outcome.err


def test_a_half_character_at_the_end_costs_its_line(cli: Cli, work: Path) -> None:
    (work / "s.jsonl").write_bytes(format_lines(user("u", None)).encode() + b'{"type":"assistant","x":"\xc3')

    outcome = cli("session", "import", "s.jsonl")

    assert outcome.code == 0
    assert "s.jsonl:2: not UTF-8" in outcome.err
    assert "incomplete, as in a session that is being written" in outcome.err


# ---- where programs keep them -------------------------------------------------------------------------------------


def test_the_sessions_of_this_directory_are_found(cli: Cli, work: Path, nexus: Nexus) -> None:
    keep_for_claude(work, "one.jsonl", (SAMPLES / "claude.jsonl").read_text(encoding="utf-8"))

    listed = cli("session", "import", "--from", "claude", "--list")
    outcome = cli("session", "import", "--from", "claude")

    assert listed.out.splitlines()[0].split() == ["BYTES", "CHANGED", "FILE"]
    assert listed.out.splitlines()[1].endswith("one.jsonl")
    assert outcome.code == 0
    assert nexus.ledger.session("claude-bakery-1") is not None
    listing = json.loads(cli("session", "import", "--from", "claude", "--list", "--json").out)
    assert [Path(each["file"]).name for each in listing["files"]] == ["one.jsonl"]


def test_each_session_that_is_found_is_one_by_itself(cli: Cli, work: Path, nexus: Nexus) -> None:
    for name in ("one", "two"):
        keep_for_claude(work, f"{name}.jsonl", format_lines(user("u", None, name) | {"sessionId": name}))

    cli("session", "import", "--from", "claude")

    assert sorted(record.label for record in nexus.ledger.sessions()) == ["claude-one", "claude-two"]


def test_where_there_are_none_it_says_where_it_looked(cli: Cli) -> None:
    outcome = cli("session", "import", "--from", "codex")

    assert (outcome.code, outcome.out) == (0, "")
    assert "codex keeps no session of this directory in " in outcome.err
    assert facts(cli, "--from", "pi")["files"] == []


def test_an_imported_compaction_is_shown(cli: Cli, work: Path) -> None:
    lines = [user("u", None), assistant("a", "u"), compacted("c", "a"), summary("s", "c", "so far"), user("v", "s")]
    (work / "s.jsonl").write_text(format_lines(*lines), encoding="utf-8")
    cli("session", "import", "s.jsonl")

    assert cli("session", "show", "claude-s-1").code == 0
    assert cli("session", "tree", "claude-s-1").code == 0
    assert "claude-s-1" in cli("session", "list").out


# ---- long work ----------------------------------------------------------------------------------------------------


def test_a_bar_says_how_far_it_is(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[float] = []
    monkeypatch.setattr(ProgressBar, "advance", lambda _, amount: moved.append(amount))

    cli("session", "import", CLAUDE, str(SAMPLES / "pi.jsonl"))

    sizes = sum((SAMPLES / name).stat().st_size for name in ("claude.jsonl", "pi.jsonl"))
    assert sum(moved) == pytest.approx(sizes)


ROUNDS, FORKS = 800, 60


def conversation() -> str:
    """A session with many turns, and many forks from one of them."""
    lines: list[dict[str, Any]] = []
    for number in range(ROUNDS):
        before = f"a{number - 1}" if number else None
        lines += [user(f"u{number}", before), assistant(f"a{number}", f"u{number}", "x" * 400)]
    for number in range(FORKS):
        lines += [user(f"x{number}", "a100"), assistant(f"y{number}", f"x{number}")]
    return format_lines(*lines)


def start(work: Path, home: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "nexus_core", "session", "import", "s.jsonl"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'plugins'}", "NEXUS_HOME": str(home)}
    return subprocess.Popen(command, cwd=work, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.slow
def test_an_import_that_is_killed_leaves_nothing_half(tmp_path: Path, work: Path, nexus_home: Path) -> None:
    (work / "s.jsonl").write_text(conversation(), encoding="utf-8")
    begun = time.monotonic()
    assert start(work, tmp_path / "undisturbed").wait() == 0
    whole = time.monotonic() - begun
    seen: list[int] = []

    for turn in range(20):
        program = start(work, nexus_home)
        time.sleep(whole * (0.4 + turn * 0.03))
        program.send_signal(signal.SIGKILL)
        was_killed = program.wait() == -signal.SIGKILL
        with Nexus(work, home=nexus_home) as nexus:
            found = nexus.ledger.sessions(status=None)
            assert list(nexus.ledger.verify()) == []
            lengths = {len(nexus.ledger.thread(str(record.tip))) for record in found}
            assert lengths <= {204, 2 * 101 + 2, 2 * ROUNDS, 2 * 101 + 2 * (ROUNDS - 101)}
        if not was_killed:
            break
        seen.append(len(found))

    assert start(work, nexus_home).wait() == 0
    with Nexus(work, home=nexus_home) as nexus:
        assert len(nexus.ledger.sessions(status=None)) == 1 + FORKS
        assert list(nexus.ledger.verify()) == []
    print(f"{len(seen)} kills; so many sessions were there afterwards: {seen}")  # noqa: T201 - the figure
    assert len(seen) >= 3
    assert seen == sorted(seen)


def test_a_name_for_what_was_imported_before_is_said_to_be_unused(cli: Cli) -> None:
    cli("session", "import", CLAUDE, "--name", "bakery")

    outcome = cli("session", "import", CLAUDE, "--name", "bread roll")
    (file,) = facts(cli, CLAUDE, "--name", "bread roll")["files"]
    (same,) = facts(cli, CLAUDE, "--name", "bakery")["files"]

    assert "imported before as 'bakery', and still called so" in outcome.err
    assert "`nexus session rename bakery 'bread roll'`" in outcome.err
    assert (file["label"], file["unused_label"], same["unused_label"]) == ("bakery", "bread roll", None)


def test_a_name_for_one_that_has_grown_is_said_to_be_unused_too(cli: Cli, tmp_path: Path) -> None:
    text = (SAMPLES / "claude.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    file = tmp_path / "talk.jsonl"
    file.write_text("".join(text[:8]), encoding="utf-8")
    cli("session", "import", str(file), "--name", "bakery")
    file.write_text("".join(text), encoding="utf-8")

    (grown,) = facts(cli, str(file), "--name", "other")["files"]

    assert (grown["label"], grown["unused_label"]) == ("bakery", "other")


def test_instructions_before_the_first_question_are_no_turn(cli: Cli, work: Path) -> None:
    said = [("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello."), ("user", "Why?"), ("assistant", "So.")]
    (work / "chat.json").write_text(json.dumps({"messages": [{"role": role, "content": text} for role, text in said]}))

    (row,) = facts(cli, "chat.json")["files"][0]["sessions"]

    assert row["turns"] == 2
    assert listed(cli)["chat"]["turns"] == 2
    assert json.loads(cli("session", "stats", "chat", "--json").out)["turns"] == 2
    assert "earlier turn" not in cli("session", "show", "chat").out


# ---- what is refused, and files with several conversations --------------------------------------------------------


def vscode_chat(work: Path) -> str:
    chat = {"version": 3, "requesterUsername": "me", "responderUsername": "GitHub Copilot", "requests": []}
    (work / "chat.json").write_text(json.dumps(chat), encoding="utf-8")
    return "chat.json"


def test_a_foreign_format_is_refused_by_name_and_nothing_is_written(cli: Cli, work: Path) -> None:
    outcome = cli("session", "import", vscode_chat(work))

    assert (outcome.code, outcome.out) == (3, "")
    assert "Error: this is a chat session of VS Code; Nexus cannot read it yet" in outcome.err
    assert json.loads(cli("session", "list", "--json").out)["sessions"] == []


def test_the_context_of_a_foreign_format_is_refused_by_name(cli: Cli, work: Path) -> None:
    outcome = cli("context", vscode_chat(work))

    assert outcome.code == 3
    assert "this is a chat session of VS Code; Nexus cannot read it yet" in outcome.err


def test_a_refusal_has_a_code_for_programs(cli: Cli, work: Path) -> None:
    outcome = cli("session", "import", vscode_chat(work), "--json")

    assert outcome.code == 3
    assert json.loads(outcome.out)["refused"] == [
        {
            "file": "chat.json",
            "reason": "this is a chat session of VS Code; Nexus cannot read it yet",
            "code": "unsupported-format",
        }
    ]


def exported(name: str, *texts: str) -> dict[str, Any]:
    """A conversation as ChatGPT exports it."""
    nodes: dict[str, Any] = {"root": {"id": "root", "parent": None, "message": None}}
    parent = "root"
    for number, text in enumerate(texts):
        role = "assistant" if number % 2 else "user"
        message = {"author": {"role": role}, "content": {"content_type": "text", "parts": [text]}}
        nodes[f"{name}-{number}"] = {"id": f"{name}-{number}", "parent": parent, "message": message}
        parent = f"{name}-{number}"
    return {"title": name, "conversation_id": name, "current_node": parent, "mapping": nodes}


def test_every_conversation_of_an_export_of_chatgpt_becomes_a_session(cli: Cli, work: Path) -> None:
    bread, soup = exported("bread", "Bake?", "Yes."), exported("soup", "Cook?", "No.", "Why?", "Hot.")
    (work / "conversations.json").write_text(json.dumps([bread, soup], indent=1), encoding="utf-8")

    first = facts(cli, "conversations.json")["files"]
    soup["mapping"] |= exported("soup", "Cook?", "No.", "Why?", "Hot.", "So?", "Wait.")["mapping"]
    soup["current_node"] = "soup-5"
    (work / "conversations.json").write_text(json.dumps([bread, soup], indent=1), encoding="utf-8")
    again = facts(cli, "conversations.json")["files"]

    assert [(file["label"], file["sessions"][0]["messages"]) for file in first] == [
        ("chatgpt-bread", 2),
        ("chatgpt-soup", 4),
    ]
    assert first[1]["file"].startswith("conversations.json:")
    assert [file["sessions"][0]["what"] for file in again] == ["same", "more"]


def test_conversations_without_an_id_are_numbered(cli: Cli, work: Path) -> None:
    bodies = [{"messages": [{"role": "user", "content": text}]} for text in ("a", "b")]
    (work / "talks.json").write_text(json.dumps(bodies), encoding="utf-8")

    assert [file["label"] for file in facts(cli, "talks.json")["files"]] == ["talks", "talks-2"]
    assert [file["sessions"][0]["what"] for file in facts(cli, "talks.json")["files"]] == ["same", "same"]


def test_several_conversations_cannot_have_one_name(cli: Cli, work: Path) -> None:
    export = [exported("bread", "Bake?"), exported("soup", "Cook?")]
    (work / "conversations.json").write_text(json.dumps(export), encoding="utf-8")

    outcome = cli("session", "import", "conversations.json", "--name", "talk")

    assert outcome.code == 2
    assert "2 conversations cannot have one name" in outcome.err


def test_a_conversation_that_cannot_be_read_does_not_stop_the_others(cli: Cli, work: Path) -> None:
    export = [{"messages": [{"role": "nobody", "content": "x"}]}, 5, {"title": "gone"}, exported("soup", "Cook?")]
    (work / "talks.json").write_text(json.dumps(export), encoding="utf-8")

    outcome = cli("session", "import", "talks.json", "--json")

    assert outcome.code == 3
    assert [file["label"] for file in json.loads(outcome.out)["files"]] == ["chatgpt-soup"]
    assert [each["file"] for each in json.loads(outcome.out)["refused"]] == ["talks.json:1"] * 3


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
GROWING_FILES = {
    "split.jsonl": format_lines(*SPLIT),
    "rewound.jsonl": format_lines(*REWOUND),
    "resumed.jsonl": format_lines(*RESUMED),
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
        "tree": ask("session", "tree", "--limit", "all"),
        # Results that came one by one are in steps of their own, and what forks share is found in one of them.
        "search": sorted({(each["kind"], each["text"]) for each in found if each["kind"] != "result"}),
    }
    for session in listed:
        for command in (("session", "stats"), ("session", "show"), ("context", "--session")):
            answers[f"{command} {session['label']}"] = ask(*command, session["label"])
    return answers


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(GROWING_FILES))
def test_import_line_by_line_gives_the_answers_of_an_import_at_once(
    cli: Cli, tmp_path: Path, nexus_home: Path, name: str
) -> None:
    lines = GROWING_FILES[name].splitlines(keepends=True)
    file = tmp_path / name
    grown, fresh = (f"sqlite:///{nexus_home / each}" for each in ("grown.db", "fresh.db"))
    for end in range(1, len(lines) + 1):
        file.write_text("".join(lines[:end]), encoding="utf-8")
        cli("session", "import", str(file), "--ledger", grown)
    cli("session", "import", str(file), "--ledger", fresh)

    assert _answers(cli, grown, "e") == _answers(cli, fresh, "e")


@pytest.mark.parametrize("name", sorted(GROWING_FILES))
def test_import_of_any_beginning_and_the_whole_is_an_import_at_once(name: str) -> None:
    lines = GROWING_FILES[name].splitlines(keepends=True)
    whole = MemoryLedger()
    import_lines(whole, "".join(lines), name)

    for end in range(1, len(lines)):
        ledger = MemoryLedger()
        for text in ("".join(lines[:end]), "".join(lines)):
            with suppress(TranscriptError):  # some beginnings are not recognised by themselves
                import_lines(ledger, text, name)

        assert _numbers(ledger) == _numbers(whole), end
        assert list(ledger.verify()) == []


def _numbers(ledger: MemoryLedger) -> dict[str, object]:
    return {
        record.label: (
            read_totals(ledger, record.tip)._replace(steps=0),
            [message for step in live_steps_of(ledger, record.label) for message in step.messages],
            record.payload.model,
        )
        for record in ledger.sessions(status=None)
    }


def test_import_under_a_later_session_id_continues_the_session(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "resumed.jsonl"
    file.write_text(format_lines(*RESUMED[:2]), encoding="utf-8")
    cli("session", "import", str(file))
    file.write_text(format_lines(*RESUMED), encoding="utf-8")

    cli("session", "import", str(file))

    listed = json.loads(cli("session", "list", "--json").out)["sessions"]
    assert [(each["label"], each["turns"]) for each in listed] == [("claude-s-1", 3)]


# ---- how providers count --------------------------------------------------------------------------------------------


def growing(tokens: int) -> str:
    """A session of Claude Code in which every call has a thousand words, and so many tokens, more."""
    lines = []
    for number in range(6):
        asked, said = f"u{number}", f"a{number}"
        lines.append(user(asked, f"a{number - 1}" if number else None, "word " * 1200))
        lines.append(assistant(said, asked, "So.", **usage(20_000 + number * tokens)))
    return format_lines(*lines)


@pytest.mark.parametrize(("tokens", "ratio"), [(1420, 1.0), (1988, 1.4)])
def test_a_session_starts_from_what_imported_usage_teaches(
    cli: Cli, work: Path, nexus: Nexus, tokens: int, ratio: float
) -> None:
    (work / "s.jsonl").write_text(growing(tokens), encoding="utf-8")
    assert cli("session", "import", "s.jsonl").code == 0

    budget = nexus.session("new", model="claude-opus-4-5").preview("word " * 5000).token_budget

    assert budget.calibration is not None
    assert budget.calibration.estimate == pytest.approx(ratio, abs=0.02)


@pytest.mark.parametrize("arguments", [("--dry-run",), ()])
def test_nothing_is_learned_from_a_dry_run_or_from_impossible_usage(
    cli: Cli, work: Path, nexus: Nexus, arguments: tuple[str, ...]
) -> None:
    (work / "s.jsonl").write_text(growing(1988 if arguments else 9), encoding="utf-8")
    assert cli("session", "import", "s.jsonl", *arguments).code == 0

    budget = nexus.session("new", model="claude-opus-4-5").preview("word " * 5000).token_budget

    assert budget.calibration is not None
    assert (budget.calibration.replies, budget.calibration.estimate) == (0, 1.0)


def test_usage_without_a_model_teaches_nothing(cli: Cli, work: Path, nexus: Nexus) -> None:
    (work / "s.jsonl").write_text(growing(1988).replace('"model": "claude-opus-4-5", ', ""), encoding="utf-8")
    before = nexus.session("before").preview("word " * 5000).token_budget

    assert cli("session", "import", "s.jsonl").code == 0

    assert nexus.session("after").preview("word " * 5000).token_budget == before


def measure_peak(cli: Cli, names: list[str], code: int) -> int:
    tracemalloc.start()
    try:
        assert cli("session", "import", *names).code == code
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_messages_of_a_file_are_forgotten_before_the_next_is_imported(cli: Cli, work: Path) -> None:
    names = [f"{number}.jsonl" for number in range(10)]
    for name in names:
        lines = [user(f"u{turn}", f"u{turn - 1}" if turn else None, name, sessionId=name) for turn in range(300)]
        (work / name).write_text(format_lines(*lines))
    measure_peak(cli, names[:1], 0)  # imports modules, fills caches

    assert measure_peak(cli, names[2:], 0) < 3 * measure_peak(cli, names[1:2], 0)


def test_the_text_of_a_file_is_forgotten_before_the_next_is_read(cli: Cli, work: Path) -> None:
    names = ["1.jsonl", "2.jsonl", "3.jsonl"]
    for name in names:
        (work / name).write_text("x" * 4_000_000)  # refused, so that reading it needs most
    measure_peak(cli, names[:1], 3)

    assert measure_peak(cli, names, 3) < 1.2 * measure_peak(cli, names[:1], 3)
