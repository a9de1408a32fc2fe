"""From arguments to an exit code: the only place where an error becomes a message."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import redirect_stderr, suppress
from typing import TYPE_CHECKING

import typer

from nexus_core.cli.exits import CONFIGURATION, FINDINGS, INTERRUPTED, MISSING_EXTRA, OK, PROVIDER, USAGE
from nexus_core.cli.root import root_command
from nexus_core.cli.shell import CommandShell, own_output
from nexus_core.errors import (
    BudgetError,
    ConfigError,
    FileError,
    MissingExtraError,
    NexusError,
    SummaryError,
    UsageError,
)
from nexus_core.host.implementation import describe
from nexus_core.text.console import Console, ReaderLeftError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typer._click import Command as ClickCommand  # private, but the only name of what Typer returns

_PROGRAM = "nexus"
_COMPLETION = "_NEXUS_COMPLETE"


def run(arguments: Sequence[str]) -> int:
    """Run one command; everything that can go wrong is printed, and becomes the exit code."""
    with own_output():
        try:
            code = _run(arguments, CommandShell(Console()))
        except SystemExit:
            _printed(OK)
            raise
        return _printed(code)


def _run(arguments: Sequence[str], shell: CommandShell) -> int:
    command = root_command()
    try:
        if os.environ.get(_COMPLETION):
            return _complete(command, arguments, shell)
        with command.make_context(_PROGRAM, list(arguments), obj=shell) as ctx:
            command.invoke(ctx)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - a traceback helps us, not the person at the terminal
        return _explain(shell, error)
    finally:
        gc.freeze()  # the process ends; looking for garbage once more would take longer than the command
    return OK


def _complete(command: ClickCommand, arguments: Sequence[str], shell: CommandShell) -> int:
    # Somebody is typing: whatever is wrong here would be printed into the middle of the line.
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):  # noqa: PTH123 - not a file
        shell.console = Console(err=nowhere)
        try:
            command.main(args=list(arguments), prog_name=_PROGRAM, complete_var=_COMPLETION, obj=shell)
        except Exception:  # noqa: BLE001 - as above
            return FINDINGS
    return OK


def _printed(code: int) -> int:
    """The exit code, once everything is printed or never will be; Python would complain while exiting."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if not isinstance(error, BrokenPipeError):
                code = code or CONFIGURATION
                if stream is sys.stdout:
                    sys.stderr.write(f"Error: cannot print: {error.strerror}\n")
    return code


def _explain(shell: CommandShell, error: BaseException) -> int:
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, ReaderLeftError):  # `nexus show | head -1`: the reader has what it wanted
        return OK
    message, code = _message(error)
    with suppress(ReaderLeftError, FileError):  # there may be nobody to tell
        if isinstance(error, typer.TyperException) and error.message.startswith("Usage:"):
            shell.console.message(error.message)  # a group without a command: Typer raises its help page
            return code
        if shell.debug:
            shell.print_traceback(error)
        if isinstance(error, ConfigError) and error.report:
            shell.console.message(error.report, style="red")  # it says itself what kind of error it is
        else:
            shell.console.error(message)
    return code


def _message(error: BaseException) -> tuple[str, int]:
    if isinstance(error, BudgetError):
        return _table_of(error), FINDINGS
    if isinstance(error, NexusError):
        error.hint = error.command or error.hint
        return str(error), _exit_code(error)
    if isinstance(error, typer.TyperException):
        ctx = getattr(error, "ctx", None)
        hint = f"\n  '{ctx.command_path} --help' explains it" if ctx else ""
        return error.format_message() + hint, error.exit_code
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return "interrupted", INTERRUPTED
    what = describe(error).removeprefix("raised ")
    return f"unexpected {what}\n  this is a defect of Nexus or of a plugin; --debug shows where", FINDINGS


def _table_of(error: BudgetError) -> str:
    """What must be sent and does not fit, the largest first, each in a line of its own."""
    width = max(map(len, error.parts), default=0)
    sizes = [f"{tokens:,}" for tokens in error.parts.values()]
    figures = max(map(len, sizes), default=0)
    rows = [f"  {name:<{width}}  {size:>{figures}}" for name, size in zip(error.parts, sizes, strict=True)]
    largest = [f"  largest: {', '.join(f'{name} {size:,}' for name, size in error.pieces)}"] if error.pieces else []
    return "\n".join([error.what, *rows, *largest, f"  {error.hint}"])


def _exit_code(error: NexusError) -> int:
    if isinstance(error, MissingExtraError):
        return MISSING_EXTRA
    if isinstance(error, SummaryError):
        return PROVIDER
    return USAGE if isinstance(error, UsageError) else CONFIGURATION
