"""`nexus check`."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.given_file import STANDARD_INPUT
from nexus_core.cli.message_file import read_messages_in
from nexus_core.cli.options import DryRun, Json, dialect_names
from nexus_core.cli.shell import plugins_at_work
from nexus_core.dialects.tools.validity import INVALID_TOOL
from nexus_core.errors import MessageError, UsageError
from nexus_core.files.writing import write_text_atomically
from nexus_core.history.findings import UNREPAIRED
from nexus_core.history.repair import check_tool_definitions, repair_in, rules_of, source_of
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nexus_core.cli.message_file import MessageFile
    from nexus_core.cli.shell import CommandShell
    from nexus_core.dialects.finding import Dialects
    from nexus_core.history.repair import Repaired
    from nexus_core.values.finding import Finding

app = typer.Typer()

_UNREPAIRED = UNREPAIRED | {INVALID_TOOL}
"""Codes of findings that --fix leaves."""

File = Annotated[str, typer.Argument(metavar="FILE", help="A file of messages; - is standard input.")]
Api = Annotated[
    str,
    typer.Option(
        "--api",
        metavar="API",
        help="Whose rules: openai, responses, anthropic, gemini, neutral or a plugin's; the list's own by default.",
        autocompletion=dialect_names,
    ),
]
Fix = Annotated[bool, typer.Option("--fix", help="Print the repaired messages, in the form of the file.")]
InPlace = Annotated[bool, typer.Option("--in-place", help="Write the repaired messages into the file.")]

EXAMPLES = """
\b
Examples:
  nexus check request.json --api anthropic
  nexus check history.jsonl --api gemini --fix > fixed.jsonl
"""


@app.command(epilog=EXAMPLES)
def check(
    ctx: typer.Context,
    file: File,
    *,
    api: Api = "",
    fix: Fix = False,
    in_place: InPlace = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Say what an API would refuse in a list of messages; exits with 1 if there is anything.

    FILE is a JSON list, the body of a request, or has one message on each line. With --fix or --in-place the messages
    are repaired, and the exit code is 0 unless something is left: no message at all, or a tool that is refused.
    """
    shell: CommandShell = ctx.obj
    dialects = shell.dialects()
    _require_sense(file, api, dialects, in_place=in_place, dry_run=dry_run)
    with plugins_at_work():
        found = read_messages_in(shell.cwd, file, dialects)
        repaired = _repaired(file, found, api, dialects)
    if in_place:
        _write(shell, file, found, repaired, dry_run=dry_run)
    if json:
        _print_json(shell, file, found, repaired, fix=fix)
    else:
        _print(shell, file, found, repaired, fix=fix)
    is_repaired = fix or (in_place and not dry_run)
    if any(not is_repaired or finding.code in _UNREPAIRED for finding in repaired.findings):
        raise typer.Exit(FINDINGS)


def _require_sense(file: str, api: str, dialects: Dialects, *, in_place: bool, dry_run: bool) -> None:
    if in_place and file == STANDARD_INPUT:
        raise UsageError("standard input cannot be written in place", hint="use --fix, which prints")
    if dry_run and not in_place:
        raise UsageError("--dry-run says what --in-place would write", hint="nexus check FILE --in-place --dry-run")
    if api:
        rules_of(api, dialects)


def _repaired(file: str, found: MessageFile, api: str, dialects: Dialects) -> Repaired:
    try:
        repaired = repair_in(found.messages, api or None, found.dialect or None, dialects)
        tools = (found.body or {}).get("tools")
        if tools is None:
            return repaired
        speaking = source_of(found.messages, api or None, found.dialect or None, dialects)
        return replace(
            repaired, findings=(*repaired.findings, *check_tool_definitions(tools, api or None, speaking, dialects))
        )
    except MessageError as error:
        raise MessageError(error.what, path=f"{file}: {error.path}", hint=error.command or error.hint) from None


def _print(shell: CommandShell, file: str, found: MessageFile, repaired: Repaired, *, fix: bool) -> None:
    for finding in repaired.findings:
        line = visible_line(f"{file}: {finding}")
        if fix:
            shell.console.message(line)  # the messages are the data
        else:
            shell.console.text(line)
    if fix:
        _print_messages(shell, found, repaired)
    elif not repaired.findings:
        shell.console.message(f"{counted(len(found.messages), 'message')}, nothing to repair")


def _print_messages(shell: CommandShell, found: MessageFile, repaired: Repaired) -> None:
    if found.form == "lines":
        shell.console.text(found.written(repaired.messages, ascii_only=True) or "\n")
    else:
        shell.console.json(cast("Mapping[str, Any]", found.value(repaired.messages)))


def _print_json(shell: CommandShell, file: str, found: MessageFile, repaired: Repaired, *, fix: bool) -> None:
    document: dict[str, object] = {"schema": 1, "file": file, "messages": len(found.messages)}
    document["findings"] = [_described(finding) for finding in repaired.findings]
    shell.console.json(document | ({"repaired": repaired.messages} if fix else {}))


def _described(finding: Finding) -> dict[str, object]:
    return {"index": finding.index, "code": finding.code, "message": finding.message}


def _write(shell: CommandShell, file: str, found: MessageFile, repaired: Repaired, *, dry_run: bool) -> None:
    path = shell.cwd / file
    if all(finding.code in _UNREPAIRED for finding in repaired.findings):
        return
    if dry_run:
        shell.console.message(f"would write {counted(len(repaired.messages), 'message')} to {visible_line(file)}")
        return
    write_text_atomically(path, found.written(repaired.messages), mode=_mode(path))
    shell.console.message(f"wrote {counted(len(repaired.messages), 'message')} to {visible_line(file)}")


def _mode(path: Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)  # noqa: PTH116 - as the reader saw it
