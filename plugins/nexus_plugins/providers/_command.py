"""A summarizer that runs a program: it reads the prompt and prints the summary.

The program starts without a shell and with few environment variables, and is killed at the deadline with every process
that it started. It reads and writes unnamed files: no pipe can be full, or held open by another process.
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

from nexus_core import NexusError
from nexus_core.plugin.settings import is_unchanged
from nexus_plugins.providers._endpoint import reserve_time
from nexus_plugins.providers._formats import replace_surrogates
from nexus_plugins.providers._secrets import read_present_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.plugin import SummaryRequest
    from nexus_plugins.providers._secrets import EnvironmentSecrets

MAX_OUTPUT_BYTES = 4 * 1024 * 1024
"""Bytes that a program may print."""
POLL_SECONDS = 0.05
"""Seconds between two checks of the output size."""
MAX_ERROR_LINES, MAX_ERROR_BYTES = 3, 4096
"""Lines and bytes of the program's output in an error."""
PASSED_VARIABLES = (
    *("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TEMP", "TMP", "TMPDIR", "TZ", "USER"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
    *("APPDATA", "COMSPEC", "LOCALAPPDATA", "PATHEXT", "SYSTEMROOT", "USERPROFILE"),
)
"""The environment variables by which programs find their own files; none of them holds a secret."""
WATCHDOG_SCRIPT = 'read -r _ || kill -9 "-$0"'
"""Kills the process group `$0` when its input closes, which happens when this process is killed."""
_TOO_MUCH_OUTPUT = f"printed more than {MAX_OUTPUT_BYTES // 1024 // 1024} MiB"


class CommandError(NexusError):
    """Raised when the summarizer command gives no summary.

    Args:
        what: What happened.
        hint: What to do about it.
        exit_code: Exit code of the program; None if it did not start or was killed.
    """

    def __init__(self, what: str, *, hint: str | None = None, exit_code: int | None = None) -> None:
        super().__init__(what, where="compaction.command", hint=hint)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class CommandSummarizer:
    """A program that reads the prompt and prints the summary.

    Attributes:
        command: The program and its arguments.
        directory: Its working directory; None for an empty one, without access to the project's files by name.
        variables: Environment variables that it gets besides `PASSED_VARIABLES`.
        approved: For a project's program, the approved content; its code is compared with it before every start.
    """

    command: tuple[str, ...]
    directory: Path | None = None
    variables: tuple[str, ...] = ()
    approved: str = ""

    def __call__(self, request: SummaryRequest) -> str:
        """Return the summary.

        Raises:
            CommandError: The program has changed, failed, timed out or printed no text.
        """
        if self.approved and not is_unchanged(self.approved):
            hint = "`nexus trust diff` shows how, `nexus trust allow` decides"
            raise CommandError("the command has changed since you allowed it", hint=hint)
        secrets = read_present_secrets(self.variables)
        with TemporaryDirectory(prefix="nexus-") as empty, _open_files() as files:
            files.stdin.write(replace_surrogates(request.prompt).encode())
            files.stdin.seek(0)
            process = _start_command(self.command, self.directory or Path(empty), secrets, files)
            with _kill_on_exit(process):
                code = _wait_for_exit(process, files, request.timeout)
            if code:
                output = secrets.to_safe_line(files.read_last_lines())
                raise CommandError(
                    f"the command {_describe_exit(code)}" + (f": {output}" if output else ""), exit_code=code
                )
            return secrets.mask(files.read_summary())


class _CommandFiles(NamedTuple):
    """The files behind a program's standard streams."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]

    def are_too_large(self) -> bool:
        return max(_get_size(self.stdout), _get_size(self.stderr)) > MAX_OUTPUT_BYTES

    def read_summary(self) -> str:
        """Return the text that the program printed.

        Raises:
            CommandError: It is empty, too long or not UTF-8.
        """
        if self.are_too_large():
            raise CommandError(f"the command {_TOO_MUCH_OUTPUT}", exit_code=0)
        self.stdout.seek(0)
        text = _decode_output(self.stdout.read())
        if text is None:
            raise CommandError("the command printed something that is not UTF-8 text", exit_code=0)
        if not text:
            raise CommandError("the command printed nothing", exit_code=0)
        return text

    def read_last_lines(self) -> str:
        """Return the last lines of standard error, or of standard output if that is empty."""
        file = self.stderr if _get_size(self.stderr) else self.stdout
        file.seek(max(0, _get_size(file) - MAX_ERROR_BYTES))
        lines = file.read(MAX_ERROR_BYTES).decode("utf-8", "replace").splitlines()
        return "\n".join([line for line in lines if line.strip()][-MAX_ERROR_LINES:])


@contextmanager
def _open_files() -> Iterator[_CommandFiles]:
    with TemporaryFile() as stdin, TemporaryFile() as stdout, TemporaryFile() as stderr:
        yield _CommandFiles(stdin, stdout, stderr)


def _start_command(
    command: tuple[str, ...], directory: Path, secrets: EnvironmentSecrets, files: _CommandFiles
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - a command that the user wrote or approved, without a shell
            command,
            cwd=directory,
            env=_build_environment(secrets),
            stdin=files.stdin,
            stdout=files.stdout,
            stderr=files.stderr,
            start_new_session=True,
        )
    except FileNotFoundError:
        what = f"there is no program {command[0]!r}"
    except (OSError, ValueError) as error:
        what = f"the command could not be started: {getattr(error, 'strerror', None) or error}"
    # Raised outside the handler, so that the traceback does not carry the environment with its secrets.
    raise CommandError(what, hint="give the full path of a program")


@contextmanager
def _kill_on_exit(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill a program that still runs at the end of the block or of this process."""
    kill = partial(_kill_command, process)
    atexit.register(kill)
    try:
        with _watch_process(process.pid):
            yield
    finally:
        atexit.unregister(kill)
        kill()


@contextmanager
def _watch_process(leader: int) -> Iterator[None]:
    """Run a watchdog that kills a program if this process is killed, which closes the pipe between them."""
    watcher = None
    with suppress(OSError):  # without a shell there is no watchdog
        watcher = subprocess.Popen(  # noqa: S603 - a constant script and a number
            ("/bin/sh", "-c", WATCHDOG_SCRIPT, str(leader)),
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


def _build_environment(secrets: EnvironmentSecrets) -> dict[str, str]:
    passed = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    # Relative entries would find programs in the working directory, which may be a project's.
    entries = [entry for entry in passed.get("PATH", os.defpath).split(os.pathsep) if Path(entry).is_absolute()]
    fixed = {"PATH": os.pathsep.join(entries), "TERM": "dumb", "NO_COLOR": "1"}
    return passed | fixed | {name: secret.reveal() for name, secret in secrets.values.items()}


def _wait_for_exit(process: subprocess.Popen[bytes], files: _CommandFiles, timeout: float) -> int:
    """Wait for a program and return its exit code. Raises CommandError on timeout or too much output."""
    seconds = reserve_time(timeout)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=min(POLL_SECONDS, seconds))
        if files.are_too_large():
            raise CommandError(f"the command {_TOO_MUCH_OUTPUT}")
    raise CommandError(f"the command took longer than {timeout:g} s")


def _kill_command(process: subprocess.Popen[bytes]) -> None:
    """Kill a program that still runs, with its process group."""
    if process.poll() is not None:
        return
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _describe_exit(code: int) -> str:
    return f"ended with {code}" if code > 0 else f"was ended by signal {-code}"


def _decode_output(output: bytes) -> str | None:
    """Return the output as text, or None if it is not UTF-8."""
    try:
        return output.decode().strip()
    except UnicodeDecodeError:  # not raised, because the exception holds the output
        return None


def _get_size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size
