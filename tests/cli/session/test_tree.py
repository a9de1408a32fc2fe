"""`nexus session tree`: how conversations branch, and where each session stands."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.cli.commands.session.tree import (
    draw_tree,
    find_trees,
    group_labels_by_tip,
    read_branch_lines,
    read_branches,
)
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.testing import write_files
from nexus_core.text.layout import measure_width
from nexus_core.types.ledger import NewStep
from tests.cli.session.conftest import Talk
from tests.conftest import Cli
from tests.ledger.backends import add, clock, names, said, tell
from tests.ledger.test_verify import tamper
from tests.session.support import calls, says

pytestmark = pytest.mark.usefixtures("no_session_start")

_ID = re.compile(r"[0-9A-Z]{26}")


def drawn(ledger: StoreLedger, width: int = 100) -> list[str]:
    """The trees of a ledger, without the names of turns."""
    records = ledger.sessions(status=None)
    lines: list[str] = []
    for tree in find_trees(ledger, records)[0]:
        read = {line.branch.id: line for line in read_branch_lines(ledger, tree, group_labels_by_tip(records), [])}
        lines += draw_tree(read, tree.root, width)
    return [_ID.sub("ID", line) for line in lines]


@pytest.fixture
def ledger() -> MemoryLedger:
    return MemoryLedger(now=clock(), name=names())


def test_forks_leave_from_their_turn_and_long_runs_are_a_number(ledger: MemoryLedger) -> None:
    ledger.create("main")
    steps = tell(ledger, "main", *(f"turn {number}" for number in range(8)))
    ledger.create("fork", head=steps[3].id)
    tell(ledger, "fork", "another way", "still", "and on", "there")

    assert drawn(ledger) == [
        "* ID  turn 0",
        "* ID  turn 1",
        "* ID  turn 2",
        "* ID  turn 3",
        "|\\",
        "| * ID  another way",
        "| * ID  still",
        "| * ID  and on",
        "| * ID  there  <- fork",
        ": 3 turns",
        "* ID  turn 7  <- main",
    ]


def test_several_forks_from_one_turn_and_forks_of_forks(ledger: MemoryLedger) -> None:
    ledger.create("main")
    first, _ = tell(ledger, "main", "one", "two")
    for name in ("a", "b"):
        ledger.create(name, head=first.id)
        begun, _ = tell(ledger, name, f"{name} one", f"{name} two")
        ledger.create(f"{name} of", head=begun.id)
        tell(ledger, f"{name} of", f"{name} other")

    assert drawn(ledger) == [
        "* ID  one",
        "|\\",
        "| * ID  a one",
        "| |\\",
        "| | * ID  a other  <- a of",
        "| * ID  a two  <- a",
        "|\\",
        "| * ID  b one",
        "| |\\",
        "| | * ID  b other  <- b of",
        "| * ID  b two  <- b",
        "* ID  two  <- main",
    ]


def test_compactions_reverts_and_open_turns_are_never_folded(ledger: MemoryLedger) -> None:
    ledger.create("main")
    tell(ledger, "main", *map(str, range(5)))
    add(ledger, "main", NewStep(kind="compaction", closes=True, data={"summary": "They counted."}))
    tell(ledger, "main", *map(str, range(5)))
    add(ledger, "main", NewStep(kind="revert", closes=True, data={"restores": None}))
    add(ledger, "main", said("long work", kind="input", closes=False))
    add(ledger, "main", NewStep(kind="compaction", data={"summary": "Half of it."}))
    add(ledger, "main", said("half", kind="reply", closes=True))
    add(ledger, "main", said("and?", kind="input", closes=False))

    assert drawn(ledger) == [
        "* ID  0",
        ": 4 turns",
        "# ID  They counted.  (compaction)",
        ": 5 turns",
        "~ ID  (revert)",
        "* ID  long work  (compacted)",
        "o ID  and?  (open)  <- main",
    ]


def test_sessions_that_stand_at_the_same_turn_are_named_together(ledger: MemoryLedger) -> None:
    ledger.create("main")
    (step,) = tell(ledger, "main", "one")
    ledger.create("fresh", head=step.id)

    assert drawn(ledger) == ["* ID  one  <- fresh, main"]


@pytest.mark.parametrize(("text", "end"), [("word " * 100, " word…  <- main"), ("語 " * 100, " 語…  <- main")])
def test_lines_fit_the_terminal_and_end_with_a_whole_word(ledger: MemoryLedger, text: str, end: str) -> None:
    ledger.create("main")
    tell(ledger, "main", text)

    (line,) = drawn(ledger, 80)

    assert 75 < measure_width(line.replace("ID", "x" * 26)) <= 80
    assert line.endswith(end)


@pytest.mark.parametrize("forks", [100, pytest.param(1100, marks=pytest.mark.slow)])
def test_a_fork_of_a_fork_of_a_fork_a_thousand_times(ledger: MemoryLedger, forks: int) -> None:
    ledger.create("0")
    (before,) = tell(ledger, "0", "0")
    tell(ledger, "0", "0 goes on")
    for number in range(1, forks):
        ledger.create(str(number), head=before.id)
        (before,) = tell(ledger, str(number), str(number))
        tell(ledger, str(number), f"{number} goes on")

    lines = drawn(ledger)

    assert len([line for line in lines if "<-" in line]) == forks
    assert max(map(len, lines)) < 100


def test_equal_ledgers_are_drawn_alike(ledger: MemoryLedger) -> None:
    twin = MemoryLedger(now=clock(), name=names())
    for each in (ledger, twin):
        each.create("main")
        steps = tell(each, "main", *map(str, range(9)))
        for number in (7, 3, 5):
            each.create(f"fork {number}", head=steps[number].id)
            tell(each, f"fork {number}", "x")

    assert drawn(ledger) == drawn(twin)


# ---- the command ----------------------------------------------------------------------------------------------------


def test_the_tree_of_a_session_has_all_its_forks_and_no_other_conversation(cli: Cli, talk: Talk) -> None:
    session = talk("main", "one", "two")
    session.fork("fork")
    talk("fork", "three")
    talk("main", "four")
    talk("other", "elsewhere")

    alone, all_of_them = cli("session", "tree", "fork"), cli("session", "tree")

    assert alone.out.splitlines()[0] == "4 turns, 2 branches, 2 sessions"
    assert ("<- main" in alone.out, "<- fork" in alone.out, "elsewhere" in alone.out) == (True, True, False)
    assert "1 turn, 1 branch, 1 session\n" in all_of_them.out
    assert "elsewhere  <- other" in all_of_them.out


@pytest.mark.acceptance("H-08")
def test_json_says_where_branches_leave_and_where_sessions_stand(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    session = talk("main", "one", "two", "three", "four", "five")
    session.fork("fork")
    talk("main", "six")
    fork = talk("fork")
    fork.ask("seven")
    fork.record(calls("t1", name="msg_7"))

    document = json.loads(cli("session", "tree", "--json").out)

    (tree,) = document["trees"]
    main, branch = tree["branches"]
    assert (document["schema"], document["more_trees"], tree["sessions"]) == (1, 0, ["fork", "main"])
    assert (main["left_from"], main["turns"], branch["turns"]) == (None, 6, 1)
    assert main["items"][1] == {"folded": 3}
    assert main["items"][2]["forks"] == [branch["id"]]
    assert branch["left_from"] == nexus.ledger.thread(str(nexus.ledger.session("main").head))[-4].id  # type: ignore[union-attr]
    assert branch["items"] == [
        {
            "turn": branch["id"],
            "said": "seven",
            "kind": "turn",
            "is_open": True,
            "is_compacted": False,
            "sessions": ["fork"],
            "forks": [],
        }
    ]


def test_a_clock_that_went_back_draws_no_branch_before_the_one_it_left() -> None:
    times = iter(range(2_000_000_000_000, 0, -86_400_000))
    ledger = MemoryLedger(now=times.__next__)
    ledger.create("main")
    steps = tell(ledger, "main", *"abc")
    for number, step in enumerate((steps[1], steps[0])):
        ledger.create(f"fork {number}", head=step.id)
        tell(ledger, f"fork {number}", "another way")

    ((tree,), damaged) = find_trees(ledger, ledger.sessions())

    branches = read_branches(ledger, tree, damaged)
    assert damaged == []
    assert [branch.first.position for branch in branches] == [0, 1, 2]
    assert branches[0].id == tree.root == steps[0].id


def test_what_is_drawn_is_bounded_and_the_rest_is_counted(cli: Cli, nexus: Nexus) -> None:
    for number in range(120):
        nexus.ledger.create(f"s{number}")
        nexus.ledger.append_many(f"s{number}", [said("a"), said("b")], after=None)

    outcome = cli("session", "tree")

    assert len(outcome.out.splitlines()) == 399
    assert outcome.err == "(20 more trees; --limit all shows them)\n"
    assert len(json.loads(cli("session", "tree", "--json").out)["trees"]) == 100
    assert len(json.loads(cli("session", "tree", "--json", "--limit", "all").out)["trees"]) == 120


def test_of_one_large_tree_the_first_lines_are_drawn(cli: Cli, nexus: Nexus) -> None:
    nexus.ledger.create("main")
    first = nexus.ledger.append("main", said("one"), after=None)
    nexus.ledger.append("main", said("two"), after=first.id)
    for number in range(101):
        nexus.ledger.create(f"s{number}", head=first.id)
        nexus.ledger.append(f"s{number}", said(str(number)), after=first.id)

    outcome = cli("session", "tree", "main")

    assert len(outcome.out.splitlines()) == 201
    assert outcome.err == "(4 more lines; --limit all shows them)\n"
    assert len(cli("session", "tree", "main", "--limit", "all").out.splitlines()) == 205


def test_whoever_names_no_turn_to_fork_from_is_told_what_lists_them(cli: Cli, talk: Talk) -> None:
    talk("the main", *map(str, range(7)))

    refused = cli("session", "fork", "the main", "again", "--at", "1")
    command = re.findall(r"`nexus (.+?)`", refused.err)[0]
    folded, listed = cli("session", "tree", "the main").out, cli(*shlex.split(command)).out

    assert refused.code == 2
    assert (": 5 turns" in folded, len(_ID.findall(listed))) == (True, 7)
    assert cli("session", "fork", "the main", "again", "--at", _ID.findall(listed)[3]).code == 0
    assert not [
        item
        for item in json.loads(cli("session", "tree", "--limit", "all", "--json").out)["trees"][0]["branches"][0][
            "items"
        ]
        if "folded" in item
    ]


def test_a_session_in_which_nothing_was_said_has_no_tree(cli: Cli, nexus: Nexus) -> None:
    nexus.ledger.create("s")

    assert cli("session", "tree", "s").err == "The session has no turns yet.\n"


def test_a_session_is_drawn_with_its_workers(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    worker = talk("main", "one").spawn("Look into it.", name="helper")
    worker.ask("Go.")
    worker.record(says("done", name="msg_w"))
    worker.spawn("Look closer.", name="its-helper").ask("Go.")
    talk("other", "elsewhere")
    nexus.ledger.rename("main", "front")

    outcome = cli("session", "tree", "front")
    told = json.loads(cli("session", "tree", "front", "--json").out)

    assert [line for line in outcome.out.splitlines() if "branch" in line] == [
        "1 turn, 1 branch, 1 session",
        "1 turn, 1 branch, 1 session, worker of front",
        "1 turn, 1 branch, 1 session, worker of helper",
    ]
    assert [tree["worker_of"] for tree in told["trees"]] == ["", "front", "helper"]


def test_a_session_whose_end_is_gone_is_named_and_the_others_are_drawn(
    cli: Cli, talk: Talk, nexus: Nexus, nexus_home: Path
) -> None:
    talk("whole", "Why?")
    talk("torn", "Why?", "And now?")
    tip = str(nexus.ledger.session("torn").tip)  # type: ignore[union-attr]
    nexus.close()
    tamper(nexus_home / "ledger.db", lambda file: file.execute("delete from steps where id = ?", (tip,)))

    outcome = cli("session", "tree")
    told = json.loads(cli("session", "tree", "--json").out)

    assert outcome.code == 3
    assert "<- whole" in outcome.out
    assert f"session 'torn' is damaged: there is no step {tip}" in outcome.err
    assert told["damaged"] == [{"label": "torn", "what": f"there is no step {tip}"}]
    assert cli("session", "tree", "whole").code == 0


def test_a_turn_that_cannot_be_read_is_drawn_as_damaged_between_the_others(cli: Cli, torn_turn: str) -> None:
    outcome = cli("session", "tree", "main")

    heading, *drawn = outcome.out.splitlines()
    assert (outcome.code, heading) == (3, "3 turns, 1 branch, 1 session")
    assert [line[0] for line in drawn] == ["*", "!", "*"]
    assert f"session 'main' is damaged: step {torn_turn} of turn {torn_turn} is damaged" in outcome.err


def test_a_turn_of_the_tree_can_be_forked_from(cli: Cli, talk: Talk) -> None:
    talk("main", "one", "two", "three")
    second = _ID.findall(cli("session", "tree", "main").out)[1]

    assert cli("session", "fork", "main", "again", "--at", second).code == 0

    assert "two  <- again" in cli("session", "tree").out


def test_a_leading_system_message_is_not_drawn_as_a_turn(cli: Cli, work: Path) -> None:
    roles = ("system", "user", "assistant")
    messages = [{"role": role, "content": f"{role} text"} for role in roles]
    write_files(work, {"chat.json": json.dumps(messages)})
    cli("session", "import", "chat.json", "--name", "chat")

    outcome = cli("session", "tree", "chat")
    (tree,) = json.loads(cli("session", "tree", "chat", "--json").out)["trees"]

    assert [_ID.sub("ID", line) for line in outcome.out.splitlines()] == [
        "1 turn, 1 branch, 1 session",
        "- ID  system text  (system)",
        "* ID  user text  <- chat",
    ]
    assert [item["kind"] for item in tree["branches"][0]["items"]] == ["system", "turn"]


def test_command_of_claude_code_is_drawn_as_it_was_typed(cli: Cli, talk: Talk) -> None:
    name = "<command-name>/clear</command-name>\n <command-message>clear</command-message>\n "
    elements = name + "<command-args>{}</command-args>"
    talk("s", elements.format(""), elements.format("all of it"))

    out = cli("session", "tree", "s").out

    assert [line.split("  ")[1] for line in out.splitlines()[1:]] == ["/clear", "/clear all of it"]


def test_command_that_a_user_quotes_is_drawn_as_it_was_written(cli: Cli, talk: Talk) -> None:
    quoted = "Please explain <command-name>clear</command-name> to me."
    talk("s", quoted)

    out = cli("session", "tree", "s").out

    assert out.splitlines()[1].split("  ")[1] == quoted
