"""What the doctor says about the place and the keeper of conversations."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nexus_plugins.ledger._diagnosis import is_safe_version
from nexus_plugins.ledger.sqlite import database, open_sqlite
from tests.conftest import Cli

OLD, NEW = (3, 51, 2), (3, 51, 3)


@pytest.fixture
def kept(nexus_home: Path) -> Path:
    """Something is kept where it usually is."""
    path = nexus_home / "ledger.db"
    with closing(open_sqlite(f"sqlite:///{path}")) as ledger:
        ledger.create("work")
    return path


def use(monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int]) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
    monkeypatch.setattr(sqlite3, "sqlite_version", ".".join(map(str, version)))


def findings(cli: Cli) -> list[tuple[str, str]]:
    told = json.loads(cli("doctor", "--json").out)["findings"]
    return [(each["code"], each["path"]) for each in told]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 9), False),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        (OLD, False),
        (NEW, True),
        ((3, 53, 0), True),
        ((4, 0, 0), True),
    ],
)
def test_releases_with_the_fix_are_known(version: tuple[int, int, int], *, expected: bool) -> None:
    assert is_safe_version(version) is expected


def test_an_old_sqlite_is_said_where_it_keeps_something(cli: Cli, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, OLD)

    outcome = cli("doctor")

    assert outcome.out.startswith(f"Note: {kept}: SQLite 3.51.2 can damage a file")
    assert "3.51.3" in outcome.out


def test_no_other_command_says_it(cli: Cli, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, OLD)

    told = [cli("session", "list"), cli("show"), cli("ledger", "verify")]

    assert kept.exists()
    assert [outcome.code for outcome in told] == [0, 0, 0]
    assert "SQLite" not in "".join(outcome.out + outcome.err for outcome in told)


def test_a_new_sqlite_is_nothing_to_speak_of(cli: Cli, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, NEW)

    assert kept.exists()
    assert findings(cli) == []


def test_an_old_sqlite_that_keeps_nothing_is_not_said(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, OLD)

    assert findings(cli) == []


@pytest.mark.parametrize("url", ["memory:", "postgresql://nowhere.invalid/nexus", "sqlite:"])
def test_one_that_keeps_nothing_any_more_is_not_said_either(
    cli: Cli, kept: Path, nexus_home: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Nor is anything connected to in order to look."""
    use(monkeypatch, OLD)
    (nexus_home / "config.json").write_text(json.dumps({"ledger": {"url": url}}))

    assert kept.exists()
    assert findings(cli) == []


def test_the_ledger_of_the_settings_is_the_one_that_is_looked_at(
    cli: Cli, tmp_path: Path, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, OLD)
    path = tmp_path / "other.db"
    with closing(open_sqlite(f"sqlite:///{path}")) as ledger:
        ledger.create("work")
    (nexus_home / "config.json").write_text(json.dumps({"ledger": {"url": f"sqlite:///{path}"}}))

    assert findings(cli) == [("old-sqlite", str(path))]


def test_it_is_a_note_that_stops_nobody(cli: Cli, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, OLD)

    outcome = cli("doctor")

    assert (outcome.code, outcome.out.startswith(f"Note: {kept}: SQLite"), outcome.err) == (0, True, "")
    assert "Warnings      none" in cli("status").out


def test_a_ledger_on_a_network_file_system_is_said(
    cli: Cli, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no log, so that the fault of an old SQLite does not concern it."""
    use(monkeypatch, OLD)
    device = kept.stat().st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"36 35 {os.major(device)}:{os.minor(device)} / /home rw - fuse.sshfs me@host: rw\n")
    monkeypatch.setattr(database, "MOUNT_TABLE", mounts)

    outcome = cli("doctor")

    assert outcome.out.startswith(f"Note: {kept}: the ledger is on a network file system (fuse.sshfs)")
    assert outcome.out.endswith("[ledger-on-network]\n")


def test_looking_changes_nothing(cli: Cli, kept: Path) -> None:
    before = {file: file.read_bytes() for file in kept.parent.iterdir() if file.is_file()}

    cli("doctor")

    assert {file: file.read_bytes() for file in kept.parent.iterdir() if file.is_file()} == before
