"""From arguments to an exit code: the only place where an error becomes a message."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import typer

from nexus_core.cli.root import root_command
from nexus_core.cli.shell import CommandShell
from nexus_core.errors import MissingExtraError, NexusError, UnknownNameError
from nexus_core.text.console import Console

if TYPE_CHECKING:
    from collections.abc import Sequence

OK = 0
FINDINGS = 1
USAGE = 2
CONFIGURATION = 3
MISSING_EXTRA = 4
INTERRUPTED = 130

_PROGRAM = "nexus"


def run(arguments: Sequence[str]) -> int:
    """Run one command; everything that can go wrong is printed, and becomes the exit code."""
    if "_NEXUS_COMPLETE" in os.environ:
        root_command().main(args=list(arguments), prog_name=_PROGRAM, obj=CommandShell(Console()))
    console = Console()
    try:
        shell = CommandShell(console)
    except FileNotFoundError:
        console.error("the current directory does not exist any more\n  change to one that does")
        return CONFIGURATION
    try:
        _invoke(shell, arguments)
        sys.stdout.flush()
    except typer.Exit as stop:
        return stop.exit_code
    except BrokenPipeError:
        return _reader_left()
    except KeyboardInterrupt:
        console.message("Interrupted.")
        return INTERRUPTED
    except typer.Abort:
        console.message("Aborted.")
        return FINDINGS
    except (typer.TyperException, NexusError) as error:
        return _explain(shell, error)
    except Exception as error:  # noqa: BLE001 - a traceback helps us, not the person at the terminal
        console.error(f"unexpected {type(error).__name__}: {error}\n  this is a defect; --debug shows where it happened")
        if shell.debug:
            shell.print_traceback(error)
        return FINDINGS
    return OK


def _invoke(shell: CommandShell, arguments: Sequence[str]) -> None:
    command = root_command()
    with command.make_context(_PROGRAM, list(arguments), obj=shell) as ctx:
        command.invoke(ctx)


def _explain(shell: CommandShell, error: typer.TyperException | NexusError) -> int:
    if shell.debug:
        shell.print_traceback(error)
    if isinstance(error, NexusError):
        shell.console.error(str(error))
        return _exit_code(error)
    ctx = getattr(error, "ctx", None)
    hint = f"\n  '{ctx.command_path} --help' explains it" if ctx else ""
    shell.console.error(f"{error.format_message()}{hint}")
    return error.exit_code


def _exit_code(error: NexusError) -> int:
    if isinstance(error, MissingExtraError):
        return MISSING_EXTRA
    return USAGE if isinstance(error, UnknownNameError) else CONFIGURATION


def _reader_left() -> int:
    # `nexus show | head -1`: the reader has what it wanted. Python would complain once more while exiting.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK
