"""What a command has at hand."""

from __future__ import annotations

import sys
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

from nexus_core.errors import ConfigError
from nexus_core.files.places import existing_directory
from nexus_core.nexus import Nexus
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from nexus_core.text.console import Console
    from nexus_core.values.events import HookCall, Problem
    from nexus_core.values.finding import Finding
    from nexus_core.values.loaded import Loaded


class CommandShell:
    """The console, the directory, and a Nexus on demand; commands find it in `ctx.obj`.

    Attributes:
        console: Where to print.
        debug: Whether errors show their traceback.
        trace_hooks: Whether every answer to a hook is printed.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._directory = "."
        self._cwd: Path | None = None
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
        self._directory, self._cwd = directory, None

    @contextmanager
    def nexus(self, *, strict: bool | None = None) -> Iterator[Nexus]:
        """Open a Nexus for `cwd`; problems with plugins are printed, and it is closed at the end."""
        trace = self._trace if self.trace_hooks else None
        # A plugin that prints must not spoil the data on standard output; the console keeps the real one.
        with (
            redirect_stdout(sys.stderr),
            Nexus(self.cwd, strict=strict, report=self._report, trace=trace) as nexus,
        ):
            yield nexus

    def _report(self, problem: Problem) -> None:
        if str(problem) in self._reported:  # a command may open more than one Nexus
            return
        self._reported.add(str(problem))
        self.console.warning(visible_line(str(problem)))
        if self.debug and problem.cause is not None:
            self.print_traceback(problem.cause)

    def _trace(self, call: HookCall) -> None:
        answers = "failed" if call.failed else f"{call.answers} answer{'' if call.answers == 1 else 's'}"
        line = f"{call.hook:<24} {call.plugin:<20} {call.seconds * 1000:8.2f} ms  {answers}"
        self.console.message(visible_line(line), style="dim")

    def warn_about(self, findings: Iterable[Finding]) -> None:
        """Print what a person should know about what was loaded."""
        for finding in findings:
            self.console.warning(visible_line(str(finding)))

    def require_trusted(self, loaded: Loaded) -> None:
        """Refuse to go on while something of a project waits for the user's decision."""
        waiting = [part for part in loaded.active if part.decision != "allowed"]
        if waiting:
            places = "\n".join(f"  {part.path}:{part.line}: {part.summary}" for part in waiting)
            raise ConfigError(f"not approved:\n{places}", hint="`nexus trust allow` decides about them")

    def print_traceback(self, error: BaseException) -> None:
        """Print where an exception came from."""
        import traceback  # noqa: PLC0415 - only with --debug

        self.console.message("".join(traceback.format_exception(error)))
