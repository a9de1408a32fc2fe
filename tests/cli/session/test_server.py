"""The same commands where conversations are on a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from tests.cli.session.conftest import TypeIn
from tests.conftest import Cli
from tests.session.support import TOOLS, calls, says

pytestmark = pytest.mark.slow


@pytest.mark.acceptance("A-05")
def test_a_server_answers_as_a_file_does(cli: Cli, work: Path, tmp_path: Path, database: str) -> None:
    answers = []
    for url in (f"sqlite:///{tmp_path}/ledger.db", database):
        with Nexus(work, ledger=url) as nexus:
            session = nexus.session("main", model="claude-sonnet-4", tools=TOOLS)
            for number in range(6):
                session.ask(f"question {number}")
                session.record(says("Because.", name=f"msg_{number}"))
            session.fork("fork").ask("And?")
            nexus.session("fork").record(calls("t1", name="msg_9"))
        commands = ["session list", "session show fork", "session tree", "session stats", "ledger verify"]
        commands.append("session archive fork")
        answers.append([answer(cli(*each.split(), "--ledger", url, "--json").out) for each in commands])

    assert answers[0] == answers[1]


def answer(text: str) -> Any:
    """What was printed, without what differs from one time to the next."""

    def plain(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            changing = {"ledger", "data"} | (
                {"messages", "tokens", "total"} if value.get("kind") == "sealed" else set()
            )
            return {name: plain(each, name) for name, each in value.items() if name not in changing}
        if isinstance(value, list):
            return [plain(each) for each in value]
        is_time = isinstance(value, str) and value.startswith("[Session started: ")
        if is_time or key in ("created", "updated", "chain", "digest"):
            return "…"
        return "ID" if isinstance(value, str) and len(value.partition(":")[0]) == 26 else value

    return plain(json.loads(text))


def test_a_loop_is_kept_on_a_server_and_saved_into_a_file(cli: Cli, type_in: TypeIn, database: str) -> None:
    for given in (
        {"role": "user", "content": "Why?"},
        calls("t1"),
        {"call": "t1", "result": "x"},
        says("So.", name="m2"),
    ):
        type_in(json.dumps(given))
        assert cli("session", "record", "s", "-", "--ledger", database).code == 0

    saved = cli("ledger", "repair", "saved.db", "--ledger", database)

    assert saved.code == 0
    assert (
        cli("session", "show", "s", "--ledger", "saved.db").out == cli("session", "show", "s", "--ledger", database).out
    )


def test_whoever_looks_at_an_empty_server_makes_nothing(cli: Cli, database: str) -> None:
    import psycopg

    for command in ("session list", "session tree", "session stats", "ledger verify"):
        assert cli(*command.split(), "--ledger", database).code == 0

    with psycopg.connect(database) as connection:
        assert connection.execute("select 1 from pg_namespace where nspname = 'nexus'").fetchall() == []
