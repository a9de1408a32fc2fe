"""CliContext, the object that commands find in `ctx.obj`, and the exit codes."""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from io import TextIOWrapper
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from nexus_core.errors import (
    ConfigError,
    FileError,
    MissingExtraError,
    NexusError,
    ProviderError,
    SummaryError,
    UsageError,
)
from nexus_core.files.places import resolve_directory
from nexus_core.nexus import Nexus
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import TextIO

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.host.manager import Host
    from nexus_core.layers.agent_view import AgentView
    from nexus_core.text.console import Console
    from nexus_core.transcripts.base import TranscriptFormat
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.ledger import Ledger
    from nexus_core.types.plugins import Finding, HookCall, Problem
    from nexus_core.types.transcripts import TranscriptReader

EXIT_OK = 0
EXIT_FINDINGS = 1
"""A check found something, or something does not fit."""
EXIT_USAGE = 2
"""An argument is invalid, or names something that does not exist."""
EXIT_CONFIGURATION = 3
"""A file, setting, plugin or session must be fixed first."""
EXIT_MISSING_EXTRA = 4
EXIT_PROVIDER = 5
"""A model gave no reply, or every summarizer failed."""
EXIT_INTERNAL_ERROR = 70
"""A bug of Nexus or of a plugin; EX_SOFTWARE of sysexits.h."""
EXIT_INTERRUPTED = 130
UNREADABLE_FILE = "unreadable-file"
"""Code of the finding about a text that cannot be read."""


def get_exit_code(error: NexusError) -> int:
    """Return the exit code for an error other than a BudgetError."""
    if isinstance(error, MissingExtraError):
        return EXIT_MISSING_EXTRA
    if isinstance(error, SummaryError | ProviderError):
        return EXIT_PROVIDER
    return EXIT_USAGE if isinstance(error, UsageError) else EXIT_CONFIGURATION


_LEDGER_COMMAND_PATTERN = r"(?<=`)nexus (?:session|ledger|context --session) [^`]+(?=`)"
"""A command in a hint that reads a ledger."""
_STDOUT, _STDERR = 1, 2  # descriptors, as every program knows them


class CliContext:
    """Console, directory and options of a command, in its `ctx.obj`.

    Attributes:
        console: Where to print.
        is_directory_named: True if `-C` names the directory.
        home: The user's own directory; None unless `--home` names it.
        debug: True to print tracebacks of errors.
        trace_hooks: True to print every hook call.
        no_pager: True to print long output directly.
        ledger: The value of `--ledger`; "" for the user's own ledger.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._directory = "."
        self._cwd: Path | None = None
        self.is_directory_named = False
        self.home: str | None = None
        self.debug = False
        self.trace_hooks = False
        self.no_pager = False
        self.ledger = ""
        self._reported: set[str] = set()

    @property
    def cwd(self) -> Path:
        """The directory the command is about, absolute."""
        if self._cwd is None:  # once, because a plugin may change the directory of the process
            self._cwd = resolve_directory(self._directory)
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
        """Open a Nexus that is closed at the end. Problems with plugins are printed.

        Args:
            strict: As for `Nexus`.
            warn: False if the command reports problems with plugins itself.
            layers: As for `Nexus`.
            installed: As for `Nexus`.
            ledger: As for `Nexus`.
            cwd: Another directory than the one the command is about.
        """
        with (
            redirect_plugin_output(),
            Nexus(
                cwd or self.cwd,
                home=self.home,
                strict=strict,
                layers=layers,
                installed=installed,
                ledger=ledger,
                report=self.report if warn else self._print_cause,
                trace=self._trace if self.trace_hooks else None,
            ) as nexus,
        ):
            yield nexus

    def dialects(self) -> DialectRegistry:
        """Return the dialects. Plugins are loaded only if no built-in dialect matches."""
        from nexus_core.dialects.registry import create_registry

        return create_registry(self._host)

    def transcript_formats(self) -> tuple[TranscriptFormat, ...]:
        """Return the formats of transcripts, with those of plugins."""
        from nexus_core.transcripts.read import load_formats

        return load_formats(self._host())

    def transcript_readers(self) -> tuple[TranscriptReader, ...]:
        """Return the readers of plugins, without importing them."""
        readers = self._host().transcripts()
        return tuple(readers.get(name) for name in readers)

    def _host(self) -> Host:
        with self.nexus() as nexus:
            return nexus.host

    def report(self, problem: Problem) -> None:
        """Print a problem of a plugin, once."""
        if str(problem) in self._reported:  # a command may open more than one Nexus
            return
        self._reported.add(str(problem))
        self.console.warning(visible_line(str(problem)))
        self._print_cause(problem)

    def _print_cause(self, problem: Problem) -> None:
        if self.debug and problem.cause is not None:
            self.print_traceback(problem.cause)

    def _trace(self, call: HookCall) -> None:
        answered = "told" if call.answers is None else format_count(call.answers, "answer")
        outcome = "failed" if call.failed else answered
        line = f"{call.hook:<24} {call.plugin:<20} {call.seconds * 1000:8.2f} ms  {outcome}"
        self.console.message(visible_line(line), style="dim")

    def review(self, loaded: LoadedLayers, *, require_trusted: bool, warn: bool = True) -> None:
        """Print the findings about the loaded layers.

        Args:
            loaded: The loaded layers.
            require_trusted: True to raise while a project's active settings wait for a decision.
            warn: False if the command prints the findings itself.
        """
        for finding in loaded.findings if warn else ():
            if finding.code != "unapproved":  # what waits is in the prompt, and in `status` and `doctor`
                self.console.warning(visible_line(str(finding)))
        # What was denied is decided: it stays off.
        if not require_trusted or not loaded.active:
            return
        from nexus_core.trust.report import is_waiting, summarize_setting

        waiting = [part for part in loaded.active if is_waiting(part)]
        if waiting:
            places = "\n".join(
                visible_line(f"  {part.path}:{part.line}: {summarize_setting(part)}") for part in waiting
            )
            raise ConfigError(f"not approved:\n{places}", hint="`nexus trust allow` decides about them")

    def load_readable(self, nexus: Nexus) -> LoadedLayers:
        """Load the layers of a directory for a command that sends none of their texts.

        A text that cannot be read is a warning, since only the settings matter.
        """
        loaded, findings = load_readable_layers(nexus)
        for finding in findings:
            self.console.warning(visible_line(str(finding)))
        return loaded

    def note_outside_files(self, view: AgentView | None) -> None:
        """Print the files of `--file` that are outside the project, because no rule is for them."""
        for path in view.outside_files if view is not None else ():
            self.console.message(visible_line(f"Outside the project: {path}; no rule of the project is for it"))

    @property
    def can_ask(self) -> bool:
        """True if a question can be asked at a terminal."""
        # The question is printed on standard error, so that must be a terminal too. A closed input is None.
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()

    def agrees(self, question: str) -> bool:
        """Ask at the terminal, and return True if the answer is yes."""
        self.console.message(f"  {question} [y/N]")
        return sys.stdin.readline().strip().lower() in {"y", "yes"}

    def paged(self) -> AbstractContextManager[None]:
        """Show the output in a pager if it is long, unless `--no-pager` is given."""
        return nullcontext() if self.no_pager else self.console.paged()

    def complete_commands(self, text: str) -> str:
        """Return a hint with `--ledger` added to the commands in it, if this command names a ledger."""
        if not self.ledger:
            return text
        from nexus_core.ledger.url import without_secret

        option = f" --ledger {quote(without_secret(self.ledger))}"
        return re.sub(_LEDGER_COMMAND_PATTERN, lambda found: found[0] + option * ("--ledger" not in found[0]), text)

    def print_traceback(self, error: BaseException) -> None:
        """Print where an exception came from."""
        import traceback

        self.console.message("".join(traceback.format_exception(error)))


def load_readable_layers(nexus: Nexus) -> tuple[LoadedLayers, list[Finding]]:
    """Return the loaded layers without texts that cannot be read, and findings about these.

    Raises:
        ConfigError: A settings file is malformed, or sets something that is not allowed.
        FileError: A settings file cannot be read.
    """
    try:
        return nexus.load(), []
    except FileError as error:
        from nexus_core.layers.diagnose import find_invalid_settings
        from nexus_core.layers.load import load_layers

        unreadable: list[FileError] = []
        loaded = load_layers(nexus.host, nexus.request(), unreadable=unreadable)
        if not unreadable or find_invalid_settings(loaded.settings, nexus.host):  # it is about something else
            raise error from None
        return loaded, [build_unreadable_finding(each) for each in unreadable]


def build_unreadable_finding(error: FileError) -> Finding:
    """Return the finding about a text that cannot be read."""
    from nexus_core.types.plugins import Finding

    message = f"{error.what}; {error.hint}" if error.hint else error.what
    rest = "until then, commands that send it stop, and the instructions beside it are not checked"
    return Finding(UNREADABLE_FILE, f"{message}; {rest}", Path(error.where) if error.where else None)


def get_project_directory(nexus: Nexus) -> Path:
    """Return the `.nexus3` directory of the project.

    Raises:
        UsageError: The user's own directory is at that place, or the command is about that directory itself.
    """
    if is_user_directory(nexus):
        hint = "pass --global to change them: nexus init --global, nexus config set --global"
        raise UsageError("your own settings are kept here, so this is not a project", hint=hint)
    return nexus.cwd / ".nexus3"


def is_user_directory(nexus: Nexus) -> bool:
    """True if the user's own directory is the project's `.nexus3` or the working directory."""
    return os.path.realpath(nexus.home) in {os.path.realpath(nexus.cwd / ".nexus3"), str(nexus.cwd)}


@contextmanager
def isolate_stdout() -> Iterator[None]:
    """Put `sys.stdout` on a separate descriptor, out of reach of code that writes to descriptor 1."""
    real = sys.stdout
    if not isinstance(real, TextIOWrapper) or not _has_descriptor(_STDOUT, real):  # the output is captured
        yield
        return
    with open(os.dup(_STDOUT), "w", encoding=real.encoding, errors=real.errors) as own:  # noqa: PTH123 - not a file
        own.reconfigure(line_buffering=real.line_buffering, write_through=real.write_through)
        sys.stdout = own
        try:
            yield
        finally:
            sys.stdout = real


@contextmanager
def redirect_plugin_output() -> Iterator[None]:
    """Redirect output of plugins and their child processes to standard error, away from the data."""
    is_shared = _has_descriptor(
        _STDOUT, sys.stdout
    )  # then the data goes where a child of theirs prints, and both must stay
    with redirect_stdout(sys.stderr), nullcontext() if is_shared else _redirect_stdout():
        yield


@contextmanager
def _redirect_stdout() -> Iterator[None]:
    _flush_stdout()
    kept = os.dup(_STDOUT)
    try:
        os.dup2(_STDERR, _STDOUT)
        yield
    finally:
        _flush_stdout()
        os.dup2(kept, _STDOUT)
        os.close(kept)


def _flush_stdout() -> None:
    # Code that uses `sys.__stdout__` writes to descriptor 1 as well, but buffered.
    with suppress(OSError, ValueError):  # broken or closed: nothing of it will be seen anyway
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()


def _has_descriptor(descriptor: int, stream: TextIO) -> bool:
    try:
        return stream.fileno() == descriptor
    except (OSError, ValueError):  # not a file of the operating system
        return False
