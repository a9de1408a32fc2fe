"""Asks a program for a summary: the prompt is what it reads, the summary what it prints.

It is started without a shell and with few variables of the environment, and is ended with all that it started when its
time is up. What it reads and prints goes through files without a name: no pipe can be full, or held open by others.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, TYPE_CHECKING, NamedTuple

from nexus_core.plugin import is_unchanged
from nexus_plugins.providers._errors import CommandError
from nexus_plugins.providers._reading import whole
from nexus_plugins.providers._secrets import read_set
from nexus_plugins.providers._waiting import allowed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.plugin import SummaryRequest
    from nexus_plugins.providers._secrets import Secrets

LARGEST = 4 * 1024 * 1024
"""Bytes that a program may print."""
GLANCE = 0.05
"""Seconds between two looks at how much it has printed."""
LAST_LINES, LAST_BYTES = 3, 4096
"""How much is told of what it says went wrong."""
USUAL = (
    *("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TEMP", "TMP", "TMPDIR", "TZ", "USER"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
    *("APPDATA", "COMSPEC", "LOCALAPPDATA", "PATHEXT", "SYSTEMROOT", "USERPROFILE"),
)
"""The environment variables by which programs find their own files; none of them holds a key."""
WATCH = 'read -r _ || kill -9 "-$0"'
"""Waits for words that never come; where the pipe breaks instead, ends the process group it is given."""
_TOO_MUCH = f"printed more than {LARGEST // 1024 // 1024} MiB"


@dataclass(frozen=True, slots=True)
class CommandSummariser:
    """A program that summarises.

    Attributes:
        command: The program and its arguments.
        directory: Where it is started; None for an empty directory, in which it finds nothing of the project.
        variables: Environment variables that it is given besides the usual ones.
        approved: What the user approved, for a program of a project; its code is compared with it before every start.
    """

    command: tuple[str, ...]
    directory: Path | None = None
    variables: tuple[str, ...] = ()
    approved: str = ""

    def __call__(self, request: SummaryRequest) -> str:
        """The summary.

        Raises:
            CommandError: There is none.
        """
        if self.approved and not is_unchanged(self.approved):
            hint = "`nexus trust diff` shows how, `nexus trust allow` decides"
            raise CommandError("the command has changed since you allowed it", hint=hint)
        secrets = read_set(self.variables)
        with TemporaryDirectory(prefix="nexus-") as empty, _open_files() as files:
            files.read.write(whole(request.prompt).encode())
            files.read.seek(0)
            process = _start(self.command, self.directory or Path(empty), secrets, files)
            with _not_outliving(process):
                code = _wait(process, files, request.timeout)
            if code:
                words = secrets.tell(files.last_words())
                raise CommandError(f"the command {_ended(code)}" + (f": {words}" if words else ""), exit_code=code)
            return secrets.mask(files.text())


class _Files(NamedTuple):
    """What a program reads, prints and complains about."""

    read: IO[bytes]
    printed: IO[bytes]
    complained: IO[bytes]

    def are_too_large(self) -> bool:
        return max(_size(self.printed), _size(self.complained)) > LARGEST

    def text(self) -> str:
        """The summary.

        Raises:
            CommandError: There is none.
        """
        if self.are_too_large():
            raise CommandError(f"the command {_TOO_MUCH}", exit_code=0)
        self.printed.seek(0)
        text = _decoded(self.printed.read())
        if text is None:
            raise CommandError("the command printed something that is not UTF-8 text", exit_code=0)
        if not text:
            raise CommandError("the command printed nothing", exit_code=0)
        return text

    def last_words(self) -> str:
        """The last lines of what it complained about, or else of what it printed."""
        file = self.complained if _size(self.complained) else self.printed
        file.seek(max(0, _size(file) - LAST_BYTES))
        lines = file.read(LAST_BYTES).decode("utf-8", "replace").splitlines()
        return "\n".join([line for line in lines if line.strip()][-LAST_LINES:])


@contextmanager
def _open_files() -> Iterator[_Files]:
    with TemporaryFile() as read, TemporaryFile() as printed, TemporaryFile() as complained:
        yield _Files(read, printed, complained)


def _start(command: tuple[str, ...], directory: Path, secrets: Secrets, files: _Files) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - the user's own words or ones that the user approved, and no shell
            command,
            cwd=directory,
            env=_environment(secrets),
            stdin=files.read,
            stdout=files.printed,
            stderr=files.complained,
            start_new_session=True,
        )
    except FileNotFoundError:
        fault = f"there is no program {command[0]!r}"
    except (OSError, ValueError) as error:
        fault = f"the command could not be started: {getattr(error, 'strerror', None) or error}"
    # Not from inside, where the error would take the environment along.
    raise CommandError(fault, hint="give the full path of a program")


@contextmanager
def _not_outliving(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """At the end of the block, or of this process, the program is ended if it has not ended by itself."""
    end = partial(_end, process)
    atexit.register(end)
    try:
        with _watched(process.pid):
            yield
    finally:
        atexit.unregister(end)
        end()


@contextmanager
def _watched(leader: int) -> Iterator[None]:
    """Somebody sees to it that a program ends also where this process is killed: then the pipe between them breaks."""
    watcher = None
    with suppress(OSError):  # without a shell, nobody does
        watcher = subprocess.Popen(  # noqa: S603 - our own words, and a number
            ("/bin/sh", "-c", WATCH, str(leader)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        yield
    finally:
        if watcher is not None:
            watcher.kill()
            watcher.communicate()


def _environment(secrets: Secrets) -> dict[str, str]:
    usual = {name: os.environ[name] for name in USUAL if name in os.environ}
    # What is found relative to the directory it is started in could be anything.
    entries = [entry for entry in usual.get("PATH", os.defpath).split(os.pathsep) if Path(entry).is_absolute()]
    plain = {"PATH": os.pathsep.join(entries), "TERM": "dumb", "NO_COLOR": "1"}
    return usual | plain | {name: secret.reveal() for name, secret in secrets.values.items()}


def _wait(process: subprocess.Popen[bytes], files: _Files, timeout: float) -> int:
    """What the program ends with."""
    seconds = allowed(timeout)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=min(GLANCE, seconds))
        if files.are_too_large():
            raise CommandError(f"the command {_TOO_MUCH}")
    raise CommandError(f"the command took longer than {timeout:g} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program that has not ended, and all that it started."""
    if process.poll() is not None:
        return
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _ended(code: int) -> str:
    return f"ended with {code}" if code > 0 else f"was ended by signal {-code}"


def _decoded(printed: bytes) -> str | None:
    """The text of what was printed; None where it is none."""
    try:
        return printed.decode().strip()
    except UnicodeDecodeError:  # it would take along what was printed, so nothing is raised from here
        return None


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size
