"""Searches in a directory, through the doors that users have: `--here`, memory, and what a model reads."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.memory.search import count_turns_with
from nexus_core.memory.words import get_index_stem
from nexus_core.testing import write_files
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message
from tests.conftest import Cli
from tests.session.support import says

PARROT = "The parrot invoice number is 4471."
ZEBRA = "The zebra shipment leaves from harbour Kiel."


@pytest.fixture(autouse=True)
def _switch_memory_on(nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"memory": {"enabled": true}}'})


def talk(work: Path | str, session: str, question: str, reply: str = "Noted.") -> str:
    """Ask and record a reply. Return the message as the model reads it."""
    with Nexus(work, defaults=False) as nexus:
        opened = nexus.session(session, model="gpt-4o")
        sent = opened.ask(question).messages[-1].content
        opened.record(says(reply, name=f"msg_{session}_{len(question)}"))
    return sent


def find_texts(cli: Cli, question: str) -> tuple[str, str]:
    """What `session search --here` and memory find for a question."""
    steps = json.loads(cli("session", "search", question, "--here", "--json").out)["found"]
    memories = json.loads(cli("memory", "search", question, "--json").out)["memories"]
    return "\n".join(each["text"] for each in steps), "\n".join(each["text"] for each in memories)


def test_session_that_was_forgotten_goes_on_in_its_directory(cli: Cli, work: Path) -> None:
    talk(work, "one", PARROT)
    assert all(PARROT in found for found in find_texts(cli, "parrot invoice"))
    assert cli("memory", "forget", "one", "--yes").code == 0

    talk(work, "one", ZEBRA)

    assert all(ZEBRA in found for found in find_texts(cli, "zebra shipment harbour"))
    assert not any("parrot" in found for found in find_texts(cli, "parrot invoice"))


def test_fork_keeps_shared_turns_in_their_directory_in_a_new_index(cli: Cli, work: Path, nexus_home: Path) -> None:
    talk(work, "orig", PARROT)
    with Nexus(work, defaults=False) as nexus:
        nexus.session("orig").fork("fork")
    talk(work, "orig", "Lemons are yellow.")
    talk(work, "fork", "Bananas are, too.")
    assert all(PARROT in found for found in find_texts(cli, "parrot invoice"))
    assert cli("session", "delete", "orig", "--yes").code == 0
    with closing(sqlite3.connect(nexus_home / "ledger.db")) as file, file:
        file.execute("delete from search_words_data")

    cli("session", "search", "parrot")

    assert all(PARROT in found for found in find_texts(cli, "parrot invoice"))


def find_in(directory: Path, question: str) -> list[str]:
    """The turns and the rules that sessions of a directory recall for a question."""
    with Nexus(directory, defaults=False) as nexus:
        return sorted(memory.text for memory in nexus.recall(question).memories)


def drop_index(home: Path) -> None:
    with closing(sqlite3.connect(home / "ledger.db")) as file, file:
        file.execute("drop table search_state")


@pytest.mark.parametrize("is_fork", [True, False])
def test_turns_stay_in_the_directory_that_a_session_leaves(tmp_path: Path, nexus_home: Path, *, is_fork: bool) -> None:
    kitchen, garden = tmp_path / "kitchen", tmp_path / "garden"
    rule = "Always call the parrot before noon."
    for directory in (kitchen, garden):
        directory.mkdir()
    talk(kitchen, "one", rule)
    with Nexus(garden, defaults=False) as nexus:
        session = nexus.session("one", model="gpt-4o", any_directory=True)
        if is_fork:
            session.fork("two")
            session = nexus.session("two", model="gpt-4o", any_directory=True)
        session.ask("Never feed the parrot.")
        session.record(says("Noted.", name="msg_2"))
        if is_fork:
            nexus.delete_session("one")

    for _ in range(2):
        assert {*find_in(kitchen, "parrot")} - {"Noted."} == {rule}
        assert {*find_in(garden, "parrot")} - {"Noted."} == {"Never feed the parrot."}
        drop_index(nexus_home)


def test_fork_of_an_older_turn_keeps_the_directory_of_its_turns(tmp_path: Path, nexus_home: Path) -> None:
    kitchen, garden = tmp_path / "kitchen", tmp_path / "garden"
    for directory in (kitchen, garden):
        directory.mkdir()
    talk(kitchen, "one", PARROT)
    with Nexus(garden, defaults=False) as nexus:
        session = nexus.session("one", model="gpt-4o", any_directory=True)
        session.ask(ZEBRA)
        session.record(says("Noted.", name="msg_2"))
        session.fork("two", at=next(step.turn for step in nexus.ledger.steps() if step.kind == "reply"))
        nexus.delete_session("one")
    drop_index(nexus_home)

    assert any(PARROT in text for text in find_in(kitchen, "What is the parrot invoice number?"))
    assert find_in(garden, "What is the parrot invoice number?") == []


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are any bytes only there")
def test_session_in_a_directory_whose_name_is_not_unicode_is_found(
    cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    there = work / os.fsdecode(b"w\xff")
    (there / "below").mkdir(parents=True)
    talk(work, "elsewhere", ZEBRA)
    monkeypatch.chdir(there)

    talk(there, "one", PARROT)
    talk(there / "below", "two", "The parrot sings.")

    assert all(PARROT in found and "sings" in found for found in find_texts(cli, "parrot invoice"))
    assert not any("zebra" in found for found in find_texts(cli, "zebra shipment harbour"))
    assert PARROT in talk(there, "three", "What is the number of the parrot invoice?")
    assert "one" in cli("session", "list").out
    assert json.loads(cli("session", "show", "one", "--json").out)
    assert cli("ledger", "verify").code == 0
    assert cli("memory", "forget", "one", "--yes").code == 0
    assert not any(PARROT in found for found in find_texts(cli, "parrot invoice"))
    assert cli("session", "delete", "one", "--yes").code == 0
    assert not any(record.name.startswith("nexus_core.memory") for record in caplog.records)


@pytest.mark.parametrize("ledger", ["memory:", None])
def test_turns_with_a_word_are_counted_past_excluded_ones(work: Path, ledger: str | None) -> None:
    texts = {"old": "An old server waits.", "new": "The new servers run."}
    with Nexus(work, defaults=False, ledger=ledger) as nexus:
        for name, count in (("old", 12), ("new", 90)):
            messages = (Message("user", texts[name]) for _ in range(count))
            steps = [NewStep(kind="turn", closes=True, messages=(message,)) for message in messages]
            nexus.ledger.create(name, steps=steps)
        record = nexus.ledger.session("new")
        new = {step.id for step in nexus.ledger.thread(record.tip if record and record.tip else "")}
        stems = [get_index_stem(word) for word in ("server", "run", "wait", "parrot")]

        counts = count_turns_with(nexus.ledger, stems, most=10, is_excluded=lambda step: step.id in new)

    assert counts == dict(zip(stems, (10, 0, 10, 0), strict=True))
