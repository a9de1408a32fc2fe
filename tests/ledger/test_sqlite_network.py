"""On a file system of another machine there is no log, and that is said."""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from nexus_core.errors import LedgerUnreachableError
from nexus_plugins.ledger.sqlite import SqliteLedger, database, open_sqlite
from nexus_plugins.ledger.sqlite.database import find_network_kind
from tests.effort import rounds
from tests.ledger.backends import tell, texts
from tests.ledger.test_faults import experiment

LINE = "36 35 {device} / {point} rw,noatime shared:1 - {kind} server:/export rw,vers=4.2\n"
ROOT_LINE = LINE.format(device="8:1", point="/", kind="ext4")


def opened(path: Path) -> SqliteLedger:
    return open_sqlite(f"sqlite:///{path}")


def device_of(directory: Path) -> str:
    number = directory.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"


class Mounts:
    """What the system says is mounted, from a file of our own."""

    def __init__(self, file: Path, directory: Path) -> None:
        self._file = file
        self._directory = directory

    def say(self, kind: str) -> None:
        """That the directory is of a kind."""
        line = LINE.format(device=device_of(self._directory), point="/elsewhere", kind=kind)
        self._file.write_text(ROOT_LINE + line)

    def say_lines(self, *lines: str) -> None:
        self._file.write_text("".join(lines))


@pytest.fixture
def mounts(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mounts:
    file = tmp_path_factory.mktemp("proc") / "mountinfo"
    monkeypatch.setattr(database, "MOUNT_TABLE", file)
    return Mounts(file, tmp_path)


@pytest.fixture
def far_away(mounts: Mounts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Experiments take place on another machine's disk."""
    mounts.say("nfs4")
    monkeypatch.setenv("EXPERIMENT_MOUNTS", str(database.MOUNT_TABLE))


def journal_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        ((mode,),) = connection.execute("pragma journal_mode").fetchall()
        return str(mode)


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "lustre", "fuse.sshfs", "virtiofs"]
)
def test_a_file_system_of_another_machine_is_known_by_its_kind(path: Path, mounts: Mounts, kind: str) -> None:
    mounts.say(kind)

    assert find_network_kind(path) == kind


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuseblk", "fuse.gocryptfs"])
def test_one_of_this_machine_is_none(path: Path, mounts: Mounts, kind: str) -> None:
    mounts.say(kind)

    assert find_network_kind(path) == ""


def test_a_device_that_is_not_listed_is_known_by_the_place(tmp_path: Path, path: Path, mounts: Mounts) -> None:
    above, there = str(tmp_path.parent).replace(" ", r"\040"), str(tmp_path).replace(" ", r"\040")
    mounts.say_lines(
        LINE.format(device="0:98", point=there, kind="nfs4"),
        LINE.format(device="0:97", point=above, kind="ext4"),
        LINE.format(device="0:96", point=f"{there}/ledger", kind="ext4"),  # begins alike, and is another
        ROOT_LINE,
    )

    assert find_network_kind(path) == "nfs4"


def test_a_name_with_blanks_is_found(tmp_path: Path, mounts: Mounts) -> None:
    (tmp_path / "a b").mkdir()
    mounts.say_lines(ROOT_LINE, LINE.format(device="0:98", point=rf"{tmp_path}/a\040b", kind="cifs"))

    assert find_network_kind(tmp_path / "a b" / "new" / "ledger.db") == "cifs"


def test_it_is_the_file_that_counts_and_not_a_link_to_it(tmp_path: Path, mounts: Mounts) -> None:
    (tmp_path / "share").mkdir()
    (tmp_path / "ledger.db").symlink_to(tmp_path / "share" / "ledger.db")
    mounts.say_lines(ROOT_LINE, LINE.format(device="0:98", point=f"{tmp_path}/share", kind="nfs4"))

    assert find_network_kind(tmp_path / "ledger.db") == "nfs4"


@pytest.mark.parametrize("text", ["", "\n", "nonsense\n", "1 2 3\n - nfs4\n"])
def test_a_list_that_says_nothing_says_nothing(path: Path, mounts: Mounts, text: str) -> None:
    mounts.say_lines(text)

    assert find_network_kind(path) == ""


def test_where_nobody_tells_every_file_is_one_of_this_machine(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "MOUNT_TABLE", path)  # which is not there

    assert find_network_kind(path) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody tells what is mounted")
def test_what_linux_itself_says_is_understood(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_NETWORK_KINDS", {"proc"})

    assert (find_network_kind(Path("/proc/ledger.db")), find_network_kind(path)) == ("proc", "")


# ---- kept there -------------------------------------------------------------------------------------------


def test_a_new_ledger_there_has_no_log_and_that_is_said_once(
    path: Path, mounts: Mounts, caplog: pytest.LogCaptureFixture
) -> None:
    mounts.say("nfs4")

    with caplog.at_level(logging.WARNING), closing(opened(path)) as ledger:
        ledger.create("work")
        tell(ledger, "work", "hello")
        files = {file.name for file in path.parent.iterdir()}
    with closing(opened(path)) as ledger:
        tell(ledger, "work", "again")

    assert files == {"ledger.db"}
    assert journal_of(path) == "delete"
    (said,) = caplog.messages
    assert said.startswith(f"{path}: the ledger is on a network file system (nfs4)")


def test_a_ledger_that_comes_there_gives_up_its_log(
    path: Path, mounts: Mounts, caplog: pytest.LogCaptureFixture
) -> None:
    mounts.say("ext4")
    with closing(opened(path)) as ledger:
        ledger.create("work")
        tell(ledger, "work", "hello")
    assert journal_of(path) == "wal"
    mounts.say("cifs")

    with caplog.at_level(logging.WARNING), closing(opened(path)) as ledger:
        tell(ledger, "work", "again")
        assert texts(ledger.thread(str(ledger.session("work").tip))) == ["hello", "again"]  # type: ignore[union-attr]
        assert list(ledger.verify()) == []

    assert journal_of(path) == "delete"
    assert len(caplog.messages) == 1


def test_one_that_another_program_has_open_with_a_log_is_refused(
    path: Path, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts.say("ext4")
    with closing(opened(path)) as early:
        early.create("work")
        mounts.say("nfs4")
        monkeypatch.setattr("nexus_plugins.ledger.sqlite.database.LOCK_TIMEOUT_SECONDS", 0.1)

        with (
            closing(opened(path)) as ledger,
            pytest.raises(LedgerUnreachableError, match="another program keeps it locked"),
        ):
            ledger.create("more")

        tell(early, "work", "hello")
    with closing(opened(path)) as ledger:
        assert list(ledger.verify()) == []


@pytest.mark.acceptance("R3")
@pytest.mark.parametrize("sessions", ["one_session", "own_sessions"])
@pytest.mark.parametrize("appends", [1, pytest.param(rounds(50), marks=pytest.mark.slow)])
@pytest.mark.usefixtures("far_away")
def test_eight_processes_write_there_without_loss(tmp_path: Path, path: Path, sessions: str, appends: int) -> None:
    result = experiment(sessions, f"sqlite:///{path}", appends, tmp_path)

    assert journal_of(path) == "delete"
    assert (result["failed"], result["lost"], result["twice"], result["forks"]) == (0, 0, 0, 0)
    assert result["found"] == []
