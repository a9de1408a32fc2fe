"""`nexus check`: messages of a file against the rules of an API."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, cast

import typer

from nexus_core.cli.context import EXIT_FINDINGS, redirect_plugin_output
from nexus_core.cli.input import STANDARD_INPUT, parse_input_json, parse_json_lines, read_input_text
from nexus_core.cli.options import DryRunOption, JsonOption, list_dialect_names
from nexus_core.dialects.tools import INVALID_TOOL_CODE
from nexus_core.errors import FileError, MessageError, UsageError
from nexus_core.files.write import write_text_atomically
from nexus_core.history.repair import check_tool_definitions, find_rules, find_source_dialect, repair_in_dialects
from nexus_core.history.repair.findings import UNREPAIRED_CODES
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line
from nexus_core.transcripts.messages import detect_request_dialect
from nexus_core.transcripts.read import is_session_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nexus_core.cli.context import CliContext
    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.history.repair import RepairResult
    from nexus_core.types.plugins import Finding

app = typer.Typer()

_UNREPAIRED = UNREPAIRED_CODES | {INVALID_TOOL_CODE}
"""Codes of findings that --fix leaves."""

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="A file of messages; - is standard input.")]
RulesOption = Annotated[
    str,
    typer.Option(
        "--api",
        metavar="API",
        help="Check against the rules of this API; by default that of the messages.",
        autocompletion=list_dialect_names,
    ),
]
FixOption = Annotated[bool, typer.Option("--fix", help="Print the repaired messages, in the form of the file.")]
InPlaceOption = Annotated[bool, typer.Option("--in-place", help="Write the repaired messages into the file.")]

EXAMPLES = """
\b
Examples:
  nexus check request.json --api anthropic
  nexus check history.jsonl --api gemini --fix > fixed.jsonl
"""


@app.command(epilog=EXAMPLES)
def check(
    ctx: typer.Context,
    file: FileArgument,
    *,
    api: RulesOption = "",
    fix: FixOption = False,
    in_place: InPlaceOption = False,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Check messages against the rules of an API.

    Exits with 1 if the API would refuse something. FILE is a JSON list, the body of a request, or has one message on
    each line. With --fix or --in-place the messages are repaired, and the exit code is 0 unless something is left: no
    message at all, or a tool that is refused.
    """
    cli: CliContext = ctx.obj
    dialects = cli.dialects()
    _check_options(file, api, dialects, in_place=in_place, dry_run=dry_run)
    with redirect_plugin_output():
        found = read_message_file(cli.cwd, file, dialects)
        repaired = _repair_file(file, found, api, dialects)
    if in_place:
        _write_repaired(cli, file, found, repaired, dry_run=dry_run)
    if json:
        _print_findings_json(cli, file, found, repaired, fix=fix)
    else:
        _print_findings(cli, file, found, repaired, fix=fix)
    is_repaired = fix or (in_place and not dry_run)
    if any(not is_repaired or finding.code in _UNREPAIRED for finding in repaired.findings):
        raise typer.Exit(EXIT_FINDINGS)


def _check_options(file: str, api: str, dialects: DialectRegistry, *, in_place: bool, dry_run: bool) -> None:
    if in_place and file == STANDARD_INPUT:
        raise UsageError("standard input cannot be written in place", hint="use --fix, which prints")
    if dry_run and not in_place:
        raise UsageError("--dry-run says what --in-place would write", hint="nexus check FILE --in-place --dry-run")
    if api:
        find_rules(api, dialects)


def _repair_file(file: str, found: MessageFile, api: str, dialects: DialectRegistry) -> RepairResult:
    try:
        repaired = repair_in_dialects(found.messages, api or None, found.dialect or None, dialects)
        tools = (found.body or {}).get("tools")
        if tools is None:
            return repaired
        speaking = find_source_dialect(found.messages, api or None, found.dialect or None, dialects)
        return replace(
            repaired, findings=(*repaired.findings, *check_tool_definitions(tools, api or None, speaking, dialects))
        )
    except MessageError as error:
        raise MessageError(error.what, path=f"{file}: {error.path}", hint=error.command or error.hint) from None


def _print_findings(cli: CliContext, file: str, found: MessageFile, repaired: RepairResult, *, fix: bool) -> None:
    for finding in repaired.findings:
        line = visible_line(f"{file}: {finding}")
        if fix:
            cli.console.message(line)  # the messages are the data
        else:
            cli.console.text(line, wrap=True)
    if fix:
        _print_messages(cli, found, repaired)
    elif not repaired.findings:
        cli.console.message(f"{format_count(len(found.messages), 'message')}, nothing to repair")


def _print_messages(cli: CliContext, found: MessageFile, repaired: RepairResult) -> None:
    if found.form == "lines":
        cli.console.text(found.written(repaired.messages, ascii_only=True) or "\n")
    else:
        cli.console.json(cast("Mapping[str, Any]", found.value(repaired.messages)))


def _print_findings_json(cli: CliContext, file: str, found: MessageFile, repaired: RepairResult, *, fix: bool) -> None:
    document: dict[str, object] = {"schema": 1, "file": file, "messages": len(found.messages)}
    document["findings"] = [_finding_to_json(finding) for finding in repaired.findings]
    cli.console.json(document | ({"repaired": repaired.messages} if fix else {}))


def _finding_to_json(finding: Finding) -> dict[str, object]:
    return {"index": finding.index, "code": finding.code, "message": finding.message}


def _write_repaired(cli: CliContext, file: str, found: MessageFile, repaired: RepairResult, *, dry_run: bool) -> None:
    path = cli.cwd / file
    if all(finding.code in _UNREPAIRED for finding in repaired.findings):
        return
    if dry_run:
        cli.console.message(f"would write {format_count(len(repaired.messages), 'message')} to {visible_line(file)}")
        return
    write_text_atomically(path, found.written(repaired.messages), mode=_get_file_mode(path))
    cli.console.message(f"wrote {format_count(len(repaired.messages), 'message')} to {visible_line(file)}")


def _get_file_mode(path: Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)  # noqa: PTH116 - as the reader saw it


_MESSAGE_FIELDS = {"messages": "", "input": "responses", "contents": "gemini"}
"""Fields with the messages of a request body, and the API that each implies."""

_FORMS_HINT = "it must be a list, one message on each line, or a request with messages, input or contents"

MessageFileForm = Literal["list", "body", "lines"]


class MessageFile(NamedTuple):
    """The messages of a file, and its other content.

    Attributes:
        form: The form of the file: a list, a request, or lines.
        messages: The messages.
        dialect: The API of the messages, "" if the form does not determine it.
        body: The request, with its messages in `field`.
        field: The key of the messages in `body`.
        indent: Spaces per level.
    """

    form: MessageFileForm
    messages: list[Any]
    dialect: str = ""
    body: dict[str, Any] | None = None
    field: str = ""
    indent: int | None = None

    def value(self, messages: Sequence[Any]) -> Any:  # noqa: ANN401 - a list or an object
        """Return the same file with other messages, as JSON."""
        return list(messages) if self.body is None else {**self.body, self.field: list(messages)}

    def written(self, messages: Sequence[Any], *, ascii_only: bool = False) -> str:
        """Return the text of the same file with other messages."""
        if self.form == "lines":
            return "".join(json.dumps(message, ensure_ascii=ascii_only) + "\n" for message in messages)
        return json.dumps(self.value(messages), ensure_ascii=ascii_only, indent=self.indent) + "\n"


def read_message_file(directory: Path, name: str, dialects: DialectRegistry) -> MessageFile:
    """Return the messages in a file, or on standard input.

    Raises:
        ConfigError: It is not JSON; shows where.
        FileError: It cannot be read, or holds no messages.
    """
    path, text = read_input_text(directory, name)
    if not text.strip():
        raise FileError("there is nothing in it", where=str(path), hint=_FORMS_HINT)
    lines = parse_json_lines(path, text)
    if lines is not None:
        return _parse_message_lines(path, [value for _, value in lines])
    return _parse_message_file(
        path, parse_input_json(path, text, text), dialects, indent=2 if "\n" in text.strip() else None
    )


def _parse_message_file(
    path: Path,
    value: Any,  # noqa: ANN401 - what a file may hold
    dialects: DialectRegistry,
    indent: int | None,
) -> MessageFile:
    if isinstance(value, list):
        return MessageFile("list", value, indent=indent)
    fields = _MESSAGE_FIELDS.items() if isinstance(value, dict) else ()
    for field, dialect in fields:
        messages = value.get(field)
        if field == "input" and isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]  # which OpenAI takes it for
        if isinstance(messages, list):
            _require_all_items(path, value)
            of = dialect or _detect_dialect(value, dialects)
            return MessageFile("body", messages, of, value, field, indent)
    if isinstance(value, dict) and ("role" in value or "type" in value):
        return _parse_message_lines(path, [value])
    raise FileError("there are no messages in it", where=str(path), hint=_FORMS_HINT)


def _detect_dialect(body: dict[str, Any], dialects: DialectRegistry) -> str:
    """Return the API of a request body. Invalid messages in it are reported by the reader."""
    with suppress(MessageError):
        return detect_request_dialect(body, dialects)
    return ""


def _parse_message_lines(path: Path, values: list[Any]) -> MessageFile:
    if any(isinstance(value, dict) and "role" not in value and is_session_line(value) for value in values):
        raise FileError(
            "a session that an agent wrote, not a list of messages",
            where=str(path),
            hint="`nexus context FILE` shows what is in it, `nexus session import FILE` keeps it",
        )
    return MessageFile("lines", values)


def _require_all_items(path: Path, body: dict[str, Any]) -> None:
    for field in ("previous_response_id", "conversation"):
        if body.get(field):
            raise FileError(
                f"the request continues a conversation that OpenAI stores ({field})",
                where=str(path),
                hint="only the whole list of items can be checked",
            )
