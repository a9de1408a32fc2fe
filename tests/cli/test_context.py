"""`nexus context`."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.session.session import Session
from nexus_core.testing import write_files
from tests.conftest import ROOT, Cli, InstallPlugin
from tests.session.support import TOOLS, calls, says
from tests.transcripts.support import SAMPLES

GOLDEN = ROOT / "tests/golden"
LETTERS = """
from nexus_core import hookimpl


class Letters:
    name, exact = "letters", True

    def count(self, text):
        return len(text)

    def count_many(self, texts):
        return [len(text) for text in texts]

    def count_messages(self, messages):
        return sum(100 + len(message.content) for message in messages)


@hookimpl
def nexus_token_counter(model, encoding):
    return Letters()
"""


def table(out: str, heading: str) -> list[list[str]]:
    """The rows under a heading, without bars, and without the last, which must be their sum."""
    rows = all_rows(out, heading)
    if heading == "LEFT OUT":
        return rows
    *rows, total = rows
    assert sum(map(tokens_in, rows)) == tokens_in(total)
    return rows


def all_rows(out: str, heading: str) -> list[list[str]]:
    lines = out.splitlines()
    (start,) = (place for place, line in enumerate(lines) if line.startswith(heading))
    rows = []
    for line in lines[start + 1 :]:
        if not line:
            break
        rows.append(re.split(r"  +", re.sub(r"  #+", "", line)))
    return rows


def tokens_in(row: list[str]) -> int:
    return int(row[1].replace(",", ""))


UNKNOWN_TYPE = "Warning: claude.jsonl:28: unknown type 'oven-temperature', once: kept, not part of a message\n"


@pytest.mark.parametrize("name", ["claude.jsonl", "codex.jsonl", "gemini_cli.jsonl", "pi.jsonl", "chat.json"])
def test_the_whole_picture_of_a_transcript(name: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SAMPLES)

    outcome = cli("context", name)

    assert (outcome.code, outcome.err) == (0, UNKNOWN_TYPE if name == "claude.jsonl" else "")
    assert outcome.out == (GOLDEN / f"context_{name.partition('.')[0]}.txt").read_text(encoding="utf-8")


def test_a_transcript_is_only_read(cli: Cli, work: Path) -> None:
    text = (SAMPLES / "claude.jsonl").read_text(encoding="utf-8")
    write_files(work, {"session.jsonl": text})

    cli("context", "session.jsonl")

    assert [path.name for path in work.iterdir()] == ["session.jsonl"]
    assert (work / "session.jsonl").read_text(encoding="utf-8") == text


def test_the_model_may_be_named(cli: Cli) -> None:
    outcome = cli("context", str(SAMPLES / "claude.jsonl"), "-m", "gpt-4o")

    assert "tokens of 128,000 for gpt-4o (0.1%); exact, by tiktoken:o200k_base" in outcome.out


def test_without_a_model_in_it_the_configured_one_counts(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"provider": {"model": "gpt-4o"}}'})

    outcome = cli("context", str(SAMPLES / "messages.jsonl"))

    assert "for gpt-4o" in outcome.out


def test_a_window_that_nobody_knows_is_called_assumed(cli: Cli) -> None:
    outcome = cli("context", str(SAMPLES / "messages.jsonl"), "-m", "home-made")

    assert "of an assumed window of 128,000 for home-made" in outcome.out


def test_what_was_compacted_away_is_counted_on_demand(cli: Cli) -> None:
    now, everything = (
        json.loads(cli("context", str(SAMPLES / "claude.jsonl"), "--json", *options).out)
        for options in ((), ("--include-compacted",))
    )

    assert (len(now["messages"]), now["compacted_messages"]) == (6, 8)
    assert (len(everything["messages"]), everything["compacted_messages"]) == (13, 0)


def test_the_largest_messages_have_their_place_and_line(cli: Cli) -> None:
    outcome = cli("context", str(SAMPLES / "claude.jsonl"), "-n", "2")

    largest = table(outcome.out, "LARGEST")
    assert [row[0] for row in largest] == ["message 3", "message 0", "4 more messages"]
    assert [row[3] for row in largest[:2]] == ["25", "21"]
    assert len(table(outcome.out, "TOOL")) == 1


def test_nothing_is_listed_when_nothing_is_asked_for(cli: Cli) -> None:
    outcome = cli("context", str(SAMPLES / "claude.jsonl"), "-n", "0")

    assert "ROLE" in outcome.out
    assert "TOOL" not in outcome.out
    assert "LARGEST" not in outcome.out


def test_json_has_every_message_with_its_lines_and_the_sum_so_far(cli: Cli) -> None:
    document = json.loads(cli("context", str(SAMPLES / "codex.jsonl"), "--json", "--include-compacted").out)

    assert (document["schema"], document["format"], document["api"]) == (1, "codex", "responses")
    assert [message["lines"] for message in document["messages"]][:3] == [[2], [3], [5]]
    assert document["messages"][-1]["cumulative"] == document["total"]
    assert document["total"] == sum(role["tokens"] for role in document["roles"])
    assert document["largest"][0] == max(document["messages"], key=lambda message: message["tokens"])["place"]
    assert document["branches"] == [
        {"kind": "rolled-back", "name": "", "parent": "", "messages": 2, "first_line": 19, "last_line": 20}
    ]
    assert document["report"]["lines"] == 30


def test_json_says_what_the_last_answer_cost(cli: Cli) -> None:
    document = json.loads(cli("context", str(SAMPLES / "pi.jsonl"), "--json").out)

    assert document["last_usage"] == {
        "input_tokens": 450,
        "output_tokens": 11,
        "cached_input_tokens": 400,
        "cache_write_tokens": 30,
    }
    assert document["exact"] is False  # there is a picture in it


@pytest.mark.parametrize("counts", [{"input_tokens": 0, "output_tokens": 0}, {"input_tokens": 0, "output_tokens": 7}])
def test_input_that_was_not_counted_is_not_called_0(cli: Cli, work: Path, counts: dict[str, int]) -> None:
    lines = [json.loads(line) for line in (SAMPLES / "claude.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if "usage" in line.get("message", {}):
            line["message"]["usage"] = counts
    (work / "t.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    outcome = cli("context", "t.jsonl")

    assert outcome.code == 0
    assert "the provider counted" not in outcome.out
    assert ("All calls in the file cost" in outcome.out) == bool(counts["output_tokens"])


def test_a_transcript_may_come_through_a_pipe(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (SAMPLES / "messages.jsonl").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    outcome = cli("context", "-", "-m", "gpt-4o")

    assert outcome.code == 0
    assert outcome.out.startswith("-: messages (openai), 3 messages\n")


def test_broken_lines_are_named_and_cost_nothing_else(cli: Cli, work: Path) -> None:
    good = (SAMPLES / "messages.jsonl").read_text(encoding="utf-8")
    write_files(work, {"session.jsonl": good + "{oops\n" * 7 + '{"role": "us'})

    outcome = cli("context", "session.jsonl", "-m", "gpt-4o")

    assert (outcome.code, "3 messages" in outcome.out) == (0, True)
    assert outcome.err.splitlines()[0] == (
        "Warning: session.jsonl:4: not JSON: expecting property name enclosed in double quotes at column 2"
    )
    assert outcome.err.splitlines()[-1] == "Warning: 3 more notes; --json has all of them"


def test_half_a_character_at_the_end_is_no_trouble(cli: Cli, work: Path) -> None:
    line = json.dumps({"role": "user", "content": "grüezi"}, ensure_ascii=False).encode()
    (work / "session.jsonl").write_bytes(line + b"\n" + line[: line.index(b"\xbc")])

    outcome = cli("context", "session.jsonl", "-m", "gpt-4o")

    assert (outcome.code, "1 message\n" in outcome.out) == (0, True)
    assert "session.jsonl:2: not UTF-8" in outcome.err


def test_what_does_not_fit_into_the_window_is_a_finding(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"models": {"tiny": {"window": 10}}}'})

    outcome, everything = (
        cli("context", str(SAMPLES / "claude.jsonl"), "-m", "tiny", *each) for each in ((), ("--include-compacted",))
    )

    assert (outcome.code, everything.code) == (1, 0)
    assert "tokens of 10 for tiny" in outcome.out


@pytest.mark.parametrize(
    ("files", "arguments", "code", "message"),
    [
        ({}, ["missing.jsonl"], 2, "no such file or session\n  at missing.jsonl\n  `nexus session list`"),
        ({"d/x": ""}, ["d"], 3, "is a directory\n  at d"),
        ({"notes.md": "# Notes\n"}, ["notes.md"], 3, "not a transcript that Nexus knows\n  at notes.md:1"),
        ({"a.json": '[{"role": "usr", "content": ""}]'}, ["a.json"], 3, "at a.json:1, messages[0].role"),
        ({"a.json": "[]"}, ["a.json", "-n", "-1"], 2, "is not in the range"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(
    *, files: dict[str, str], arguments: list[str], code: int, message: str, cli: Cli, work: Path
) -> None:
    write_files(work, files)

    outcome = cli("context", *arguments)

    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err


def test_no_text_of_a_transcript_steers_the_terminal(cli: Cli, work: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "\x1b[2Jls", "arguments": "{}"}}
    messages = [{"role": "user", "content": "\x1b]0;title\x07"}, {"role": "assistant", "tool_calls": [call]}]
    write_files(work, {"a.json": json.dumps(messages)})

    outcome = cli("context", "a.json", "-m", "\x1b[31mgpt-4o")

    assert "\x1b" not in outcome.out + outcome.err
    assert "\\x1b[2Jls" in outcome.out


@pytest.mark.parametrize("columns", [60, 100, 150])
def test_on_a_terminal_lines_are_as_long_as_it_is_wide(columns: int, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    outcome = cli("context", str(SAMPLES / "claude.jsonl"))

    lines = outcome.out.split("\n\n", 1)[1].splitlines()  # behind the name of the file, which may be long
    assert columns - 20 < max(map(len, lines)) <= columns


def test_wide_characters_break_no_line_of_a_table(cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    messages = [{"role": "user", "content": f"⭐ Run 🚀 {number} " * 20} for number in range(12)]
    write_files(work, {"a.json": json.dumps(messages)})

    table = cli("context", "a.json").out.partition("LARGEST")[2].splitlines()

    assert len(table) == 13  # ten messages, the others and the sum under the heading
    assert table[-2].startswith("2 more messages ")


def test_without_a_file_the_prompt_is_counted_by_section(cli: Cli, work: Path) -> None:
    write_files(
        work, {".nexus3/NEXUS.md": "Be brief. " * 50, ".nexus3/config.json": '{"provider": {"model": "gpt-4o"}}'}
    )

    outcome = cli("context")

    assert outcome.code == 0
    assert outcome.out.splitlines()[0] == f"{work}: 5 sections of the system prompt"
    assert re.match(
        r"[\d,]+ tokens of 128,000 for gpt-4o \(0\.\d%\); exact, by tiktoken:o200k_base", outcome.out.splitlines()[1]
    )
    assert [row[0] for row in table(outcome.out, "SECTION")] == [
        "Default Configuration",
        "Project Configuration",
        "Agent Permissions",
        "Nexus Environment",
        "Environment",
        "framing",
    ]


def test_sections_have_their_source(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "Be brief."})

    document = json.loads(cli("context", "--json").out)

    sources = {section["title"]: section["source"]["uri"] for section in document["sections"]}
    assert sources["Project Configuration"] == f"{work}/.nexus3/NEXUS.md"
    assert sources["Environment"] == "plugin:environment"


def test_the_sections_together_are_nearly_the_prompt(cli: Cli) -> None:
    document = json.loads(cli("context", "--json").out)

    together = sum(section["tokens"] for section in document["sections"])
    assert 0 <= document["total"] - together <= 4 + 2 * len(document["sections"])


@pytest.fixture
def session(work: Path, nexus_home: Path) -> Iterator[Session]:
    """A conversation with a long result, kept beside the command line."""
    write_files(work, {".nexus3/NEXUS.md": "Be brief.", "SOUL.md": ""})
    with Nexus(work, home=nexus_home) as nexus:
        talk = nexus.session("auth-bug", model="claude-sonnet-4", tools=TOOLS)
        talk.ask("Why does login fail?")
        step = talk.record(calls("t1"))
        talk.record(step.tool_calls[0].result("word " * 500))
        talk.next()
        talk.record(says("It expires.", name="msg_2"))
        yield talk


@pytest.mark.acceptance("D-09")
def test_the_share_of_each_kind_is_told(cli: Cli, session: Session, work: Path) -> None:
    write_files(work, {".nexus3/SOUL.md": "You are Atlas."})
    session.reload()
    session.ask("And then?")

    document = json.loads(cli("context", "--session", session.name, "--json").out)

    kinds = document["kinds"]
    assert [name for name, tokens in kinds.items() if tokens] == [
        "workspace",
        "persona",
        "framing",
        "tools",
        "session",
        "event",
        "margin",
    ]
    assert sum(kinds.values()) == sum(document["zones"].values()) == document["total"]
    spoken_for = document["reserved"] + document["total"] + document["correction"]
    assert document["free"] == document["window"] - spoken_for


@pytest.mark.usefixtures("session")
def test_a_session_is_counted_by_zone_kind_layer_section_tool_and_message(cli: Cli) -> None:
    outcome = cli("context", "--session", "auth-bug")

    assert outcome.code == 0
    assert outcome.out.splitlines()[0] == ("session auth-bug: 5 sections of the system prompt, 1 tool, 5 messages")
    assert [row[0] for row in table(outcome.out, "ZONE")] == [
        "static",
        "history",
        "margin of the estimate",
        "for the answer",
        "for tool results",
        "free",
    ]
    assert "; estimated ±10 %, by tiktoken:o200k_base times 1.17 plus 60 a tool call" in outcome.out
    headings = [line.split()[0:4] for line in outcome.out.splitlines() if line.startswith(("ZONE", "KIND"))]
    assert headings == [["ZONE", "TOKENS", "OF", "WINDOW"], ["KIND", "TOKENS", "SHARE"]]
    assert [row[0] for row in table(outcome.out, "KIND")] == ["workspace", "persona", "framing", "tools", "session"]
    assert [row[0] for row in table(outcome.out, "LAYER")][:2] == ["defaults", "local"]
    assert [row[0] for row in table(outcome.out, "TOOL")] == ["look"]
    assert table(outcome.out, "LARGEST")[0][0] == "message 3"


@pytest.mark.usefixtures("session")
def test_a_tree_goes_from_the_whole_to_the_sections(cli: Cli, work: Path) -> None:
    outcome = cli("context", "--session", "auth-bug", "--tree")

    lines = outcome.out.split("\n\n", 1)[1].splitlines()
    names = [re.split(r"% +", line, maxsplit=1)[1].strip() for line in lines[1:]]
    assert names[:3] == ["request", "static", "workspace"]
    assert f"Project Configuration  {work}/.nexus3/NEXUS.md" in [re.sub(" {2,}", "  ", name) for name in names]
    assert [name for name in names if "message" in name] == [
        "user (2 messages)",
        "assistant (2 messages)",
        "tool (1 message)",
    ]


def test_the_branches_of_the_tree_add_up(cli: Cli, session: Session) -> None:
    session.ask("And then?")

    document = json.loads(cli("context", "--session", "auth-bug", "--tree", "--json").out)

    def check(node: dict[str, Any]) -> None:
        if node["children"]:
            assert node["tokens"] == sum(child["tokens"] for child in node["children"])
            for child in node["children"]:
                check(child)

    check(document["tree"])
    assert document["tree"]["tokens"] <= document["total"]


def test_what_was_left_out_is_listed_with_the_rule(cli: Cli, session: Session, work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"models": {"claude-sonnet-4": {"window": 1390}}}'})
    session.ask("And then?")

    outcome = cli("context", "--session", "auth-bug")

    (row,) = table(outcome.out, "LEFT OUT")
    assert (row[0], row[-1]) == ("steps 0 to 5", "oldest_first")


def test_what_does_not_fit_is_shown_all_the_same(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"models": {"tiny": {"window": 100}}}'})

    outcome = cli("context", "-m", "tiny")

    assert outcome.code == 1
    assert "tokens of 100 for tiny" in outcome.out
    assert table(outcome.out, "SECTION")
    assert json.loads(cli("context", "-m", "tiny", "--json").out)["fits"] is False


def test_the_prompt_of_another_agent_is_counted_too(cli: Cli, work: Path) -> None:
    write_files(work, {"CLAUDE.md": "Be kind.", ".nexus3/NEXUS.md": "Be brief."})

    outcome = cli("context", "--as", "claude")

    assert outcome.out.splitlines()[0] == f"{work}, as claude reads it: 1 section of the system prompt"
    assert table(outcome.out, "SECTION")[0][-1].endswith("CLAUDE.md")


def test_whoever_looks_at_a_prompt_makes_no_ledger(cli: Cli, nexus_home: Path) -> None:
    cli("context")

    assert list(nexus_home.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--session", "auth-bog"], "unknown session 'auth-bog'\n  did you mean 'auth-bug'?"),
        (["--session", "auth-bug", "--as", "claude"], "no other agent reads"),
        (["a.json", "--session", "auth-bug"], "cannot be used with a FILE"),
        (["a.json", "--tree"], "cannot be used with a FILE"),
        (["--include-compacted"], "--include-compacted needs a transcript"),
        (["--as", "clude"], "did you mean 'claude'?"),
    ],
)
@pytest.mark.usefixtures("session")
def test_what_makes_no_sense_together_is_refused(arguments: list[str], told: str, cli: Cli, work: Path) -> None:
    write_files(work, {"a.json": "[]"})

    outcome = cli("context", *arguments)

    assert (outcome.code, outcome.out) == (2, "")
    assert told in outcome.err


def test_a_run_can_insist_on_approval(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": '{"servers": [{"name": "a", "command": ["npx", "x"]}]}'})

    refused = cli("context", "--require-trusted")

    assert (refused.code, refused.out) == (3, "")


def test_a_strangers_counter_counts(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("letters", LETTERS)

    document: dict[str, Any] = json.loads(cli("context", str(SAMPLES / "messages.jsonl"), "--json").out)

    assert (document["counter"], document["exact"]) == ("letters", True)
    assert document["total"] == 300 + len("Who has the atlas?M. Frey.Since when?")
    assert [(kind["name"], kind["tokens"]) for kind in document["kinds"]] == [("text", 37), ("framing", 300)]


def test_the_help_ends_with_two_examples(cli: Cli) -> None:
    outcome = cli("context", "--help")

    examples = outcome.out.partition("Examples:")[2].strip().splitlines()
    assert [line.split()[:2] for line in examples] == [["nexus", "context"]] * 2


def test_the_same_file_gives_the_same_bytes_twice(cli: Cli) -> None:
    arguments = ("context", str(SAMPLES / "claude.jsonl"), "--json")

    assert cli(*arguments) == cli(*arguments)


def test_what_has_no_name_behind_its_kind_is_told_without_a_colon(cli: Cli, nexus_home: Path, work: Path) -> None:
    with Nexus(work, home=nexus_home) as nexus:
        nexus.session("s", model="gpt-4o", tools=[{"name": "look", "input_schema": {}}]).ask("Why?")

    bars, tree = cli("context", "--session", "s").out, cli("context", "--session", "s", "--tree").out

    for shown in (bars, tree):
        words = shown.split()
        assert {"settings", "caller", "plugin:environment"} <= set(words)
        assert not {"settings:", "caller:"} & set(words)


def test_session_is_found_by_its_name_and_a_file_of_that_name_wins(cli: Cli, work: Path) -> None:
    with Nexus(work) as nexus:
        nexus.session("auth-bug", model="gpt-4o").ask("Why?")

    by_name, by_option = (
        json.loads(cli("context", *each, "--json").out) for each in (("auth-bug",), ("--session", "auth-bug"))
    )
    typo = cli("context", "auth-bog")
    write_files(work, {"auth-bug": "# Notes\n"})
    file = cli("context", "auth-bug")

    assert by_name == by_option
    assert by_name["session"] == "auth-bug"
    assert (typo.code, typo.err) == (
        2,
        "Error: no such file or session\n  at auth-bog\n  did you mean 'auth-bug'?\n",
    )
    assert "not a transcript that Nexus knows\n  at auth-bug:1" in file.err


NOTE = "The auth middleware lives in server/auth.py and caches tokens for five minutes."


def remember(nexus_home: Path, work: Path) -> None:
    """Close a turn that was given a note."""
    write_files(nexus_home, {"config.json": '{"memory": {"enabled": true}}', "memory/auth.md": f"{NOTE}\n"})
    with Nexus(work, defaults=False) as nexus:
        session = nexus.session("later", model="gpt-4o")
        session.ask("Where is the auth middleware?")
        session.record(says("In server/auth.py."))


def test_memories_of_a_closed_turn_are_counted_apart(cli: Cli, nexus_home: Path, work: Path) -> None:
    remember(nexus_home, work)

    outcome = cli("context", "later")

    kinds = {row[0]: tokens_in(row) for row in table(outcome.out, "KIND")}
    [[_, sent, *_]] = all_rows(outcome.out, "MEMORY")
    assert kinds["memory"] == int(sent) > 20
    messages = table(outcome.out, "LARGEST")
    assert kinds["session"] + kinds["memory"] == sum(map(tokens_in, messages))


def test_memories_of_a_closed_turn_are_counted_as_they_were_while_it_was_open(
    cli: Cli, nexus_home: Path, work: Path
) -> None:
    remember(nexus_home, work)
    closed = json.loads(cli("context", "later", "--json", "--tree").out)
    with Nexus(work, defaults=False) as nexus:
        nexus.session("other", model="gpt-4o").ask("Where is the auth middleware?")

    opened = json.loads(cli("context", "other", "--json").out)

    assert closed["kinds"]["memory"] == closed["memories"][0]["tokens"] == opened["memories"][0]["tokens"]
    assert sum(closed["kinds"].values()) == sum(closed["zones"].values()) == closed["tree"]["tokens"]


def test_forgotten_memories_are_not_counted(cli: Cli, nexus_home: Path, work: Path) -> None:
    remember(nexus_home, work)
    assert cli("memory", "forget", "auth.md", "--yes").code == 0

    found = json.loads(cli("context", "later", "--json").out)

    assert found["kinds"]["memory"] == 0
    assert "memories" not in found


def test_memories_are_one_layer(cli: Cli, nexus_home: Path, work: Path) -> None:
    remember(nexus_home, work)
    with Nexus(work, defaults=False) as nexus:
        nexus.session("open", model="gpt-4o").ask("Where is the auth middleware?")

    for name in ("later", "open"):
        found = json.loads(cli("context", name, "--json").out)

        assert found["layers"]["memory"] == found["kinds"]["memory"] > 0
        assert not [layer for layer in found["layers"] if "auth.md" in layer or layer.startswith("step:")]
        assert sum(found["layers"].values()) == sum(found["zones"].values())
