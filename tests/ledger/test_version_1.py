"""A ledger that a Nexus with schema 1 wrote: it opens, verifies and replays byte for byte, and a copy stays beside."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import pytest

from nexus_plugins.ledger.sqlite import open_sqlite, schema
from tests.conftest import Cli

SAMPLES = Path(__file__).parent / "samples"
REPLAYS: dict[str, str] = json.loads((SAMPLES / "version-1.replays.json").read_text(encoding="utf-8"))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The file as it was written."""
    path = tmp_path / "old" / "ledger.db"
    path.parent.mkdir()
    path.write_bytes(gzip.decompress((SAMPLES / "version-1.db.gz").read_bytes()))
    return path


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("pragma user_version").fetchone()[0])


@pytest.mark.acceptance("R22")
def test_an_old_ledger_is_verified_before_and_after_it_is_brought_up_to_date(old: Path) -> None:
    with closing(open_sqlite(f"sqlite:///{old}")) as ledger:
        before, unchanged = list(ledger.verify()), version(old)
        names = {name for label in ("work", "side", "empty") for name in (label, *ledger.aliases(label))}
        after = list(ledger.verify())

    assert (before, unchanged, after, version(old)) == ([], 1, [], schema.SCHEMA_VERSION)
    assert names == {"work", "side", "branch", "second-try", "empty"}
    assert version(old.with_name("ledger.db.v1")) == 1


@pytest.mark.acceptance("R22")
def test_an_old_ledger_is_replayed_byte_for_byte(cli: Cli, old: Path) -> None:
    replayed = {}
    for name in REPLAYS:
        outcome = cli("session", "replay", name, "--api", "openai", "--ledger", str(old))
        assert outcome.code == 0, outcome.err
        replayed[name] = blake2b(outcome.out.encode(), digest_size=32).hexdigest()

    assert replayed == REPLAYS


@pytest.mark.acceptance("R22")
def test_an_old_ledger_that_is_copied_verifies(cli: Cli, old: Path) -> None:
    copied = cli("ledger", "copy", "new.db", "--ledger", str(old))
    verified = cli("ledger", "verify", "--ledger", "new.db")

    assert (copied.code, verified.code) == (0, 0), copied.err + verified.err


@pytest.mark.acceptance("R22")
def test_an_alias_that_is_deleted_from_an_old_ledger_after_it_was_opened_is_missed(old: Path) -> None:
    with closing(open_sqlite(f"sqlite:///{old}")) as ledger:
        ledger.sessions()
        with closing(sqlite3.connect(old)) as connection, connection:
            connection.execute("delete from aliases where alias = 'branch'")

        assert [str(each) for each in ledger.verify()] == [
            "session 'side': its other name 'branch' is gone [session-changed]"
        ]


@pytest.mark.acceptance("R22")
def test_a_version_that_others_set_back_is_found_and_repaired(cli: Cli, old: Path) -> None:
    cli("session", "list", "--ledger", str(old))
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("pragma user_version = 1")

    verified = cli("ledger", "verify", "--ledger", str(old))
    listed = cli("session", "list", "--ledger", str(old))
    repaired = cli("ledger", "repair", str(old.with_name("new.db")), "--ledger", str(old))

    assert (verified.code, listed.code, repaired.code) == (1, 3, 0)
    assert "its schema version is 1, but it has a later schema's table" in verified.out
    assert "its schema version is 1, but it has a later schema's table" in listed.err
    assert cli("ledger", "verify", "--ledger", str(old.with_name("new.db"))).code == 0
