"""What a command has at hand."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING

from nexus_core.errors import ConfigError, UsageError
from nexus_core.files.places import existing_directory
from nexus_core.nexus import Nexus
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TextIO

    from nexus_core.dialects.finding import Dialects
    from nexus_core.host.host import Host
    from nexus_core.text.console import Console
    from nexus_core.values.events import HookCall, Problem
    from nexus_core.values.ledger import Ledger
    from nexus_core.values.loaded import Loaded

_OUT, _ERR = 1, 2  # descriptors, as every program knows them


class CommandShell:
    """The console, the directory, and a Nexus on demand; commands find it in `ctx.obj`.

    Attributes:
        console: Where to print.
        is_directory_named: Whether the command line says which directory it is about (`-C`).
        home: The user's own directory, if it was named on the command line.
        debug: Whether errors show their traceback.
        trace_hooks: Whether every answer to a hook is printed.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._directory = "."
        self._cwd: Path | None = None
        self.is_directory_named = False
        self.home: str | None = None
        self.debug = False
        self.trace_hooks = False
        self._reported: set[str] = set()

    @property
    def cwd(self) -> Path:
        """The directory the command is about, absolute."""
        if self._cwd is None:  # once, because a plugin may change the directory of the process
            self._cwd = existing_directory(self._directory)
        return self._cwd

    def change_directory(self, directory: str) -> None:
        """Make the command about another directory."""
        self._directory, self._cwd, self.is_directory_named = directory, None, True

    @contextmanager
    def nexus(
        self,
        *,
        strict: bool | None = None,
        warn: bool = True,
        layers: bool = True,
        installed: bool = True,
        ledger: str | Ledger | None = None,
        cwd: Path | None = None,
    ) -> Iterator[Nexus]:
        """Open a Nexus; problems with plugins are printed, and it is closed at the end.

        Args:
            strict: As for `Nexus`.
            warn: Off where the command itself says what went wrong with plugins.
            layers: As for `Nexus`.
            installed: As for `Nexus`.
            ledger: As for `Nexus`.
            cwd: Another directory than the one the command is about.
        """
        with (
            plugins_at_work(),
            Nexus(
                cwd or self.cwd,
                home=self.home,
                strict=strict,
                layers=layers,
                installed=installed,
                ledger=ledger,
                report=self._report if warn else self._print_cause,
                trace=self._trace if self.trace_hooks else None,
            ) as nexus,
        ):
            yield nexus

    def dialects(self) -> Dialects:
        """The shapes of APIs; plugins are looked for when none that is built in will do."""
        from nexus_core.dialects.finding import dialects_of  # noqa: PLC0415 - most commands name none

        return dialects_of(self._host)

    def _host(self) -> Host:
        with self.nexus() as nexus:
            return nexus.host

    def _report(self, problem: Problem) -> None:
        if str(problem) in self._reported:  # a command may open more than one Nexus
            return
        self._reported.add(str(problem))
        self.console.warning(visible_line(str(problem)))
        self._print_cause(problem)

    def _print_cause(self, problem: Problem) -> None:
        if self.debug and problem.cause is not None:
            self.print_traceback(problem.cause)

    def _trace(self, call: HookCall) -> None:
        answered = "told" if call.answers is None else counted(call.answers, "answer")
        outcome = "failed" if call.failed else answered
        line = f"{call.hook:<24} {call.plugin:<20} {call.seconds * 1000:8.2f} ms  {outcome}"
        self.console.message(visible_line(line), style="dim")

    def review(self, loaded: Loaded, *, require_trusted: bool, warn: bool = True) -> None:
        """Print what a person should know about what was loaded.

        Args:
            loaded: What was loaded.
            require_trusted: Whether to refuse to go on while something of a project waits for a decision.
            warn: Off where the command itself says what was found.
        """
        for finding in loaded.findings if warn else ():
            if finding.code != "unapproved":  # what waits is in the prompt, and in `status` and `doctor`
                self.console.warning(visible_line(str(finding)))
        # What was denied is decided: it stays off, and nobody has to be asked.
        if not require_trusted or not loaded.active:
            return
        from nexus_core.trust.mentioning import is_waiting, mention  # noqa: PLC0415 - most projects start nothing

        waiting = [part for part in loaded.active if is_waiting(part)]
        if waiting:
            places = "\n".join(visible_line(f"  {part.path}:{part.line}: {mention(part)}") for part in waiting)
            raise ConfigError(f"not approved:\n{places}", hint="`nexus trust allow` decides about them")

    @property
    def can_ask(self) -> bool:
        """Whether somebody is there to answer a question."""
        # It is printed on standard error; who cannot see it cannot answer it. A closed input is None.
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()

    def agrees(self, question: str) -> bool:
        """Ask the person at the terminal; anything but yes is no."""
        self.console.message(f"  {question} [y/N]")
        return sys.stdin.readline().strip().lower() in {"y", "yes"}

    def print_traceback(self, error: BaseException) -> None:
        """Print where an exception came from."""
        import traceback  # noqa: PLC0415 - only with --debug

        self.console.message("".join(traceback.format_exception(error)))


def project_directory(nexus: Nexus) -> Path:
    """The `.nexus3` directory of the project.

    Raises:
        UsageError: The user's own directory is at that place, or the command is about that directory itself.
    """
    if is_users_own(nexus):
        hint = "pass --global to change them: nexus init --global, nexus config set --global"
        raise UsageError("your own settings are kept here, so this is not a project", hint=hint)
    return nexus.cwd / ".nexus3"


def is_users_own(nexus: Nexus) -> bool:
    """Whether the user's own directory is where that of a project would be, or is itself the working directory."""
    return os.path.realpath(nexus.home) in {os.path.realpath(nexus.cwd / ".nexus3"), str(nexus.cwd)}


@contextmanager
def own_output() -> Iterator[None]:
    """Put `sys.stdout` on a descriptor of its own, out of reach for whoever writes straight to descriptor 1."""
    real = sys.stdout
    if not isinstance(real, TextIOWrapper) or not _is_on(_OUT, real):  # somebody catches what is printed
        yield
        return
    with open(os.dup(_OUT), "w", encoding=real.encoding, errors=real.errors) as own:  # noqa: PTH123 - not a file
        own.reconfigure(line_buffering=real.line_buffering, write_through=real.write_through)
        sys.stdout = own
        try:
            yield
        finally:
            sys.stdout = real


@contextmanager
def plugins_at_work() -> Iterator[None]:
    """Keep what plugins print out of the data: it goes to standard error, also what a child of theirs prints."""
    is_shared = _is_on(_OUT, sys.stdout)  # then the data goes where a child of theirs prints, and both must stay
    with redirect_stdout(sys.stderr), nullcontext() if is_shared else _out_to_err():
        yield


@contextmanager
def _out_to_err() -> Iterator[None]:
    _flush_descriptor()
    kept = os.dup(_OUT)
    try:
        os.dup2(_ERR, _OUT)
        yield
    finally:
        _flush_descriptor()
        os.dup2(kept, _OUT)
        os.close(kept)


def _flush_descriptor() -> None:
    # Whoever knows `sys.__stdout__` writes to descriptor 1 as well, but not at once.
    with suppress(OSError, ValueError):  # broken or closed: nothing of it will be seen anyway
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()


def _is_on(descriptor: int, stream: TextIO) -> bool:
    try:
        return stream.fileno() == descriptor
    except (OSError, ValueError):  # it is none of the system's
        return False
