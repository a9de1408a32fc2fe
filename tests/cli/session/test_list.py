"""`nexus session list` and what all commands of the group have in common."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.testing import write_files
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message
from tests.cli.session.conftest import Talk, TypeIn
from tests.conftest import Cli
from tests.session.support import calls, says


def listed(cli: Cli, *options: str) -> dict[str, dict[str, object]]:
    sessions = json.loads(cli("session", "list", "--json", *options).out)["sessions"]
    return {session["label"]: session for session in sessions}


def test_a_row_says_what_a_session_consists_of_and_where_it_stands(cli: Cli, talk: Talk, work: Path) -> None:
    talk("auth-bug", "Why?", "And?").ask("So?")

    outcome = cli("session", "list")

    heading, row = outcome.out.splitlines()
    assert outcome.code == 0
    assert heading.split() == ["SESSION", "TURNS", "TOKENS", "CACHED", "COST", "CHANGED", "STATE", "MODEL", "DIRECTORY"]
    label, turns, tokens, cached, cost, _day, _time, state, model, directory = row.split()
    assert (label, turns, cached, cost, state, model, directory) == (
        "auth-bug",
        "3",
        "83%",
        "$0.0019",
        "open",
        "claude-sonnet-4",
        str(work),
    )
    assert int(tokens) > 0


def test_model_of_a_session_without_its_own_is_that_of_its_newest_step(
    cli: Cli, nexus: Nexus, nexus_home: Path
) -> None:
    write_files(nexus_home, {"config.json": '{"provider": {"model": "gpt-4o"}}'})
    nexus.session("s").ask("Why?")

    assert listed(cli)["s"]["model"] == "gpt-4o"


def test_session_list_works_beside_instructions_that_are_not_utf8(cli: Cli, talk: Talk, work: Path) -> None:
    talk("s", "Why?")
    (work / "NEXUS.md").write_bytes(b"caf\xe9")

    assert list(listed(cli)) == ["s"]


@pytest.mark.acceptance("D-10")
def test_the_rate_of_the_cache_is_that_of_all_recorded_calls(cli: Cli, talk: Talk) -> None:
    session = talk("s", "Why?")
    session.ask("And?")
    reply = says("Because.", name="msg_9")
    session.record(reply | {"usage": {"input_tokens": 240, "output_tokens": 1, "cache_read_input_tokens": 0}})

    found = listed(cli)["s"]

    assert found["usage"] == {
        "input_tokens": 480,
        "output_tokens": 51,
        "cached_input_tokens": 200,
        "cache_write_tokens": 30,
        "reasoning_tokens": 20,
        "cache_write_1h_tokens": 0,
    }
    assert found["cache_hit_rate"] == round(200 / 480, 4)


def test_a_session_whose_calls_did_not_say_what_they_cost_has_no_rate(cli: Cli, nexus: Nexus) -> None:
    session = nexus.session("s")
    session.ask("Why?")
    session.record({"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]})

    assert listed(cli)["s"]["cache_hit_rate"] is None
    assert cli("session", "list").out.splitlines()[1].split()[3] == "-"


def test_no_thread_is_read_to_list_sessions_without_costs(
    cli: Cli, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = talk("s", *map(str, range(50)))
    session.fork("f").ask("And?")
    read: list[int | None] = []
    thread = StoreLedger.thread

    def counting(self: StoreLedger, tip: str, *, first: str | None = None, limit: int | None = None) -> object:
        read.append(limit)
        return thread(self, tip, first=first, limit=limit)

    monkeypatch.setattr(StoreLedger, "thread", counting)
    found = listed(cli, "--no-cost")

    assert (found["s"]["turns"], found["f"]["turns"]) == (50, 51)
    assert all(limit is not None and limit <= 32 for limit in read)


def test_sessions_that_other_programs_made_are_counted_by_reading_them(cli: Cli, nexus: Nexus) -> None:
    nexus.ledger.create("s")
    tip = None
    for number in range(40):
        data = {"usage": {"input_tokens": 10, "cached_input_tokens": 5}}
        step = NewStep(
            kind="turn", closes=True, messages=(Message("user", str(number)),), tokens=1, counter="c", data=data
        )
        tip = nexus.ledger.append("s", step, after=tip).id
    nexus.ledger.append("s", NewStep(kind="compaction", closes=True, data={"summary": "x"}, counter="c"), after=tip)
    nexus.session("s").ask("And?")

    found = listed(cli)["s"]

    assert (found["turns"], found["steps"], found["cache_hit_rate"]) == (41, 43, 0.5)


def test_a_fork_has_the_turns_before_it(cli: Cli, talk: Talk) -> None:
    session = talk("s", "1", "2")
    session.fork("f")
    talk("f", "3", "4", "5")

    assert (listed(cli)["s"]["turns"], listed(cli)["f"]["turns"]) == (2, 5)
    assert listed(cli)["f"]["origin"] == "s"


def test_archived_sessions_are_listed_on_demand(cli: Cli, talk: Talk) -> None:
    talk("old", "1")
    talk("new", "1")
    cli("session", "archive", "old")

    assert list(listed(cli)) == ["new"]
    assert list(listed(cli, "--archived")) == ["old"]
    assert set(listed(cli, "--include-archived")) == {"old", "new"}
    assert cli("session", "list", "--include-archived", "--archived").code == 2


def test_those_changed_last_come_first(cli: Cli, talk: Talk) -> None:
    for label in ("a", "b", "a"):
        talk(label, label)

    assert list(listed(cli)) == ["a", "b"]


def test_names_that_would_steer_a_terminal_are_made_visible_and_long_ones_are_whole(cli: Cli, talk: Talk) -> None:
    talk("evil\x1b[2J\nname", "1")
    talk("x" * 400, "1")

    outcome = cli("session", "list")

    assert "\x1b" not in outcome.out
    assert r"evil\x1b[2J\nname" in outcome.out
    assert "x" * 400 in outcome.out
    assert len(outcome.out.splitlines()) == 3
    assert {"evil\x1b[2J\nname", "x" * 400} == set(listed(cli))


# ---- which ledger ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [["list"], ["tree"], ["stats"], ["verify"], ["show", "x"], ["fork", "x", "y"]], ids=str
)
def test_whoever_looks_where_nothing_is_makes_nothing(cli: Cli, nexus_home: Path, command: list[str]) -> None:
    outcome = cli("session", *command)

    assert not nexus_home.exists() or list(nexus_home.iterdir()) == []
    assert outcome.code == (2 if len(command) > 1 else 0)
    if command[0] in ("list", "tree", "stats"):
        hint = "`nexus session import` reads those of other agents."
        assert outcome.err == f"No sessions in sqlite:///{nexus_home}/ledger.db. {hint}\n"


def test_an_unknown_session_is_an_error_that_suggests_the_nearest(cli: Cli, talk: Talk) -> None:
    talk("auth-bug", "1")

    outcome = cli("session", "show", "auth-bgu")

    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "Error: unknown session 'auth-bgu'\n  did you mean 'auth-bug'?\n"


def test_another_ledger_is_named_by_its_file_or_its_url(cli: Cli, work: Path, tmp_path: Path) -> None:
    with Nexus(work, ledger=f"sqlite:///{tmp_path}/other.db") as nexus:
        nexus.session("elsewhere").ask("Why?")

    for name in ("../other.db", str(tmp_path / "other.db"), f"sqlite:///{tmp_path}/other.db"):
        assert list(listed(cli, "--ledger", name)) == ["elsewhere"]


def test_a_file_that_is_to_be_read_must_be_there(cli: Cli, work: Path) -> None:
    outcome = cli("session", "list", "--ledger", "typo.db")

    assert outcome.code == 2
    assert f"there is no ledger\n  at {work}/typo.db" in outcome.err
    assert list(work.iterdir()) == []


def test_a_password_is_never_printed(cli: Cli) -> None:
    outcome = cli("session", "list", "--ledger", "redis://me:sec@ret@host/1?password=secret")

    assert outcome.code == 3
    assert "sec" not in outcome.err


def test_a_connection_string_of_libpq_is_not_taken_for_a_file(cli: Cli, work: Path) -> None:
    for command in (("list",), ("verify",), ("record", "chat"), ("copy", "new.db")):
        outcome = cli("session", *command, "--ledger", "host=h password=sesame")

        assert outcome.code == 3
        assert "write postgresql://USER:PASSWORD@HOST:PORT/DATABASE" in outcome.err
        assert "sesame" not in outcome.out + outcome.err
    assert list(work.iterdir()) == []


def test_pending_calls_do_not_hinder_the_list(cli: Cli, talk: Talk) -> None:
    session = talk("s")
    session.ask("Why?")
    session.record(calls("t1"))

    assert listed(cli)["s"]["open_turn"] is not None


def test_a_damaged_session_is_named_and_the_others_are_listed(
    cli: Cli, talk: Talk, nexus: Nexus, nexus_home: Path
) -> None:
    talk("whole", "Why?")
    talk("torn", "Why?")
    torn = nexus.ledger.session("torn")
    assert torn is not None
    nexus.close()
    with closing(sqlite3.connect(nexus_home / "ledger.db")) as connection:
        connection.execute("drop trigger steps_are_never_deleted")
        connection.execute("delete from steps where id = ?", (torn.tip,))
        connection.commit()

    outcome = cli("session", "list")
    told = json.loads(cli("session", "list", "--json").out)

    assert outcome.code == 3
    assert [row.split()[0] for row in outcome.out.splitlines()] == ["SESSION", "whole"]
    assert f"session 'torn' is damaged: there is no step {torn.tip}" in outcome.err
    assert [each["label"] for each in told["sessions"]] == ["whole"]
    assert [each["label"] for each in told["damaged"]] == ["torn"]


def test_workers_stand_under_the_session_that_made_them(cli: Cli, talk: Talk) -> None:
    main = talk("main", "one")
    main.spawn("Look into it.", name="helper").spawn("Look closer.", name="its-helper")
    talk("other", "two")

    rows = cli("session", "list").out.splitlines()[1:]
    told = json.loads(cli("session", "list", "--json").out)["sessions"]

    assert [row[: len(row) - len(row.lstrip())] + row.split()[0] for row in rows] == [
        "other",
        "main",
        "  helper",
        "    its-helper",
    ]
    assert [(each["label"], each["worker_of"]) for each in told[1:]] == [
        ("main", ""),
        ("helper", "main"),
        ("its-helper", "helper"),
    ]


def test_list_can_be_of_the_sessions_of_this_directory(cli: Cli, talk: Talk, nexus_home: Path, tmp_path: Path) -> None:
    talk("here", "Why?")
    (tmp_path / "other").mkdir()
    with Nexus(tmp_path / "other", home=nexus_home) as there:
        there.session("there", model="gpt-4o").ask("Why?")

    assert set(listed(cli)) == {"here", "there"}
    assert set(listed(cli, "--here")) == {"here"}
    (tmp_path / "empty").mkdir()
    outcome = cli("-C", str(tmp_path / "empty"), "session", "list", "--here")
    assert (outcome.code, outcome.out) == (0, "")
    assert f"No sessions that work in {tmp_path / 'empty'}" in outcome.err


def test_list_can_be_limited_to_those_that_changed_last(cli: Cli, talk: Talk) -> None:
    for name in ("one", "two", "three"):
        talk(name, "Why?")

    outcome = cli("session", "list", "-n", "2")

    assert [line.split()[0] for line in outcome.out.splitlines()[1:]] == ["three", "two"]
    assert "(1 more session; without -n, all are listed)" in outcome.err
    assert json.loads(cli("session", "list", "-n", "2", "--json").out)["left_out"] == 1
    assert cli("session", "list", "-n", "0").code == 2


@pytest.mark.parametrize(
    "command",
    [("session", "show"), ("session", "stats"), ("session", "replay"), ("context", "--session"), ("diff", "auth-bug")],
)
def test_session_is_found_by_the_beginning_of_its_name(cli: Cli, talk: Talk, command: tuple[str, ...]) -> None:
    talk("auth-bug", "Why?")
    talk("auth-bug/worker", "Why?")
    talk("bakery", "Why?")

    outcome = cli(*command, "auth-b")

    assert outcome.code == 0
    assert outcome.out == cli(*command, "auth-bug").out


def test_tree_draws_the_start_of_a_session_apart_from_the_turns_that_it_counts(cli: Cli, talk: Talk) -> None:
    talk("auth-bug", "Why?")

    heading, start, turn = cli("session", "tree").out.splitlines()

    assert heading.startswith("1 turn,")
    assert (start[0], turn[0]) == ("-", "*")
    assert "[Session started: " in start


def test_beginning_of_several_names_lists_them(cli: Cli, talk: Talk) -> None:
    talk("auth-bug", "Why?")
    talk("auth-fix", "Why?")

    outcome = cli("session", "show", "auth")

    assert outcome.code == 2
    assert "2 sessions have names that begin with 'auth': 'auth-bug', 'auth-fix'" in outcome.err


def test_record_takes_a_name_as_it_is_because_it_may_be_new(cli: Cli, talk: Talk, type_in: TypeIn) -> None:
    talk("auth-bug", "Why?")
    type_in("Hello")

    assert cli("session", "record", "auth", "-", "--role", "user").code == 0
    assert set(listed(cli)) == {"auth", "auth-bug"}


def test_session_list_says_that_a_renderer_may_send_messages_in_another_form(cli: Cli, nexus: Nexus) -> None:
    session = nexus.session("tagged", model="gpt-4o", renderer="tagged")
    session.ask("Why?")
    session.record(says("Because."))

    outcome = cli("session", "list")

    assert re.search(r"tagged +1 +\d+\^", outcome.out)
    assert "^ as recorded; the renderer can arrange messages anew" in outcome.err
    assert json.loads(cli("session", "list", "--json").out)["sessions"][0]["arranged"] is True


def test_session_list_has_no_such_sign_for_the_usual_renderer(cli: Cli, talk: Talk) -> None:
    talk("main", "one")

    assert "^" not in cli("session", "list").out
