"""`nexus session delete`: a session is erased, that is recorded, and every other command gives a clear answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core import Nexus
from tests.cli.conftest import Answer
from tests.cli.session.conftest import Talk
from tests.conftest import Cli, InstallPlugin

pytestmark = pytest.mark.usefixtures("no_session_start")

WORDS = "the word is swordfish"


SHELF = """
from nexus_core import hookimpl
from nexus_core.history.ledger.memory import MemoryLedger

class Shelf:
    url = "shelf:"

    def __init__(self):
        self._kept = MemoryLedger()
        self._kept.create("main")

    def __getattr__(self, name):
        if name in ("delete", "deletions"):
            raise AttributeError(name)
        return getattr(self._kept, name)

@hookimpl
def nexus_ledger(url):
    return Shelf() if url.startswith("shelf:") else None
"""


@pytest.fixture
def reply(talk: Talk, nexus: Nexus) -> str:
    """The last reply of a session that is about to be deleted, beside another that was forked from it."""
    talk("main", "one")
    nexus.session("main").fork("fork")
    talk("main", WORDS)
    talk("fork", "two")
    record = nexus.ledger.session("main")
    assert record is not None
    nexus.close()
    return str(record.tip)


@pytest.mark.acceptance("R23")
def test_delete_erases_a_session_and_records_it(cli: Cli, reply: str, nexus_home: Path) -> None:
    tried = cli("session", "delete", "main", "--dry-run")
    refused = cli("session", "delete", "main")
    done = cli("session", "delete", "main", "--yes", "--reason", "a leak")
    verified = cli("session", "verify")

    assert (tried.code, refused.code, done.code, verified.code) == (0, 2, 0, 0)
    assert tried.err.startswith("Would delete main: 3 steps and 0 blobs.")
    assert "there is no terminal to ask on, so nothing was deleted" in refused.err
    assert done.err.startswith("Deleted main: 3 steps and 0 blobs.")
    assert "steps that are also part of fork stay" in done.err
    assert "everything is as it was recorded, 1 deletion recorded" in verified.err
    assert reply
    assert not [file for file in nexus_home.rglob("*") if file.is_file() and WORDS.encode() in file.read_bytes()]


@pytest.mark.acceptance("R23")
@pytest.mark.usefixtures("reply")
@pytest.mark.parametrize(("typed", "left"), [("y", ["fork"]), ("n", ["fork", "main"])])
def test_delete_asks_on_a_terminal(answer: Answer, cli: Cli, typed: str, left: list[str]) -> None:
    answer(f"{typed}\n")

    outcome = cli("session", "delete", "main")

    assert "main: 3 steps and 0 blobs would be erased for good" in outcome.err
    assert sorted(each["label"] for each in json.loads(cli("session", "list", "--json").out)["sessions"]) == left


@pytest.mark.acceptance("R23")
def test_a_deletion_in_json_names_everything(cli: Cli, reply: str) -> None:
    document = json.loads(cli("session", "delete", "main", "--yes", "--json").out)
    verified = json.loads(cli("session", "verify", "--json").out)

    assert (document["labels"], document["steps"], document["sharing"]) == (["main"], 3, ["fork"])
    assert (document["is_purged"], len(document["ids"]), verified["deletions"]) == (True, 1, 1)
    assert reply


@pytest.mark.acceptance("R23")
def test_other_commands_answer_clearly_about_a_deleted_session(cli: Cli, reply: str) -> None:
    exported = cli("session", "export", "main").out
    Path("main.jsonl").write_text(exported, encoding="utf-8")
    cli("session", "delete", "main", "--yes")

    for command in (("show", "main"), ("export", "main"), ("fork", "main", "new"), ("delete", "main", "--yes")):
        outcome = cli("session", *command)
        assert (outcome.code, "unknown session 'main'" in outcome.err) == (2, True), command
    replayed = cli("session", "replay", reply)
    imported = cli("session", "import", "main.jsonl")
    assert (replayed.code, imported.code) == (3, 3)
    assert f"step {reply} was deleted with its session" in replayed.err
    assert "was deleted here with its session, and does not come back" in imported.err
    assert WORDS not in cli("session", "search", "swordfish").out
    assert "swordfish" not in cli("session", "tree").out
    assert "turns        2" in cli("session", "stats").out
    assert cli("session", "copy", "new.db").code == 0
    assert "1 deletion recorded" in cli("session", "verify", "--ledger", "new.db").err


@pytest.mark.acceptance("R23")
def test_a_ledger_that_cannot_delete_says_what_to_do(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin(
        "shelf",
        SHELF,
    )

    outcome = cli("session", "delete", "main", "--yes", "--ledger", "shelf:")

    assert outcome.code == 3
    assert "nothing can be deleted from this ledger" in outcome.err
    assert "nexus session copy NEW --without LABEL" in outcome.err


@pytest.mark.acceptance("R23")
def test_nexus_deletes_a_session_and_begins_it_anew(nexus: Nexus, talk: Talk) -> None:
    talk("main", WORDS)
    session = nexus.session("main", model="gpt-4o")

    report = nexus.delete_session("main", reason="a leak")
    context = session.ask("Again?")

    assert report.labels == ("main",)
    assert WORDS not in str(context.messages)
    assert list(nexus.ledger.verify()) == []
