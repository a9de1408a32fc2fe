"""Conversion of arguments to an exit code, and of errors to messages."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import redirect_stderr, suppress
from typing import TYPE_CHECKING

import typer

from nexus_core.cli.context import (
    EXIT_CONFIGURATION,
    EXIT_FINDINGS,
    EXIT_INTERNAL_ERROR,
    EXIT_INTERRUPTED,
    EXIT_OK,
    CliContext,
    get_exit_code,
    isolate_stdout,
)
from nexus_core.cli.root import build_root_command
from nexus_core.errors import (
    BudgetError,
    ConfigError,
    FileError,
    NexusError,
)
from nexus_core.host.calls import describe_exception
from nexus_core.text.console import Console, OutputClosedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typer._click import Command as ClickCommand  # private, but the only name of what Typer returns

_PROGRAM_NAME = "nexus"
_COMPLETION_VARIABLE = "_NEXUS_COMPLETE"


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code. Errors are printed."""
    with isolate_stdout():
        try:
            code = _invoke_command(arguments, CliContext(Console()))
        except SystemExit:
            _flush_output(EXIT_OK)
            raise
        return _flush_output(code)


def _invoke_command(arguments: Sequence[str], cli: CliContext) -> int:
    command = build_root_command()
    try:
        if os.environ.get(_COMPLETION_VARIABLE):
            return _print_completions(command, arguments, cli)
        with command.make_context(_PROGRAM_NAME, list(arguments), obj=cli) as ctx:
            command.invoke(ctx)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - a traceback helps us, not the person at the terminal
        return report_error(cli, error)
    finally:
        gc.freeze()  # the process ends; looking for garbage once more would take longer than the command
    return EXIT_OK


def _print_completions(command: ClickCommand, arguments: Sequence[str], cli: CliContext) -> int:
    # Errors would be printed into the command line that is being typed.
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):  # noqa: PTH123 - not a file
        cli.console = Console(err=nowhere)
        try:
            command.main(args=list(arguments), prog_name=_PROGRAM_NAME, complete_var=_COMPLETION_VARIABLE, obj=cli)
        except Exception:  # noqa: BLE001 - as above
            return EXIT_FINDINGS
    return EXIT_OK


def _flush_output(code: int) -> int:
    """Flush the output and return the exit code. Otherwise Python reports a closed pipe at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if not isinstance(error, BrokenPipeError):
                code = code or EXIT_CONFIGURATION
                if stream is sys.stdout:
                    sys.stderr.write(f"Error: cannot print: {error.strerror}\n")
    return code


def report_error(cli: CliContext, error: BaseException) -> int:
    """Print an error as a message, and return the exit code for it."""
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, OutputClosedError):  # `nexus show | head -1`: the reader has what it wanted
        return EXIT_OK
    if isinstance(error, NexusError) and (hint := error.command or error.hint):
        error.hint = cli.complete_commands(hint)
    message, code = _describe_error(error)
    with suppress(OutputClosedError, FileError):  # standard error may be closed too
        if isinstance(error, typer.TyperException) and error.message.startswith("Usage:"):
            cli.console.message(error.message)  # a group without a command: Typer raises its help page
            return code
        if cli.debug:
            cli.print_traceback(error)
        if isinstance(error, ConfigError) and error.report:
            cli.console.message(error.report, style="red")  # it says itself what kind of error it is
        else:
            cli.console.error(message)
    return code


def _describe_error(error: BaseException) -> tuple[str, int]:
    if isinstance(error, BudgetError):
        return _format_budget_error(error), EXIT_FINDINGS
    if isinstance(error, NexusError):
        return str(error), get_exit_code(error)
    if isinstance(error, typer.TyperException):
        ctx = getattr(error, "ctx", None)
        hint = f"\n  '{ctx.command_path} --help' explains it" if ctx else ""
        return error.format_message() + hint, error.exit_code
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return "interrupted", EXIT_INTERRUPTED
    what = describe_exception(error).removeprefix("raised ")
    return f"unexpected {what}\n  this is a defect of Nexus or of a plugin; --debug shows where", EXIT_INTERNAL_ERROR


def _format_budget_error(error: BudgetError) -> str:
    """Return a message with the parts that do not fit, the largest first, one per line."""
    width = max(map(len, error.parts), default=0)
    sizes = [f"{tokens:,}" for tokens in error.parts.values()]
    figures = max(map(len, sizes), default=0)
    rows = [f"  {name:<{width}}  {size:>{figures}}" for name, size in zip(error.parts, sizes, strict=True)]
    largest = [f"  largest: {', '.join(f'{name} {size:,}' for name, size in error.pieces)}"] if error.pieces else []
    return "\n".join([error.what, *rows, *largest, f"  {error.hint}"])
