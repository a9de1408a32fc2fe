"""A disk that is full, may not be written or fails is an error with path and cause, and not the end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nexus_plugins.ledger.sqlite import open_sqlite
from tests.effort import is_long_run
from tests.ledger.backends import figure
from tests.ledger.conftest import can
from tests.ledger.test_faults import experiment

OWN_MOUNTS = ("unshare", "--map-root-user", "--mount")


@pytest.fixture(scope="session")
def own_mounts() -> tuple[str, ...]:
    """What starts a program that may mount something, which is gone when it ends."""
    with tempfile.TemporaryDirectory() as scratch:
        if not can(*OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", scratch):
            pytest.skip("nothing can be mounted here")
    return OWN_MOUNTS


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory that anybody may enter; pytest's own may be entered by its owner only."""
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)
        directory = Path(scratch) / "home"
        directory.mkdir()
        yield directory


WRITING = ("EIO", "ENOSPC", "EDQUOT", "EFBIG") if is_long_run() else ("EIO", "ENOSPC")
"""What a disk may say to whoever writes."""


def check(result: dict[str, Any], path: Path, *causes: str) -> None:
    """Each error names the file and a cause; nothing that was kept is missing, meanwhile or afterwards."""
    assert result["errors"]
    for error in result["errors"]:
        assert str(path) in error
        assert any(cause in error for cause in causes), error
    assert result["kept"] > 0
    assert (result["missing"], result["missing_afterwards"], result["found"]) == (0, 0, [])


@pytest.mark.acceptance("R6")
def test_a_file_that_may_not_grow_is_an_error_and_not_the_end(home: Path) -> None:
    result = experiment("limited", f"sqlite:///{home / 'ledger.db'}", 20, home, of="disks")

    check(result, home / "ledger.db", "bytes are free")


@pytest.mark.acceptance("R6")
def test_a_full_disk_is_an_error_and_not_the_end(home: Path, own_mounts: tuple[str, ...]) -> None:
    result = experiment("full", f"sqlite:///{home / 'ledger.db'}", 20, home, of="disks", under=own_mounts)

    check(result, home / "ledger.db", "the disk is full, 0 bytes are free", "bytes are free (disk I/O error)")
    assert result["missing_to_others"] == 0
    assert "bytes are free" in result["beside"]
    assert result["left"] == []


@pytest.mark.acceptance("R6")
def test_a_file_system_that_may_only_be_read_is_an_error_and_not_the_end(
    home: Path, own_mounts: tuple[str, ...]
) -> None:
    result = experiment("read_only", f"sqlite:///{home / 'ledger.db'}", 5, home, of="disks", under=own_mounts)

    check(result, home / "ledger.db", "its file system is read only", "Read-only file system")
    assert result["damage"] == []


@pytest.mark.acceptance("R6")
def test_a_directory_that_may_not_be_written_is_an_error_and_not_the_end(home: Path) -> None:
    result = experiment("unwritable", f"sqlite:///{home / 'ledger.db'}", 5, home, of="disks")

    check(result, home / "ledger.db", "its directory may not be written")
    assert result["failed"] == 0


# Which call fails how, and when: the first, then each after so many; no multiple of what one attempt takes.
FAILING = [
    *[("fdatasync", "EIO", f"{first}+11") for first in range(1, 13 if is_long_run() else 5)],
    ("fdatasync", "ENOSPC", "20..30"),
    *[("fsync", "EIO", f"{first}..{first + 1}") for first in (1, 2)],
    *[("pwrite64", error, f"{first}+97") for error in WRITING for first in range(1, 60, 5 if is_long_run() else 14)],
    ("pwrite64", "EDQUOT", "200..230"),
    *[("pread64", "EIO", f"{first}..{first + 2}") for first in range(6, 30, 1 if is_long_run() else 9)],
    *[("ftruncate", "EIO", str(first)) for first in (1, 2)],
    *[("unlink", "EIO", str(first)) for first in (1, 2, 3)],
    *[(call, "EMLINK", "1") for call in ("link", "linkat")],
]


@pytest.mark.acceptance("R6")
@pytest.mark.slow
@pytest.mark.parametrize(("call", "error", "when"), FAILING, ids=map("-".join, FAILING))
def test_a_disk_that_fails_now_and_then_loses_nothing(
    tmp_path: Path, meddler: str, call: str, error: str, when: str
) -> None:
    """Syncing, writing or reading fails, while a file is made and later; what is refused is tried again."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    under = (meddler, "-f", "-o", os.devnull, "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}")

    result = experiment("failing", url, 120, tmp_path, of="disks", under=under)

    figure(f"{call} {error} ({when}): {result['failed']} refused, {result['missing']} lost")
    assert result["kept"] == 120
    assert all(str(tmp_path) in told for told in result["errors"])
    assert result["missing"] == 0
    assert result["more"] <= result["failed"]  # an error may come after it was kept
    with closing(open_sqlite(url)) as ledger:
        assert len(list(ledger.steps())) == result["kept"] + result["more"]
        assert list(ledger.verify()) == []
    left = [file.name for file in tmp_path.iterdir() if file.name != "ledger.db"]
    assert left == [] or call == "unlink"
