"""`nexus session show`: what was said, readable in a terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from nexus_core.types.assembled import AgentResult
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import File, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from tests.cli.session.conftest import Talk
from tests.conftest import Cli, Outcome
from tests.ledger.test_verify import tamper
from tests.session.support import calls, says

pytestmark = pytest.mark.usefixtures("no_session_start")

NAME = re.compile(r" \[([0-9A-Z]{6})\]$", re.MULTILINE)
MODEL = "claude-sonnet-4-20250514"
COST = "240 in (83% cached), 50 out (20 reasoning), 30 put into the cache"


def body(outcome: Outcome) -> list[str]:
    """What is printed of the turns, without their headings and the names of steps."""
    assert outcome.code == 0
    lines = outcome.out.partition("\n\n")[2].splitlines()
    return [NAME.sub("", line) for line in lines if not line.startswith("Turn ")]


def test_a_turn_tells_who_said_what_which_tools_were_called_and_what_it_cost(cli: Cli, talk: Talk) -> None:
    session = talk("s")
    session.ask("Why does login fail?")
    step = session.record(calls("t1", text="I look at it."))
    session.record(step.tool_calls[0].result("There is\nnothing."))
    session.next()
    session.record(says("It expires.", name="msg_2"))

    assert body(cli("session", "show", "s")) == [
        "user",
        "  Why does login fail?",
        f"assistant {MODEL} · {COST} · tool_use",
        "  I look at it.",
        '  -> look (t1) {"path": "t1"}',
        "tool look (t1)",
        "  There is",
        "  nothing.",
        f"assistant {MODEL} · {COST} · end_turn",
        "  It expires.",
    ]


def test_the_beginning_says_what_the_session_is_and_what_it_waits_for(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("first", "Why?")
    session = talk("first").fork("s")
    session.ask("And?")
    session.record(calls("t1", "t2", name="msg_2"))
    nexus.ledger.rename("s", "renamed")
    nexus.ledger.update("renamed", status="archived")

    heading = cli("session", "show", "s").out.partition("\n\n")[0].splitlines()

    assert heading[0].startswith("renamed: 2 turns, ")
    assert heading[0].endswith("tokens, archived, open, claude-sonnet-4")
    assert heading[1].startswith("changed ")
    assert heading[2:] == [
        "usage 480 in (83% cached), 100 out (40 reasoning), 60 put into the cache",
        "forked from first",
        "also called s",
        "waits for look (t1), look (t2)",
    ]


def test_the_newest_turns_are_shown_and_others_on_demand(cli: Cli, talk: Talk) -> None:
    talk("s", *(f"question {number}" for number in range(9)))

    def questions(*options: str) -> list[str]:
        return [line.strip() for line in body(cli("session", "show", "s", *options)) if "  question" in line]

    assert questions() == [f"question {number}" for number in range(4, 9)]
    assert questions("-n", "1") == ["question 8"]
    assert questions("-n", "0") == []
    assert questions("--limit", "all") == [f"question {number}" for number in range(9)]
    assert "\n(4 earlier turns; --limit all shows all)\n\nTurn " in cli("session", "show", "s").out


@pytest.mark.slow
def test_only_the_newest_steps_are_read_for_the_newest_turns(
    cli: Cli, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nexus_core.ledger.ledger import StoreLedger

    talk("short", *map(str, range(60)))
    talk("long", *map(str, range(180)))
    read: list[int] = []
    thread = StoreLedger.thread

    def counting(self: StoreLedger, *names: Any, **options: Any) -> Any:
        read.append(len(steps := thread(self, *names, **options)))
        return steps

    monkeypatch.setattr(StoreLedger, "thread", counting)
    cli("session", "show", "short", "-n", "2")
    for_the_short_one = sum(read)
    cli("session", "show", "long", "-n", "2")

    assert 0 < for_the_short_one == sum(read) - for_the_short_one  # however long the thread is


def test_long_results_are_cut_unless_they_are_wanted_whole(cli: Cli, talk: Talk) -> None:
    session = talk("s")
    session.ask("Why?")
    result = "\n".join(f"line {number}" for number in range(30))
    session.record(session.record(calls("t1")).tool_calls[0].result(result))

    short, full = (body(cli("session", "show", "s", *options)) for options in ((), ("--full",)))

    assert short[-2:] == ["  line 9", "  … 160 characters more (--full)"]
    assert full[-1] == "  line 29"
    assert len(full) == len(short) + 19


def test_nothing_that_was_said_steers_the_terminal_or_passes_for_a_heading(cli: Cli, talk: Talk) -> None:
    talk("s", "red \x1b[31m\u202e\nassistant forged\x85\rTurn 1")

    lines = body(cli("session", "show", "s"))

    assert lines[:3] == ["user", r"  red \x1b[31m\u202e", r"  assistant forged\x85\x0dTurn 1"]


def test_every_kind_of_part_has_its_line(cli: Cli, nexus: Nexus) -> None:
    parts = (
        Reasoning(text="hm"),
        Reasoning(encrypted="x"),
        Text("Look:"),
        Image(mime="image/png", data="AAAA" * 9 + "AA=="),
        File(name="a.pdf", url="https://example.org/a.pdf"),
        Opaque("anthropic", {"type": "server_tool_use"}),
    )
    result = AgentResult(messages=[Message("user", "Draw."), Message("assistant", parts)], error="it broke")
    nexus.session("s").record(result)

    assert body(cli("session", "show", "s")) == [
        "user",
        "  Draw.",
        "assistant",
        "  ~ hm",
        "  ~ (encrypted)",
        "  Look:",
        "  [image image/png 28 bytes]",
        "  [file a.pdf https://example.org/a.pdf]",
        "  [anthropic: server_tool_use]",
        "  failed: it broke",
    ]


def test_interruptions_compactions_and_reverts_are_told(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    session = talk("s", "Why?")
    session.ask("And?")
    session.record(calls("t1"))
    session.interrupt()
    tip = nexus.ledger.session("s").tip  # type: ignore[union-attr]
    compaction = NewStep(kind="compaction", closes=True, data={"summary": "They talked.", "first_kept": None})
    made = nexus.ledger.append("s", compaction, after=tip)
    nexus.ledger.append("s", NewStep(kind="revert", closes=True, data={"restores": None}), after=made.id)

    lines = body(cli("session", "show", "s"))

    assert "  [interrupted: there is no result]" in lines
    assert [line for line in lines if line][-3:] == [
        "compaction: keeps nothing",
        "  They talked.",
        "revert: no compaction counts",
    ]


def test_json_has_every_step_with_its_messages_and_the_calls_that_wait(cli: Cli, talk: Talk) -> None:
    session = talk("s", "Why?")
    session.ask("And?")
    step = session.record(calls("t1", name="msg_2"))

    document = json.loads(cli("session", "show", "s", "--json", "-n", "1").out)

    assert document["schema"] == 1
    assert document["session"]["label"] == "s"
    assert document["pending"] == [{"key": f"{step.id}:0", "id": "t1", "name": "look", "arguments": {"path": "t1"}}]
    (turn,) = document["turns"]
    assert (turn["id"], turn["open"]) == (step.turn, True)
    assert [each["kind"] for each in turn["steps"]] == ["input", "sealed", "reply"]
    assert turn["steps"][0]["messages"][0]["parts"] == [{"kind": "text", "text": "And?"}]
    assert turn["steps"][2]["data"]["usage"]["cached_input_tokens"] == 200


def test_one_step_is_shown_whole_with_all_that_is_known_of_it(cli: Cli, talk: Talk) -> None:
    session = talk("s")
    session.ask("Why?")
    long = session.record(session.record(calls("t1")).tool_calls[0].result("x\n" * 50 + "end"))

    text = cli("session", "show", "s", "--step", long.id).out
    facts = json.loads(cli("session", "show", "s", "--step", long.id, "--json").out)["step"]

    assert re.match(rf"Step {long.id}, result, \d{{4}}-\d\d-\d\d \d\d:\d\d\ntool look \(t1\) \[\w{{6}}\]\n  x\n", text)
    assert text.count("\n  x") == 50
    assert text.endswith("  end\n")
    assert (facts["id"], facts["kind"], facts["position"]) == (long.id, "result", 3)


def test_all_that_is_known_of_a_step_stands_behind_its_words_and_only_on_demand(cli: Cli, talk: Talk) -> None:
    session = talk("s", "Why?")
    session.ask("And?")
    step = session.record(says("So.", name="msg_2"))

    short, full = (cli("session", "show", "s", "--step", step.id, *more).out for more in ((), ("--full",)))
    facts = json.loads(cli("session", "show", "s", "--step", step.id, "--json").out)["step"]

    assert full.startswith(short)
    known = dict(line.split(maxsplit=1) for line in full[len(short) :].splitlines() if line)
    assert (known["digest"], known["turn"], known["data.model"]) == (facts["digest"], step.turn, MODEL)
    assert "null" not in known.values()
    assert facts["digest"] not in short


def test_the_end_of_a_steps_name_is_shown_and_can_be_given_back(cli: Cli, talk: Talk) -> None:
    session = talk("s")
    session.ask("Why?")
    step = session.record(calls("t1"))
    session.record(step.tool_calls[0].result("Nothing."))

    names = NAME.findall(cli("session", "show", "s").out)

    shown = [cli("session", "show", "s", "--step", name).out.partition(", ") for name in names]
    assert [told.partition(",")[0] for _, _, told in shown] == ["input", "reply", "result"]
    assert names == [heading.removeprefix("Step ")[-6:] for heading, _, _ in shown]


def test_compactions_and_reverts_are_no_turns_that_are_counted(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("s", "one", "two", "three")
    tip = nexus.ledger.session("s").tip  # type: ignore[union-attr]
    compaction = NewStep(kind="compaction", closes=True, data={"summary": "They talked.", "first_kept": None})
    for step in (compaction, NewStep(kind="revert", closes=True, data={"restores": None})):
        tip = nexus.ledger.append("s", step, after=tip).id

    outcome = cli("session", "show", "s", "-n", "1")

    assert outcome.out.count("\nTurn ") == 1
    assert "\n(2 earlier turns; --limit all shows all)\n\nTurn " in outcome.out
    assert [line for line in body(outcome) if line and not line.startswith("assistant")] == [
        "user",
        "  three",
        "  re three",
        "compaction: keeps nothing",
        "  They talked.",
        "revert: no compaction counts",
    ]


def test_a_result_that_does_not_name_its_tool_has_the_name_of_its_call(cli: Cli, nexus: Nexus) -> None:
    call = Message("assistant", (ToolCall(id="call_19", name="look", arguments={}),))
    brought = Message("tool", (ToolResult(call_id="call_19", parts=(Text("Nothing."),)),))
    nexus.session("s").record(AgentResult(messages=[Message("user", "Look."), call, brought]))

    assert "tool look (call_19)" in body(cli("session", "show", "s"))


def test_a_step_of_another_session_is_not_shown(cli: Cli, talk: Talk) -> None:
    talk("s", "Why?")
    session = talk("s")
    fork = session.fork("f")
    fork.ask("But?")
    mine = fork.record(says("No.", name="msg_2"))
    session.ask("And?")
    other = session.record(says("Yes.", name="msg_3"))

    refused = cli("session", "show", "f", "--step", other.id)

    assert refused.code == 2
    assert f"there is no step '{other.id}' in session 'f'" in refused.err
    assert cli("session", "show", "f", "--step", mine.id).code == 0
    assert cli("session", "show", "f", "--step", "nonsense").code == 2


@pytest.mark.parametrize("options", [["--step", "x", "-n", "1"], ["--step", "x", "--limit", "all"]], ids=str)
def test_only_one_choice_can_be_made(cli: Cli, options: list[str]) -> None:
    assert cli("session", "show", "s", *options).code == 2


def test_a_session_in_which_nothing_was_said_is_shown(cli: Cli, nexus: Nexus) -> None:
    nexus.ledger.create("s")

    outcome = cli("session", "show", "s")

    assert (outcome.code, outcome.out.splitlines()[0]) == (0, "s: 0 turns, 0 tokens, closed")


def test_an_item_that_was_taken_back_is_told(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("s", "Why?")
    record = nexus.ledger.session("s")
    assert record is not None
    made = nexus.ledger.append("s", NewStep(kind="revert", closes=True, data={"popped": 1}), after=record.tip)
    nexus.ledger.append("s", NewStep(kind="revert", closes=True, data={"popped": 2}), after=made.id)

    assert body(cli("session", "show", "s"))[-3:] == [
        "revert: the newest item was taken back",
        "",
        "revert: the newest 2 items were taken back",
    ]


def test_a_reply_says_what_kept_its_call_from_the_cache(cli: Cli, talk: Talk, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "Be brief. " * 500})
    session = talk("s", "Why?")
    write_files(work, {".nexus3/NEXUS.md": "Be terse. " * 500})
    session.reload()
    session.ask("And then?")
    step = session.record(says("So.", name="msg_2"))

    shown = [line for line in body(cli("session", "show", "s")) if line.startswith("assistant")]

    blame = f"'Project Configuration' ({work}/.nexus3/NEXUS.md) has changed"
    assert [line.partition(" · cache: ")[2] for line in shown] == ["", blame]
    assert blame in cli("session", "show", "s", "--step", step.id).out
    cache = json.loads(cli("session", "show", "s", "--step", step.id, "--json").out)["step"]["cache"]
    assert (cache["verdict"], cache["got"], cache["blame"]["cause"]) == ("miss", 200, "section")


def test_what_was_changed_behind_the_ledgers_back_is_shown_and_named(
    cli: Cli, talk: Talk, nexus: Nexus, nexus_home: Path
) -> None:
    talk("main", "Where is the roll?")
    record = nexus.ledger.session("main")
    assert record is not None
    step = str(record.tip)
    nexus.close()
    tamper(
        nexus_home / "ledger.db",
        lambda file: file.execute(
            "update steps set messages = replace(messages, 'roll', 'cake') where id = ?", (step,)
        ),
    )

    outcome = cli("session", "show", "main")
    alone = cli("session", "show", "main", "--step", step)
    told = json.loads(cli("session", "show", "main", "--json").out)
    going_on = cli("assemble", "And now?", "--session", "main")

    assert (outcome.code, alone.code, going_on.code) == (3, 3, 0)
    assert f"step {step} is not what was recorded; `nexus ledger verify` says" in going_on.err
    assert "re Where is the cake?" in outcome.out
    for each in (outcome, alone):
        assert f"session 'main' is damaged: step {step} is not what was recorded" in each.err
        assert "`nexus ledger verify` says what is wrong" in each.err
    assert told["damaged"] == [{"label": "main", "what": f"step {step} is not what was recorded"}]


def test_a_turn_that_cannot_be_read_hides_no_other(cli: Cli, talk: Talk, nexus: Nexus, nexus_home: Path) -> None:
    talk("main", "one", "two", "three")
    second = [step for step in nexus.ledger.thread(str(nexus.ledger.session("main").tip)) if step.id == step.turn][1]  # type: ignore[union-attr]
    nexus.close()
    tamper(
        nexus_home / "ledger.db",
        lambda file: file.execute("update steps set messages = '[' where id = ?", (second.id,)),
    )

    outcome = cli("session", "show", "main")

    assert outcome.code == 3
    assert ("re one" in outcome.out, "re three" in outcome.out) == (True, True)
    assert f"step {second.id} of turn {second.id} is damaged: its messages cannot be read" in outcome.err


def test_the_session_start_has_a_heading_that_is_not_a_turn(
    cli: Cli, talk: Talk, nexus_home: Path, nexus: Nexus
) -> None:
    (nexus_home / "config.json").unlink()
    talk("main", "one")
    start = next(nexus.ledger.steps())

    lines = cli("session", "show", "main").out.splitlines()

    assert lines[0].startswith("main: 1 turn, ")
    assert next(line.split(",")[0] for line in lines if line.startswith(("Start ", "Turn "))) == f"Start {start.id}"
    assert sum(line.startswith("Turn ") for line in lines) == 1
