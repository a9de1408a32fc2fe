"""Files that earlier versions wrote stay readable: `written/schema-N.sql` is what SQLite dumps of such a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from nexus_core.ledger.ledger import StoreLedger
from nexus_core.types.ledger import NewStep
from nexus_plugins.ledger.sqlite import SqliteLedger, open_sqlite
from tests.ledger.backends import add, tell, texts

DUMPS = sorted(Path(__file__).with_name("written").glob("*.sql"))


@pytest.fixture(params=DUMPS, ids=lambda path: path.stem)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteLedger]:
    """A file that was written by an earlier version."""
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(request.param.read_text(encoding="utf-8"))
        connection.execute("pragma journal_mode = wal")
    opened = open_sqlite(f"sqlite:///{path}")
    yield opened
    opened.close()


def test_every_schema_there_was_is_among_them() -> None:
    assert [path.stem for path in DUMPS] == ["schema-1"]


@pytest.mark.acceptance("R22")
def test_an_old_file_verifies_clean_and_says_what_it_said(old: SqliteLedger) -> None:
    work = old.session("work")
    assert work is not None
    assert list(old.verify()) == []
    assert texts(old.thread(str(work.tip))) == ["Why?", "Let me look.", "", "Because.", "One.", "Two."]
    assert [step.kind for step in old.thread(str(old.session("fork").tip))][-4:] == [  # type: ignore[union-attr]
        "turn",
        "compaction",
        "revert",
        "input",
    ]


@pytest.mark.acceptance("R22")
def test_an_old_file_goes_on(old: SqliteLedger) -> None:
    tell(old, "work", "Three.")
    add(old, "branch", NewStep(kind="interrupted", closes=True, data={"z": 1, "a": 2}))

    assert list(old.verify()) == []


def test_an_old_file_is_copied_into_any_other_ledger(old: SqliteLedger, ledger: StoreLedger) -> None:
    report = old.repair(ledger)

    assert report.lost == ()
    assert list(ledger.steps()) == list(old.steps())
    assert list(ledger.verify()) == []
