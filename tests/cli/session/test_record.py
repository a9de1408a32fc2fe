"""`nexus session record`: a shell script, or another language, keeps a session."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.cli.commands.session.record_input import (
    CallResultItem,
    StepItem,
    UserMessageItem,
    parse_record_item,
    read_item_file,
)
from nexus_core.dialects.registry import BUILT_IN_DIALECTS
from nexus_core.errors import NexusError
from nexus_core.types.assembled import AgentResult
from nexus_core.types.messages import Message, Reply
from tests.cli.session.conftest import Talk, TypeIn
from tests.conftest import Cli
from tests.session.support import TOOLS, calls, gemini_calls, gemini_says, says

pytestmark = pytest.mark.usefixtures("no_session_start")

Keeping = Callable[..., dict[str, Any]]

USER = {"role": "user", "content": "Why?"}
CHAT = {"id": "c1", "choices": [{"message": {"role": "assistant", "content": "So."}, "finish_reason": "stop"}]}
RESPONSES = {
    "id": "resp_1",
    "object": "response",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]}],
    "status": "completed",
    "error": None,
}


@pytest.fixture
def keeping(cli: Cli, type_in: TypeIn) -> Keeping:
    """Record something and see what comes back."""

    def keep(given: object, *options: str, label: str = "s", code: int = 0) -> dict[str, Any]:
        type_in(given if isinstance(given, str) else json.dumps(given))
        outcome = cli("session", "record", label, "-", "--json", *options)
        assert outcome.code == code, outcome.err
        document: dict[str, Any] = json.loads(outcome.out) if outcome.out else {}
        return document

    return keep


def kinds(nexus: Nexus, label: str = "s") -> list[str]:
    record = nexus.ledger.session(label)
    return [step.kind for step in nexus.ledger.thread(record.tip)] if record and record.tip else []


def lines(*items: object) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


# ---- what is understood ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (says("x"), "reply"),
        (CHAT, "reply"),
        (RESPONSES, "reply"),
        (gemini_says("x"), "reply"),
        ({"role": "assistant", "content": "x"}, "reply"),
        ({"role": "model", "parts": [{"text": "x"}]}, "reply"),
        ({"nexus": 1, "role": "assistant", "parts": [{"kind": "text", "text": "x"}]}, "reply"),
        ([{"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "id": "c"}], "reply"),
        ({"role": "tool", "tool_call_id": "t1", "content": "x"}, "result"),
        ({"type": "function_call_output", "call_id": "t1", "output": "x"}, "result"),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}, "result"),
        ({"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {}}}]}, "result"),
        ([{"role": "tool", "tool_call_id": name, "content": "x"} for name in ("t1", "t2")], "result"),
        ({"messages": [USER, {"role": "assistant", "content": "x"}]}, "turn"),
    ],
)
def test_replies_and_results_are_understood_in_the_shape_of_any_api(given: object, what: str) -> None:
    item = parse_record_item(given, BUILT_IN_DIALECTS)

    assert isinstance(item, StepItem)
    assert item.what == what


@pytest.mark.parametrize(
    "given",
    [
        USER,
        {"role": "user", "content": [{"type": "text", "text": "Why?"}]},
        {"role": "user", "parts": [{"text": "Why?"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Why?"}]},
        {"nexus": 1, "role": "user", "parts": [{"kind": "text", "text": "Why?"}]},
        {"ask": "Why?"},
        {"ask": USER},
    ],
)
def test_a_users_message_is_understood_in_the_shape_of_any_api(given: dict[str, Any]) -> None:
    item = parse_record_item(given, BUILT_IN_DIALECTS)

    assert isinstance(item, UserMessageItem)
    assert isinstance(item.message, Message)
    assert (item.message.role, item.message.content) == ("user", "Why?")


def test_what_is_known_of_the_occasion_goes_with_a_question() -> None:
    item = parse_record_item(
        {"ask": "Why?", "interrupt": True, "platform": "shell", "attachments": ["a.py"]}, BUILT_IN_DIALECTS
    )

    assert isinstance(item, UserMessageItem)
    assert (item.interrupt, item.event) == (True, {"platform": "shell", "attachments": ["a.py"]})


def test_a_reply_that_was_cut_off_says_so() -> None:
    item = parse_record_item({"reply": says("x"), "interrupted": True}, BUILT_IN_DIALECTS)

    assert isinstance(item, StepItem)
    assert (item.what, item.interrupted) == ("reply", True)


@pytest.mark.parametrize(
    ("result", "text"), [("x", "x"), ({"a": [1, "é"]}, '{"a": [1, "é"]}'), (None, "null"), ("", "")]
)
def test_the_result_of_a_call_is_words_or_json(result: object, text: str) -> None:
    assert parse_record_item({"call": "t1", "result": result, "is_error": True}, BUILT_IN_DIALECTS) == CallResultItem(
        "t1", text, is_error=True
    )


def test_an_agents_result_has_its_fields() -> None:
    item = parse_record_item(
        {"messages": [USER], "usage": {"input_tokens": 3}, "stop_reason": "end", "id": "run 1"}, BUILT_IN_DIALECTS
    )

    assert isinstance(item, StepItem)
    assert isinstance(item.given, AgentResult)
    assert item.given.usage is not None
    assert (item.given.usage.input_tokens, item.given.stop_reason, item.given.id) == (3, "end", "run 1")


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (7, "expected an object, not the number 7"),
        ("Why?", "expected an object, not the text 'Why?'"),
        ({}, "expected a reply or a result, not an object"),
        ([], "expected a reply or a result, not a list"),
        ({"role": "system", "content": "x"}, "a message of the system cannot be recorded"),
        ({"role": "nobody", "content": "x"}, "unknown role"),
        ({"ask": 7}, "expected a message"),
        ({"ask": {"role": "assistant", "content": "x"}}, "must be the user's words"),
        ({"ask": "x", "interrupt": 1}, "expected true or false"),
        ({"ask": "x", "platfrom": 1}, "unknown field 'platfrom'"),
        ({"reply": USER}, "expected what a model answered"),
        ({"reply": says("x"), "cut": True}, "unknown field 'cut'"),
        ({"call": 1, "result": "x"}, "expected the key or the id of a call"),
        ({"call": "t1"}, "there is no 'result'"),
        ({"messages": []}, "expected a list of messages"),
        ({"messages": [USER], "model": "gpt-4o"}, "unknown field 'model'"),
        ({"messages": [USER], "usage": {"input": 3}}, "unknown field 'input'"),
        ({"error": {"message": "Overloaded"}}, "this is an error of the API: Overloaded"),
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}},
            "this is an error of the API: Busy",
        ),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}, {"type": "text", "text": "x"}]},
            "and something else",
        ),
    ],
)
def test_what_is_not_understood_is_said(given: object, what: str) -> None:
    with pytest.raises(NexusError, match=re.escape(what)):
        parse_record_item(given, BUILT_IN_DIALECTS)


# ---- a loop ---------------------------------------------------------------------------------------------------------


def test_a_whole_tool_loop(keeping: Keeping, work: Path, nexus: Nexus) -> None:
    (work / "tools.json").write_text(json.dumps(TOOLS))

    asked = keeping("Why?\n", "--role", "user", "--tools", "tools.json", "-m", "claude-sonnet-4", "--api", "anthropic")
    called = keeping(calls("t1", "t2"), "--api", "anthropic")
    first = keeping("one", "--call", "t1", "--api", "anthropic")
    second = keeping("two", "--call", called["pending"][1]["key"], "--api", "anthropic")
    ended = keeping(says("Because.", name="msg_2"), "--api", "anthropic")

    (message,) = asked["request"]["messages"]
    assert (message["role"], message["content"].splitlines()[-1]) == ("user", "Why?")
    assert [tool["name"] for tool in asked["request"]["tools"]] == ["look"]
    assert (asked["done"], asked["pending"]) == (False, [])
    assert [call["id"] for call in called["pending"]] == ["t1", "t2"]
    assert called["recorded"][0]["tool_calls"] == called["pending"]
    assert (called["request"], first["request"]) == (None, None)
    assert [call["id"] for call in first["pending"]] == ["t2"]
    assert len(second["request"]["messages"]) == 3
    assert (ended["done"], ended["text"], ended["request"], ended["pending"]) == (True, "Because.", None, [])
    assert kinds(nexus) == ["input", "sealed", "reply", "result", "result", "reply"]


def test_calls_without_ids_are_answered_by_their_keys(keeping: Keeping, nexus: Nexus) -> None:
    keeping(USER)
    pending = keeping(gemini_calls("look", "look"))["pending"]

    for number, call in enumerate(pending):
        keeping(f"result {number}", "--call", call["key"])

    answers = [result.text for message in nexus.session("s").messages for result in message.tool_results]
    assert answers == ["result 0", "result 1"]


def test_an_id_that_two_calls_have_is_refused_with_their_keys(keeping: Keeping, cli: Cli, type_in: TypeIn) -> None:
    keeping(USER)
    pending = keeping(calls("t1", "t1"))["pending"]

    type_in("x")
    outcome = cli("session", "record", "s", "-", "--call", "t1")

    assert outcome.code == 2
    assert f"2 calls have the id 't1'\n  at <stdin>\n  name one by its key: {pending[0]['key']}, " in outcome.err


def test_a_tool_that_failed(keeping: Keeping, nexus: Nexus) -> None:
    keeping(USER)
    keeping(calls("t1"))

    keeping("no such file", "--call", "t1", "--error")

    (result,) = nexus.session("s").messages[-1].tool_results
    assert (result.call_id, result.name, result.text, result.is_error) == ("t1", "look", "no such file", True)


def test_several_things_are_recorded_in_their_order(keeping: Keeping, nexus: Nexus) -> None:
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}
    whole = [USER, calls("t1"), answer, says("Because.", name="msg_2")]

    by_lines = keeping(lines(*whole))
    in_one = keeping({"items": whole}, label="t")

    assert [each["kind"] for each in by_lines["recorded"]] == ["input", "reply", "result", "reply"]
    assert by_lines["text"] == in_one["text"] == "Because."
    assert kinds(nexus, "s") == kinds(nexus, "t")


def test_the_same_things_again_change_nothing_while_their_turn_is_open(keeping: Keeping, nexus: Nexus) -> None:
    begun = lines(USER, calls("t1"), {"role": "tool", "tool_call_id": "t1", "content": "x"})
    keeping(begun)

    again = keeping(begun)

    assert [each["duplicate"] for each in again["recorded"]] == [True, True, True]
    assert kinds(nexus) == ["input", "sealed", "reply", "result"]
    assert keeping(lines(USER, calls("t1"), says("So.", name="msg_2")))["done"]
    assert kinds(nexus) == ["input", "sealed", "reply", "result", "reply"]


def test_the_same_question_is_asked_again_once_its_turn_is_closed(keeping: Keeping, nexus: Nexus) -> None:
    turn = lines(USER, says("Because."))

    for _ in range(2):
        assert [each["duplicate"] for each in keeping(turn)["recorded"]] == [False, False]

    assert kinds(nexus) == ["input", "sealed", "reply"] * 2


def test_without_anything_to_record_the_state_is_told(keeping: Keeping, cli: Cli, nexus: Nexus) -> None:
    keeping(USER, "--api", "openai")

    outcome = cli("session", "record", "s", "--json", "--api", "openai")

    document = json.loads(outcome.out)
    assert (document["recorded"], document["done"], document["pending"]) == ([], False, [])
    assert document["request"]["messages"][-1]["content"].splitlines()[-1] == "Why?"
    assert kinds(nexus) == ["input", "sealed"]


def test_a_turn_is_given_up(keeping: Keeping, cli: Cli, nexus: Nexus) -> None:
    keeping(USER)
    keeping(calls("t1"))

    ended = json.loads(cli("session", "record", "s", "--discard-open-turn", "--json").out)
    again = json.loads(cli("session", "record", "s", "--discard-open-turn", "--json").out)

    assert [each["kind"] for each in ended["recorded"]] == ["interrupted"]
    assert (ended["done"], again["recorded"]) == (True, [])
    assert kinds(nexus)[-1] == "interrupted"


def test_a_question_that_gives_up_the_turn_before(keeping: Keeping, nexus: Nexus) -> None:
    keeping(USER)
    keeping(calls("t1"))

    keeping({"role": "user", "content": "Never mind."}, "--discard-open-turn")

    assert kinds(nexus) == ["input", "sealed", "reply", "interrupted", "input", "sealed"]


def test_a_reply_that_was_cut_off_ends_the_turn(keeping: Keeping) -> None:
    keeping(USER)

    document = keeping(calls("t1", text="I lo"), "--partial")

    assert (document["done"], document["pending"], document["text"]) == (True, [], "I lo")


def test_plain_words_are_told_how_to_be_recorded(cli: Cli, type_in: TypeIn) -> None:
    type_in("just text\n")

    outcome = cli("session", "record", "s", "-")

    assert outcome.code == 3
    assert "expected JSON, not words" in outcome.err
    assert "--role user records it as a user message" in outcome.err


def test_a_stream_that_broke_off_is_refused_until_it_is_said_what_it_is(
    keeping: Keeping, cli: Cli, type_in: TypeIn
) -> None:
    pieces = [{"id": "c", "choices": [{"delta": {"content": "I lo"}}]}]
    keeping(USER)

    type_in(json.dumps(pieces))
    refused = cli("session", "record", "s", "-")
    kept = keeping({"reply": pieces, "interrupted": False})

    assert refused.code == 3
    assert "the stream broke off" in refused.err
    assert "--partial keeps what came" in refused.err
    assert (kept["done"], kept["text"]) == (True, "I lo")


def test_an_agents_whole_turn_begins_a_session(keeping: Keeping, nexus: Nexus) -> None:
    result = {"messages": [USER, {"role": "assistant", "content": "Because."}], "id": "run 1"}

    first, again = keeping(result), keeping(result)

    assert [each["duplicate"] for each in (*first["recorded"], *again["recorded"])] == [False, True]
    assert kinds(nexus) == ["turn"]


def test_words_are_kept_as_they_are_but_for_the_last_line_break(keeping: Keeping, nexus: Nexus) -> None:
    keeping("  two\nlines\n\n", "--role", "user")
    keeping("{not JSON", "--role", "assistant")

    said = [step.messages[0].content for step in nexus.ledger.steps() if step.kind in ("input", "reply")]
    assert said == ["  two\nlines\n", "{not JSON"]


# ---- what goes wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("second", "where"),
    [
        ('{"role": "assistant", "content":', "Line 2, Column 33"),
        ('{"role": "assistant", "content": 7}', "<stdin>:2: content"),
    ],
)
def test_everything_is_read_before_anything_is_recorded(
    cli: Cli, type_in: TypeIn, nexus_home: Path, second: str, where: str
) -> None:
    type_in(f"{json.dumps(USER)}\n{second}\n")

    outcome = cli("session", "record", "s", "-", "--json")

    assert (outcome.code, json.loads(outcome.out)["recorded"]) == (3, [])
    assert where in outcome.err
    assert not (nexus_home / "ledger.db").exists()


def test_what_was_recorded_before_something_went_wrong_is_told(cli: Cli, type_in: TypeIn, nexus: Nexus) -> None:
    given = lines(USER, says("Because."), says("And more.", name="msg_2"), USER)

    type_in(given)
    plain = cli("session", "record", "plain", "-")
    type_in(given)
    document = json.loads((outcome := cli("session", "record", "s", "-", "--json")).out)

    assert (plain.code, outcome.code) == (3, 3)
    assert [line.split()[1] for line in plain.out.splitlines()] == ["input", "reply"]
    assert "2 of 4 recorded." in plain.err
    assert "no turn is open, so there is nothing that this could answer\n  at <stdin>:3\n" in plain.err
    assert [each["kind"] for each in document["recorded"]] == ["input", "reply"]
    assert document["error"]["where"] == "<stdin>:3"
    assert kinds(nexus) == ["input", "sealed", "reply"]


def test_a_second_result_of_a_call_is_refused(keeping: Keeping, nexus: Nexus) -> None:
    keeping(USER)
    keeping(calls("t1"))
    keeping("one", "--call", "t1")

    assert keeping("one", "--call", "t1")["recorded"][0]["duplicate"]
    refused = keeping("two", "--call", "t1", code=3)

    assert refused["error"]["what"] == "look (t1) has another result already"
    assert kinds(nexus).count("result") == 1


def test_the_hints_are_those_of_the_command_line(keeping: Keeping) -> None:
    keeping(USER)
    open_turn = keeping({"role": "user", "content": "Another."}, code=3)["error"]["hint"]
    key = keeping(calls("t1"))["pending"][0]["key"]
    waiting = keeping(says("x", name="msg_2"), code=3)["error"]["hint"]

    assert open_turn == "a reply is expected; a user's message with --discard-open-turn gives the turn up"
    assert waiting.startswith(f"these results are missing: look (t1) --call {key};")


def test_a_call_that_nobody_made_is_an_error_that_names_those_that_wait(
    keeping: Keeping, cli: Cli, type_in: TypeIn
) -> None:
    keeping(USER)
    keeping(calls("toolu_1"))

    type_in("x")
    outcome = cli("session", "record", "s", "-", "--call", "toolu_2")

    assert outcome.code == 2
    assert "unknown call 'toolu_2'" in outcome.err
    assert "did you mean 'toolu_1'?" in outcome.err


def test_only_something_that_opens_a_turn_begins_a_session(cli: Cli, talk: Talk, type_in: TypeIn) -> None:
    talk("auth-bug")
    talk("auth-bug").ask("Why?")

    type_in(json.dumps(says("x")))
    outcome = cli("session", "record", "auth-bgu", "-")

    assert outcome.code == 2
    assert "did you mean 'auth-bug'?" in outcome.err


def test_a_session_that_begins_is_named_on_standard_error(cli: Cli, talk: Talk, type_in: TypeIn) -> None:
    talk("auth-bug", "Why?")
    outcomes = []
    for options in (["--dry-run"], [], ["--json"]):
        type_in(json.dumps(USER))
        outcomes.append(cli("session", "record", "auth-b", "-", *options))
    type_in("Why?")
    known = cli("session", "record", "auth-bug", "-", "--role", "user")

    assert [outcome.code for outcome in outcomes] == [0, 0, 0]
    assert outcomes[0].err.startswith("(would begin session 'auth-b')\n")
    assert outcomes[1].err.startswith("(begins session 'auth-b')\n")
    assert "begin" not in outcomes[2].err + known.err


def test_the_help_of_record_asks_for_a_whole_name(cli: Cli) -> None:
    text = " ".join(cli("session", "record", "--help").out.split())

    assert "by its whole name" in text
    assert "beginning of it" not in text


def test_an_archived_session_says_how_it_is_taken_back(keeping: Keeping, talk: Talk, cli: Cli) -> None:
    talk("s", "Why?")
    cli("session", "archive", "s")

    assert "nexus session unarchive s" in keeping(USER, code=3)["error"]["hint"]


def test_what_does_not_fit_is_recorded_and_told(
    keeping: Keeping, cli: Cli, type_in: TypeIn, nexus_home: Path, nexus: Nexus
) -> None:
    nexus_home.mkdir(exist_ok=True)
    (nexus_home / "config.json").write_text('{"models": {"small": {"window": 2000}}}')
    question = "word " * 5000

    asked = keeping(question, "--role", "user", "-m", "small")
    with_request = keeping(question, "--role", "user", "--api", "openai", code=1)
    type_in(question)
    plain = cli("session", "record", "t", "-", "--role", "user", "-m", "small")

    assert asked["recorded"][0]["kind"] == "input"
    assert with_request["recorded"][0]["duplicate"]
    assert "do not fit into" in with_request["error"]["what"]
    assert (plain.code, "it is recorded, but cannot be sent" in plain.err) == (0, True)
    assert kinds(nexus)[0] == "input"


@pytest.mark.parametrize(
    "options",
    [
        ["-", "--role", "nobody"],
        ["-", "--role", "user", "--call", "x"],
        ["--role", "user"],
        ["--call", "x"],
        ["-", "--error"],
        ["-", "--api", "anthropic"],
        ["-", "--api", "antropic", "--json"],
        ["-", "--discard-open-turn", "--role", "assistant"],
        ["-", "--partial", "--role", "user"],
    ],
    ids=" ".join,
)
def test_options_that_make_no_sense_are_refused(
    cli: Cli, type_in: TypeIn, nexus_home: Path, options: list[str]
) -> None:
    type_in("x")

    assert cli("session", "record", "s", *options).code == 2
    assert not (nexus_home / "ledger.db").exists()


@pytest.mark.parametrize("given", ["", "\n\n"])
def test_an_empty_reply_of_a_script_is_an_error(cli: Cli, talk: Talk, type_in: TypeIn, given: str) -> None:
    talk("s").ask("Why?")
    type_in(given)

    outcome = cli("session", "record", "s", "-")

    assert outcome.code == 3
    assert "there is nothing in it\n  at <stdin>" in outcome.err


def test_trying_out_says_what_would_be_recorded(cli: Cli, type_in: TypeIn, nexus_home: Path) -> None:
    given = lines(USER, calls("t1"), {"call": "t1", "result": "x"})
    type_in(given)
    plain = cli("session", "record", "s", "-", "--dry-run")
    type_in(given)
    document = json.loads(cli("session", "record", "s", "-", "--dry-run", "--json").out)

    assert plain.out == "<stdin>:1: message\n<stdin>:2: reply\n<stdin>:3: result\n"
    assert [each["what"] for each in document["would_record"]] == ["message", "reply", "result"]
    assert not (nexus_home / "ledger.db").exists()


def test_a_person_reads_what_was_recorded_and_what_is_waited_for(cli: Cli, work: Path, type_in: TypeIn) -> None:
    (work / "reply.json").write_text(json.dumps(calls("t1")))
    type_in("Why?")
    asked = cli("session", "record", "s", "-", "--role", "user")
    called = cli("session", "record", "s", "reply.json")
    again = cli("session", "record", "s", "reply.json")

    assert asked.err == "(begins session 's')\nThe turn waits for a reply.\n"
    assert called.err == "The turn waits for look (t1).\n"
    assert called.out.split(maxsplit=1)[1] == "reply  calls look (t1)\n"
    assert again.out.endswith("  recorded before\n")


def test_a_file_of_one_thing_over_many_lines(work: Path) -> None:
    (work / "reply.json").write_text(json.dumps(says("x"), indent=2))

    (given,) = read_item_file(work, "reply.json", BUILT_IN_DIALECTS)

    assert isinstance(given.item, StepItem)
    assert isinstance(given.item.given, Reply)
    assert given.where == "reply.json"


# ---- what cannot be read --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "what", "where"),
    [
        ("{", "Expecting", "<stdin>:1"),
        ("", "there is nothing in it", "<stdin>"),
        ('{"items": []}', "there is nothing in it", "<stdin>: items"),
        ('{"answer": 42}', "expected a reply", "<stdin>"),
        ('{"ask": "x", "attachments": [{"path": "a", "lines": 5}]}', "the first and the last one", "<stdin>"),
        (lines(USER, {"answer": 42}), "expected a reply", "<stdin>:2"),
    ],
)
def test_what_cannot_be_read_is_in_the_answer_too(
    keeping: Keeping, nexus: Nexus, given: str, what: str, where: str
) -> None:
    document = keeping(given, code=3)

    assert (document["schema"], document["session"], document["recorded"]) == (1, "s", [])
    assert where in document["error"]["where"]
    assert what in document["error"]["what"]
    assert kinds(nexus) == []


def test_an_unknown_session_is_in_the_answer_too(keeping: Keeping, talk: Talk) -> None:
    talk("known", "Why?")

    document = keeping(says("So."), label="knwon", code=2)

    assert document["error"]["what"] == "unknown session 'knwon'"
    assert document["error"]["hint"] == "did you mean 'known'?"


# ---- what to know before it is sent ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ((), ["no-model"]),
        (("--model", "gtp-5.5"), ["unknown-model"]),
        (("--model", "claude-sonnet-4"), []),
    ],
)
def test_a_request_comes_with_what_to_know_about_its_model(
    cli: Cli, type_in: TypeIn, options: tuple[str, ...], codes: list[str]
) -> None:
    type_in(json.dumps(USER))

    outcome = cli("session", "record", "s", "-", "--json", "--api", "openai", *options)

    assert [each["code"] for each in json.loads(outcome.out)["findings"]] == codes
    assert re.findall(r"\[(.+-model)\]", outcome.err) == codes


def test_a_model_of_another_api_is_told_with_the_option_that_fits(cli: Cli, type_in: TypeIn) -> None:
    type_in(json.dumps(USER))

    outcome = cli("session", "record", "s", "-", "--json", "--api", "gemini", "--model", "claude-sonnet-4")

    assert "--api anthropic fits this one [foreign-model]" in outcome.err


def test_an_open_turn_that_was_imported_is_sealed_only_where_a_request_is_wanted(
    cli: Cli, work: Path, nexus: Nexus
) -> None:
    (work / "chat.json").write_text(json.dumps({"messages": [USER]}), encoding="utf-8")
    assert cli("session", "import", "chat.json", "--name", "s").code == 0

    first = cli("session", "record", "s", "--json")
    before = kinds(nexus)
    second = cli("session", "record", "s", "--json", "--api", "anthropic")

    assert (first.code, second.code) == (0, 0)
    assert kinds(nexus) == [*before, "sealed"]


def test_a_session_is_told_how_it_is_driven_and_stays_so(keeping: Keeping) -> None:
    first = keeping(USER, "--mode", "server", "--api", "anthropic")
    keeping(says("So."))
    later = keeping({"role": "user", "content": "And?"}, "--api", "anthropic")
    back = keeping({"role": "user", "content": "Well?"}, "--mode", "repl", "--discard-open-turn", "--api", "anthropic")

    systems = [json.dumps(each["request"]["system"]) for each in (first, later, back)]
    assert ["Mode: HTTP JSON-RPC Server" in system for system in systems] == [True, True, False]
    assert "Mode: Interactive REPL" in systems[2]


def test_an_unknown_way_to_be_driven_is_refused_with_those_there_are(cli: Cli, type_in: TypeIn, nexus: Nexus) -> None:
    type_in("Why?")

    outcome = cli("session", "record", "s", "-", "--role", "user", "--mode", "sever")

    assert outcome.code == 2
    assert "unknown mode 'sever'" in outcome.err
    assert "did you mean 'server'?" in outcome.err
    assert nexus.ledger.session("s") is None
