"""Searches in a directory, through the doors that users have: `--here`, memory, and what a model reads."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
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
