"""From arguments to an exit code: the only place where an error becomes a message."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

import typer

from nexus_core.cli.exits import CONFIGURATION, FINDINGS, INTERRUPTED, MISSING_EXTRA, OK, USAGE
from nexus_core.cli.root import root_command
from nexus_core.cli.shell import CommandShell
from nexus_core.errors import ConfigError, MissingExtraError, NexusError, UsageError
from nexus_core.text.console import Console

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROGRAM = "nexus"
_COMPLETION = "_NEXUS_COMPLETE"


def run(arguments: Sequence[str]) -> int:
    """Run one command; everything that can go wrong is printed, and becomes the exit code."""
    shell = CommandShell(Console())
    command = root_command()
    if _COMPLETION in os.environ:
        command.main(args=list(arguments), prog_name=_PROGRAM, complete_var=_COMPLETION, obj=shell)
    try:
        with command.make_context(_PROGRAM, list(arguments), obj=shell) as ctx:
            gc.freeze()  # what has been imported stays until the end
            gc.enable()
            command.invoke(ctx)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a traceback helps us, not the person at the terminal
        return _explain(shell, error)
    return OK


def _explain(shell: CommandShell, error: BaseException) -> int:
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        return _reader_left()
    if isinstance(error, typer.TyperException) and error.message.startswith("Usage:"):
        shell.console.message(error.message)  # a group without a command: Typer raises its help page
        return error.exit_code
    if shell.debug:
        shell.print_traceback(error)
    message, code = _message(error)
    if isinstance(error, ConfigError) and error.report:
        shell.console.message(error.report, style="red")  # it says itself what kind of error it is
    else:
        shell.console.error(message)
    return code


def _message(error: BaseException) -> tuple[str, int]:
    if isinstance(error, NexusError):
        return str(error), _exit_code(error)
    if isinstance(error, typer.TyperException):
        ctx = getattr(error, "ctx", None)
        hint = f"\n  '{ctx.command_path} --help' explains it" if ctx else ""
        return error.format_message() + hint, error.exit_code
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return "interrupted", INTERRUPTED
    return (
        f"unexpected {type(error).__name__}: {error}\n  this is a defect of Nexus or of a plugin; --debug shows where",
        FINDINGS,
    )


def _exit_code(error: NexusError) -> int:
    if isinstance(error, MissingExtraError):
        return MISSING_EXTRA
    return USAGE if isinstance(error, UsageError) else CONFIGURATION


def _reader_left() -> int:
    # `nexus show | head -1`: the reader has what it wanted. Python would complain once more while exiting.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK
