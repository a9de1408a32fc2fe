"""The world in which goldens are made: the same paths, clock, ids, machine, time zone and variables everywhere.

A golden holds every byte that Nexus prints, so nothing of the machine may be in it. Directories are below
`/tmp/nexus-net-NNN`, one for each process. Three digits are one token for every tokenizer, so counts do not depend on
the number; goldens have `000` in its place. Nexus is entered by its public doors only: the command, and the names of
`nexus_core`.
"""

from __future__ import annotations

import fcntl
import gc
import io
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from nexus_core.cli import run_process
from nexus_core.testing import write_files

SLOT = "/tmp/nexus-net-{:03}"  # noqa: S108 - the same name on every machine, and locked
SLOTS = range(100, 1000)
RECORDED = range(1, 2)
"""Where the stored ledger was recorded; no test runs there, so that this directory is gone in all of them."""
_ROOT = re.compile(r"nexus-net-\d{3}")
STARTED_MS = 1_770_370_200_000
"""2026-02-06T09:30:00Z: when the ledgers were recorded."""
DAY_MS = 86_400_000
MACHINE = os.uname_result(("Linux", "net-host", "5.15.0-microsoft-standard", "#1", "x86_64"))
"""Nexus calls such a kernel `Linux (WSL2 on Windows)`, whichever distribution it runs on."""
VARIABLES = {
    "LANG": "C.UTF-8",
    "NEXUS_PLUGINS": "none",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "TZ": "<+0330>-3:30",
    "XDG_CACHE_HOME": "/dev/null/none",  # so that no count is `cached`
}
_KEPT = ("PYTEST_", "PYTHON", "COV_", "LD_LIBRARY_PATH")
"""Variables of the test run, which Nexus does not read."""


class Ran(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


class Clock:
    """The time, which stands until it is moved, and the chance in ids, which starts anew with each millisecond."""

    def __init__(self) -> None:
        self.ms = STARTED_MS
        self._drawn = 0

    def move(self, seconds: int = 7) -> None:
        """Let time pass."""
        self.ms += 1000 * seconds
        self._drawn = 0

    def time_ns(self) -> int:
        return self.ms * 1_000_000

    def time(self) -> float:
        return self.ms / 1000

    def urandom(self, size: int) -> bytes:
        """Bytes that sort in the order in which they were drawn; for a multiple of 16, one letter of an id each."""
        if size % 16 or not size:
            return self._next().to_bytes(size, "big")
        return b"".join(self._letters() for _ in range(size // 16))

    def _next(self) -> int:
        self._drawn += 1
        return self._drawn

    def _letters(self) -> bytes:
        number = self._next()
        return bytes(number >> shift & 31 for shift in range(75, -1, -5))


class World:
    """A directory of its own, in which every run of a golden looks the same.

    Attributes:
        root: The directory. `user` in it is the user's home, `bin` the only place of programs.
        clock: The time, and where chance comes from.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = Clock()
        self.home = root / "user/.nexus3"

    @contextmanager
    def entered(self) -> Iterator[World]:
        """Start empty, a day after the ledgers were recorded, and leave no trace in this process."""
        self.clear()
        self.clock.ms = STARTED_MS
        self.clock.move(DAY_MS // 1000)
        variables = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
        variables |= VARIABLES | {"HOME": str(self.root / "user"), "PATH": str(self.root / "bin")}
        directory = Path.cwd()
        with ExitStack() as undo:
            undo.callback(time.tzset)
            undo.callback(os.chdir, directory)
            undo.enter_context(patch.dict(os.environ, variables, clear=True))
            undo.enter_context(patch("time.time_ns", self.clock.time_ns))
            undo.enter_context(patch("time.time", self.clock.time))
            undo.enter_context(patch("os.urandom", self.clock.urandom))
            undo.enter_context(patch("os.uname", lambda: MACHINE))
            time.tzset()
            os.chdir(self.root)
            yield self

    def clear(self) -> None:
        """Remove everything that is there."""
        for path in self.root.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        for folder in ("user/.nexus3", "bin", "work"):
            (self.root / folder).mkdir(parents=True)

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, by their path below the root."""
        write_files(self.root, files)

    def run(self, *arguments: str, stdin: bytes = b"") -> Ran:
        """Run `nexus` in this process, as the console script would."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2))
        threshold, search_path = gc.get_threshold(), list(sys.path)
        with (
            patch("sys.argv", ["nexus", *arguments]),
            patch("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")),
            patch("sys.stdout", out),
            patch("sys.stderr", err),
        ):
            try:
                code = run_process()
            finally:
                gc.set_threshold(*threshold)
                sys.path[:] = search_path
        assert isinstance(code, int)
        return Ran(code, _text(out), _text(err))

    def mask(self, text: str) -> str:
        """The text without the numbers of such directories."""
        return _ROOT.sub("nexus-net-000", text)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8")


@contextmanager
def claimed_root(slots: Sequence[int] = SLOTS) -> Iterator[Path]:
    """A directory that no other process uses; what a killed run left in it is removed."""
    for number in sorted(slots, key=lambda each: (each - os.getpid()) % len(slots)):
        root = Path(SLOT.format(number))
        descriptor = _claim(root)
        if descriptor is not None:
            break
    else:
        raise RuntimeError(f"no free directory like {SLOT.format(slots[0])}")
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)
        os.close(descriptor)


def _claim(root: Path) -> int | None:
    """Lock the directory; None if it is another's. It may have been removed before the lock was had."""
    try:
        root.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if root.stat().st_ino == os.fstat(descriptor).st_ino and os.fstat(descriptor).st_uid == os.getuid():
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None
