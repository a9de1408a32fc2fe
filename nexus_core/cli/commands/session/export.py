"""`nexus session export`."""

from __future__ import annotations

import os
import re
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nexus_core.cli.aliases import warn_old_name
from nexus_core.cli.options import JsonOption, WithSecretsOption, list_dialect_names
from nexus_core.cli.session_lookup import (
    LedgerOption,
    SessionArgument,
    estimate_steps,
    find_session,
    open_ledger_nexus,
)
from nexus_core.errors import FileError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from nexus_core.cli.context import CliContext
    from nexus_core.nexus import Nexus
    from nexus_core.text.console import ProgressBar
    from nexus_core.transcripts.writer import TranscriptWriter
    from nexus_core.transfer.agent_export import AgentExport
    from nexus_core.types.ledger import SessionRecord

app = typer.Typer()

STANDARD_OUTPUT = "-"
_NEXUS_FORMAT, _ORIGINAL_FORMAT = "nexus", "original"
_MARKDOWN_FORMAT, _HTML_FORMAT = "markdown", "html"
_DOCUMENT_FORMATS = (_MARKDOWN_FORMAT, _HTML_FORMAT)
_FORMATS = (_NEXUS_FORMAT, _ORIGINAL_FORMAT, *_DOCUMENT_FORMATS)


OutputOption = Annotated[
    str, typer.Option("-o", "--output", metavar="FILE", help="Where to; - is standard output, the default.")
]
FormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Write nexus (all), original, markdown, html or an agent's.",
        autocompletion=lambda ctx: [*_FORMATS, *_list_agent_formats(ctx.obj)],
    ),
]
ApiOption = Annotated[
    str,
    typer.Option(
        "--api",
        metavar="API",
        help="Write the messages in the format of this API.",
        autocompletion=list_dialect_names,
    ),
]
WithForksOption = Annotated[bool, typer.Option("--with-forks", help="Export its forks, too.")]
IncludeCompactedOption = Annotated[
    bool, typer.Option("--include-compacted", help="Export compacted messages, too; needs --api.")
]
OldAllOption = Annotated[bool, typer.Option("--all", hidden=True)]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace FILE if it is there.")]

EXAMPLES = """
\b
Examples:
  nexus session export auth-bug -o auth-bug.jsonl
  nexus session export auth-bug --format codex -o rollout.jsonl
"""


@app.command(epilog=EXAMPLES)
def export(
    ctx: typer.Context,
    label: SessionArgument,
    *,
    output: OutputOption = STANDARD_OUTPUT,
    form: FormatOption = _NEXUS_FORMAT,
    api: ApiOption = "",
    with_forks: WithForksOption = False,
    include_compacted: IncludeCompactedOption = False,
    everything: OldAllOption = False,
    with_secrets: WithSecretsOption = False,
    force: ForceOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Export a session to a file.

    It is written whole, to be imported elsewhere, as a page to read, as messages for another program, or as the file
    of another agent (claude-code, codex, gemini-cli, opencode, pi, atif and those of plugins), which then continues the
    conversation. Pages, messages and files of agents are redacted: keys, tokens and passwords are taken out. The whole
    session, and the file that was imported, keep them: such a file is for its owner's eyes only.
    """
    cli: CliContext = ctx.obj
    path = _resolve_output_path(cli, output, force=force)
    writer = None if api or form in _FORMATS else _list_agent_formats(cli).get(form)
    form = form if writer else _choose_form(ctx, form, api)
    is_session = form in _FORMATS or writer is not None
    if everything:
        warn_old_name(ctx, "--all", "--with-forks" if is_session else "--include-compacted")
    elif with_forks and form != _NEXUS_FORMAT:
        raise UsageError("--with-forks needs the format nexus", hint="leave out --with-forks, or --api and --format")
    elif include_compacted and is_session:
        raise UsageError("--include-compacted needs --api", hint="the other formats have everything")
    everything = everything or with_forks or include_compacted
    _check_options(form, path, json=json)
    ascii_only = path is None and not _can_print_unicode()
    with open_ledger_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        steps = estimate_steps(nexus.ledger, record) if form == _NEXUS_FORMAT else 0
        exported: AgentExport | None = None
        with cli.console.progress(steps or None, "Exporting", unit="steps" if steps else "") as progress:
            if writer is not None:
                exported = _export_for_agent(nexus, record, writer, cwd=str(cli.cwd), secrets=with_secrets)
                data = (_escape_unicode(exported.text) if ascii_only else exported.text).encode()
            elif form in _DOCUMENT_FORMATS:
                data = _export_document(nexus, record.label, form, secrets=with_secrets, ascii_only=ascii_only)
            elif is_session:
                lines = _export_session(nexus, record.label, form, everything=everything, ascii_only=ascii_only)
                data = b"".join(_report_each(lines, progress))
            else:
                data = _export_messages(
                    nexus, record.label, form, everything=everything, secrets=with_secrets, ascii_only=ascii_only
                ).encode()
    if path is None:
        cli.console.text(data.decode())
    else:
        _write_file(path, data, is_for_agent=writer is not None)
    report = {} if exported is None else _describe_export(exported, "FILE" if path is None else output)
    if json:
        facts = {"schema": 1, "session": record.label, "format": form, "file": str(path), "bytes": len(data)}
        cli.console.json({**facts, **report})
        return
    written = [] if path is None else [f"Wrote {record.label} to {output}: {len(data):,} bytes."]
    for line in (*written, *_list_report_lines(report)):
        cli.console.message(line)


def _choose_form(ctx: typer.Context, form: str, api: str) -> str:
    """Return the format or the API to write. An API in --format is deprecated.

    Raises:
        UnknownNameError: There is no such format or API.
        UsageError: Both are named.
    """
    if not api and form in _FORMATS:
        return form
    if form == _NEXUS_FORMAT:
        return str(ctx.obj.dialects().get(api).name)
    if api:
        raise UsageError("--format and --api select different things", hint="leave out one of them")
    formats = [*_FORMATS, *_list_agent_formats(ctx.obj)]
    if form not in list_dialect_names(ctx):
        raise UnknownNameError("format", form, formats)
    # `gemini` may mean the API or the agent.
    agents = [f"`--format {each}` for that agent" for each in formats if each.startswith(f"{form}-")]
    warn_old_name(ctx, f"--format {form}", f"--api {form}", *agents)
    return form


def _check_options(form: str, path: Path | None, *, json: bool) -> None:
    if json and path is None:
        raise UsageError("--json says what was written to a file", hint="name one: -o FILE")
    if form == _ORIGINAL_FORMAT and path is None:
        raise UsageError("the file that was imported is given back as it was", hint="name a file for it: -o FILE")


def _can_print_unicode() -> bool:
    """True if standard output can encode every character. Otherwise JSON escapes are used."""
    return (sys.stdout.encoding or "").lower().replace("-", "") in ("utf8", "utf_8")


def _resolve_output_path(cli: CliContext, output: str, *, force: bool) -> Path | None:
    if output == STANDARD_OUTPUT:
        return None
    path = cli.cwd / output
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where a directory cannot be reached
        raise FileError("is a directory", where=output, hint="name a file in it")
    if os.path.lexists(path) and not force:
        raise FileError("exists already", where=output, hint="choose another name, or --force replaces it")
    return path


def _write_file(path: Path, data: bytes, *, is_for_agent: bool) -> None:
    from nexus_core.files.write import make_directories, write_bytes_atomically

    if is_for_agent:  # which expects it in a directory by date or project that is rarely there yet
        make_directories(path.parent, mode=0o700)
    write_bytes_atomically(path, data)


def _export_session(nexus: Nexus, label: str, form: str, *, everything: bool, ascii_only: bool) -> Iterator[bytes]:
    """Yield the file of a session, line by line, or as it was imported."""
    if form == _ORIGINAL_FORMAT:
        yield _read_original_file(nexus, label)
        return
    from nexus_core.transfer.exporter import export_session

    for line in export_session(nexus.ledger, label, with_forks=everything, ascii_only=ascii_only):
        yield line.encode()


def _report_each(lines: Iterable[bytes], progress: ProgressBar) -> Iterator[bytes]:
    for line in lines:
        yield line
        progress.advance(1)


def _read_original_file(nexus: Nexus, label: str) -> bytes:
    from nexus_core.transfer.importer import read_original

    data = read_original(nexus.ledger, find_session(nexus.ledger, label))
    if data is None:
        raise UsageError(f"{label!r} was not imported from a file of its own", hint="other formats: --format nexus")
    return data


def _export_document(nexus: Nexus, label: str, form: str, *, secrets: bool, ascii_only: bool) -> bytes:
    from nexus_core.cli.commands.session.overview import open_price_list
    from nexus_core.transfer.documents import build_document, write_markdown

    record = find_session(nexus.ledger, label)
    document = build_document(nexus.ledger, record, open_price_list(nexus), with_secrets=secrets)
    if form == _MARKDOWN_FORMAT:
        return write_markdown(document).encode()
    from nexus_core.transfer.html_page import write_html

    return write_html(document).encode("ascii" if ascii_only else "utf-8", "xmlcharrefreplace")


def _list_agent_formats(cli: CliContext) -> dict[str, TranscriptWriter]:
    """Return the writers for files of other agents, by the name of the format."""
    return {form.name: form.writer for form in cli.transcript_formats() if form.writer is not None}


def _export_for_agent(
    nexus: Nexus, record: SessionRecord, writer: TranscriptWriter, *, cwd: str, secrets: bool
) -> AgentExport:
    from nexus_core.cli.commands.session.overview import open_price_list
    from nexus_core.transfer.agent_export import export_transcript, read_session_transcript

    transcript = read_session_transcript(nexus.ledger, record)
    return export_transcript(
        transcript, writer, name=record.label, cwd=cwd, with_secrets=secrets, prices=open_price_list(nexus)
    )


def _escape_unicode(text: str) -> str:
    """Return JSON without characters that standard output cannot encode."""
    from json import dumps

    return re.sub(r"[^\x00-\x7f]", lambda found: dumps(found[0])[1:-1], text)


def _describe_export(exported: AgentExport, file: str) -> dict[str, Any]:
    """Return what the file of an agent has and lacks, and how the agent continues it."""
    return {
        "messages": exported.messages,
        "calls": exported.calls,
        "left_out": exported.left_out,
        "changed": exported.changed,
        "expected_at": exported.hint.file,
        "command": exported.hint.command.replace("FILE", file if file == "FILE" else shlex.quote(file)),
    }


def _list_report_lines(report: dict[str, Any]) -> Iterator[str]:
    if not report:
        return
    from nexus_core.text.console import format_count

    yield f"{format_count(report['messages'], 'message')}, {format_count(report['calls'], 'tool call')}."
    for title, key in (("Left out", "left_out"), ("Changed", "changed")):
        if report[key]:
            yield f"{title}: {', '.join(f'{number:,} {kind}' for kind, number in report[key].items())}."
    if report["expected_at"]:
        yield f"The agent expects it at {report['expected_at']}"
    if report["command"]:
        yield f"Continue with: {report['command']}"


def _export_messages(nexus: Nexus, label: str, api: str, *, everything: bool, secrets: bool, ascii_only: bool) -> str:
    from json import dumps

    from nexus_core.dialects.fields import to_json_types
    from nexus_core.text.safety import visible_json
    from nexus_core.text.secrets import redact_json
    from nexus_core.transfer.exporter import format_messages, read_all_messages

    tip = find_session(nexus.ledger, label).tip
    messages = read_all_messages(nexus.ledger, tip) if everything else nexus.session(label).messages
    written = to_json_types(format_messages(messages, api, nexus.dialects))  # an SDK may take bytes
    shown = written if secrets else redact_json(written)
    return visible_json(dumps(shown, ensure_ascii=ascii_only, indent=2)) + "\n"
