"""`nexus check`: what an API would refuse in a file of messages, and the file without it."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli

USER = {"role": "user", "content": "hi"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
}
ORPHAN = {"role": "tool", "tool_call_id": "b", "content": "x"}
BROKEN = [USER, CALL, USER, ORPHAN]
MADE_UP = {"role": "tool", "tool_call_id": "a", "content": "[No result was recorded for this tool call.]"}
REPAIRED = [USER, CALL, MADE_UP, USER]


def put(work: Path, name: str, value: Any) -> Path:
    path = work / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def lines(messages: list[Any]) -> str:
    return "".join(json.dumps(message) + "\n" for message in messages)


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_findings_are_printed_with_file_message_and_code(cli: Cli, work: Path) -> None:
    put(work, "chat.json", BROKEN)

    outcome = cli("check", "chat.json", "--api", "openai")

    assert outcome.code == 1
    assert outcome.out == (
        "chat.json: message 1: the call 'a' has no result [missing-result]\n"
        "chat.json: message 3: the result 'b' answers no call [orphan-result]\n"
    )


def test_a_list_without_fault_is_silent_data_and_exit_0(cli: Cli, work: Path) -> None:
    put(work, "chat.json", [USER])

    outcome = cli("check", "chat.json", "--api", "anthropic")

    assert (outcome.code, outcome.out, outcome.err) == (0, "", "1 message, nothing to repair\n")


@pytest.mark.parametrize("option", ["--fix", "--in-place"])
def test_tools_of_a_request_are_checked_and_left_as_they_are(cli: Cli, work: Path, option: str) -> None:
    body = {"messages": [USER], "tools": [{"name": "read it", "input_schema": {"type": "object"}}]}
    path = put(work, "request.json", body)

    outcome = cli("check", "request.json", "--api", "anthropic")
    fixed = cli("check", "request.json", "--api", "anthropic", option)

    assert outcome.code == fixed.code == 1
    assert outcome.out.startswith("request.json: the anthropic API does not allow the tool name 'read it'; ")
    assert outcome.out.endswith("[invalid-tool]\n")
    assert json.loads(path.read_text(encoding="utf-8")) == body


def test_a_list_without_messages_is_a_finding_that_stays(cli: Cli, work: Path) -> None:
    put(work, "chat.json", [])

    outcome, fixed = cli("check", "chat.json", "--api", "openai"), cli("check", "chat.json", "--api", "openai", "--fix")

    assert (outcome.code, outcome.out) == (1, "chat.json: the openai API needs at least one message [empty-list]\n")
    assert (fixed.code, json.loads(fixed.out)) == (1, [])


def test_without_an_api_the_shape_of_the_messages_decides(cli: Cli, work: Path) -> None:
    put(work, "gemini.json", [{"role": "model", "parts": [{"text": "hi"}]}])

    assert "[wrong-first-role]" in cli("check", "gemini.json").out


def test_fix_prints_the_repaired_list_and_the_findings_apart(cli: Cli, work: Path) -> None:
    put(work, "chat.json", BROKEN)

    outcome = cli("check", "chat.json", "--fix")

    assert outcome.code == 0
    assert json.loads(outcome.out) == REPAIRED
    assert "[missing-result]" in outcome.err


def test_a_file_with_one_message_on_each_line_stays_one(cli: Cli, work: Path) -> None:
    put(work, "chat.jsonl", lines(BROKEN))

    outcome = cli("check", "chat.jsonl", "--fix")

    assert [json.loads(line) for line in outcome.out.splitlines()] == REPAIRED


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"model": "m", "messages": BROKEN}, "messages", "missing-result"),
        ({"model": "m", "input": [{"type": "reasoning", "id": "r", "summary": []}]}, "input", "dangling-reasoning"),
        ({"contents": [{"role": "user", "parts": []}]}, "contents", "empty-message"),
        ({"system": "x", "messages": [{"role": "assistant", "content": "hi "}]}, "messages", "final-blanks"),
    ],
)
def test_a_whole_request_is_checked_by_its_own_rules_and_stays_whole(
    cli: Cli, work: Path, body: dict[str, Any], field: str, code: str
) -> None:
    put(work, "request.json", body)

    assert f"[{code}]" in cli("check", "request.json").out
    fixed = json.loads(cli("check", "request.json", "--fix").out)
    assert {**fixed, field: None} == {**body, field: None}
    assert fixed[field] != body[field]


def test_messages_come_from_standard_input(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, json.dumps(BROKEN))

    outcome = cli("check", "-", "--api", "openai")

    assert outcome.out.startswith("-: message 1: ")


def test_json_has_a_schema_the_findings_and_with_fix_the_messages(cli: Cli, work: Path) -> None:
    put(work, "chat.json", BROKEN)

    plain, fixed = json.loads(cli("check", "chat.json", "--json").out), cli("check", "chat.json", "--json", "--fix")

    assert plain == {
        "schema": 1,
        "file": "chat.json",
        "messages": 4,
        "findings": [
            {"index": 1, "code": "missing-result", "message": "the call 'a' has no result"},
            {"index": 3, "code": "orphan-result", "message": "the result 'b' answers no call"},
        ],
    }
    assert json.loads(fixed.out)["repaired"] == REPAIRED


def test_in_place_writes_the_file_with_the_permissions_it_had(cli: Cli, work: Path) -> None:
    path = put(work, "chat.json", BROKEN)
    path.chmod(0o640)

    outcome = cli("check", "chat.json", "--in-place")

    assert (outcome.code, outcome.err) == (0, "wrote 4 messages to chat.json\n")
    assert json.loads(path.read_text(encoding="utf-8")) == REPAIRED
    assert path.stat().st_mode & 0o777 == 0o640
    assert cli("check", "chat.json").code == 0


def test_in_place_leaves_a_file_without_fault_alone(cli: Cli, work: Path) -> None:
    path = put(work, "chat.json", '[ {"role":"user",   "content":"hi"} ]')
    before = path.stat().st_mtime_ns

    assert cli("check", "chat.json", "--in-place").code == 0
    assert path.stat().st_mtime_ns == before


def test_a_dry_run_says_what_would_be_written_and_writes_nothing(cli: Cli, work: Path) -> None:
    path = put(work, "chat.json", BROKEN)

    outcome = cli("check", "chat.json", "--in-place", "--dry-run")

    assert (outcome.code, outcome.err) == (1, "would write 4 messages to chat.json\n")
    assert json.loads(path.read_text(encoding="utf-8")) == BROKEN


def test_a_link_is_not_written_through(cli: Cli, work: Path) -> None:
    target = put(work, "chat.json", BROKEN)
    (work / "link.json").symlink_to(target)

    outcome = cli("check", "link.json", "--in-place")

    assert outcome.code == 3
    assert "is a link" in outcome.err
    assert json.loads(target.read_text(encoding="utf-8")) == BROKEN


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-", "--in-place"), "standard input cannot be written in place"),
        (("chat.json", "--dry-run"), "--dry-run says what --in-place would write"),
        (("chat.json", "--api", "antropic"), "did you mean 'anthropic'?"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(cli: Cli, work: Path, arguments: tuple[str, ...], words: str) -> None:
    put(work, "chat.json", BROKEN)

    outcome = cli("check", *arguments)

    assert outcome.code == 2
    assert words in outcome.err


def test_text_that_is_no_json_is_shown_where_it_breaks(cli: Cli, work: Path) -> None:
    path = put(work, "chat.json", '[\n  {"role": "user", "content": "hi"},\n  {"role": oops}\n]\n')

    outcome = cli("check", "chat.json")

    assert outcome.code == 3
    assert outcome.err.startswith(f"Error: Invalid JSON in {path}\n\n  Line 3, Column 12: Expecting value\n")
    assert "^" in outcome.err
    assert outcome.err.endswith("Fix the JSON syntax error and try again.\n")


def test_a_broken_line_of_many_is_shown_with_its_own_number(cli: Cli, work: Path) -> None:
    put(work, "chat.jsonl", lines([USER, USER]) + '\n{"role": }\n')

    assert "Line 4, Column 10: Expecting value" in cli("check", "chat.jsonl").err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"role": "user", "content": NaN}]', "NaN is not JSON"),
        ('[{"role": "user", "content": "a", "n": -1e999}]', "Column 40: -1e999 is too large a number"),
        (
            '[{"role": "user", "content": "a", "n": ' + "1" * 5000 + "}]",
            "Column 40: a number has more than 4300 digits",
        ),
        ("{}", "there are no messages in it"),
        ('"hi"', "there are no messages in it"),
        ("", "there is nothing in it"),
        ("\n \r\n", "there is nothing in it"),
        ("[" * 100_000, "nested too deeply"),
        ('[{"role": "usr", "content": "hi"}]', "chat.json: messages[0]"),
        ("[3]", "chat.json: messages[0]"),
        ('{"input": [], "previous_response_id": "r"}', "a conversation that OpenAI stores (previous_response_id)"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_place(cli: Cli, work: Path, text: str, words: str) -> None:
    put(work, "chat.json", text)

    outcome = cli("check", "chat.json")

    assert outcome.code == 3
    assert words in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    "line",
    [
        {"type": "user", "uuid": "a", "parentUuid": None, "sessionId": "s", "message": USER},
        {"type": "response_item", "timestamp": "2026-01-01T00:00:00Z", "payload": {"type": "message", **USER}},
        {"type": "message", "id": "b", "parentId": "a", "message": USER},
    ],
    ids=["claude-code", "codex", "pi"],
)
def test_a_session_of_an_agent_is_not_taken_for_messages_without_fault(
    cli: Cli, work: Path, line: dict[str, Any], count: int
) -> None:
    put(work, "session.jsonl", lines([line] * count))

    outcome = cli("check", "session.jsonl")

    assert outcome.code == 3
    assert "a session that an agent wrote, not a list of messages" in outcome.err


def test_the_input_of_a_request_may_be_a_single_text(cli: Cli, work: Path) -> None:
    put(work, "request.json", {"model": "gpt-4o", "input": "hi\x00"})

    outcome = cli("check", "request.json", "--fix")

    assert outcome.err == "request.json: message 0: there is a NUL character in it [nul-character]\n"
    assert json.loads(outcome.out) == {"model": "gpt-4o", "input": [USER]}


def test_a_directory_is_called_one(cli: Cli, work: Path) -> None:
    (work / "folder").mkdir()

    outcome = cli("check", "folder")

    assert outcome.code == 3
    assert "is a directory" in outcome.err


def test_a_missing_file_and_one_that_is_not_utf8_are_named(cli: Cli, work: Path) -> None:
    (work / "latin.json").write_bytes(b'["\xe9"]')

    assert "no such file" in cli("check", "none.json").err
    assert "not UTF-8" in cli("check", "latin.json").err


def test_what_steers_a_terminal_is_made_visible_and_stays_json(cli: Cli, work: Path) -> None:
    put(work, "chat.json", [{"role": "user", "content": "\x1b[31mred\u202e"}, ORPHAN | {"tool_call_id": "\x1b[2J"}])

    plain, fixed = cli("check", "chat.json"), cli("check", "chat.json", "--fix")

    assert "\x1b" not in plain.out + fixed.out + fixed.err
    assert json.loads(fixed.out)[0]["content"] == "\x1b[31mred\u202e"


def test_half_characters_in_a_file_are_repaired_and_can_be_written(cli: Cli, work: Path) -> None:
    path = put(work, "chat.json", '[{"role": "user", "content": "half \\ud83d"}]')

    assert cli("check", "chat.json", "--in-place").code == 0
    assert json.loads(path.read_text(encoding="utf-8")) == [{"role": "user", "content": "half �"}]


def test_a_file_is_looked_for_in_the_directory_of_the_command(cli: Cli, work: Path) -> None:
    (work / "sub").mkdir()
    put(work / "sub", "chat.json", [USER])

    assert cli("-C", "sub", "check", "chat.json").code == 0
    assert not os.path.exists(work / "chat.json")  # noqa: PTH110 - it would have been found here


def test_the_help_ends_with_two_examples(cli: Cli) -> None:
    page = cli("check", "--help").out

    assert page.rstrip().endswith("nexus check history.jsonl --api gemini --fix > fixed.jsonl")
