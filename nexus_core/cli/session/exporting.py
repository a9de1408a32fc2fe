"""`nexus session export`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import Json, dialect_names
from nexus_core.cli.session.group import Label, LedgerUrl, WithSecrets, app, find_session, open_nexus
from nexus_core.errors import FileError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from nexus_core.cli.shell import CommandShell
    from nexus_core.nexus import Nexus

STANDARD_OUTPUT = "-"
_OWN, _ORIGINAL = "nexus", "original"


def _formats(ctx: typer.Context) -> list[str]:
    return [_OWN, *dialect_names(ctx), _ORIGINAL]


Output = Annotated[
    str, typer.Option("-o", "--output", metavar="FILE", help="Where to; - is standard output, the default.")
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="nexus: all of a session, to be imported again. openai, responses, anthropic, gemini, neutral, or a"
        " plugin's: the messages. original: the file that was imported.",
        autocompletion=_formats,
    ),
]
Everything = Annotated[
    bool,
    typer.Option("--all", help="With the sessions that were forked from it; of messages, also what was compacted."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace FILE if it is there.")]

EXAMPLES = """
\b
Examples:
  nexus session export auth-bug -o auth-bug.jsonl
  nexus session export auth-bug --format openai | nexus check -
"""


@app.command(epilog=EXAMPLES)
def export(
    ctx: typer.Context,
    label: Label,
    *,
    output: Output = STANDARD_OUTPUT,
    form: Format = _OWN,
    everything: Everything = False,
    with_secrets: WithSecrets = False,
    force: Force = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Write a session into a file: whole, to be imported elsewhere, or what was said, for another program.

    From messages, keys, tokens and passwords are taken out. The whole session, and the file that was imported, keep
    them: such a file is for its owner's eyes only.
    """
    shell: CommandShell = ctx.obj
    path = _path(shell, output, force=force)
    _require_sense(ctx, form, path, json=json)
    ascii_only = path is None and not _takes_everything()
    with open_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        if form in (_OWN, _ORIGINAL):
            data = _whole(nexus, record.label, form, everything=everything, ascii_only=ascii_only)
        else:
            data = _messages(
                nexus, record.label, form, everything=everything, secrets=with_secrets, ascii_only=ascii_only
            ).encode()
    if path is None:
        shell.console.text(data.decode())
        return
    from nexus_core.files.writing import write_bytes_atomically  # noqa: PLC0415 - only for a file

    write_bytes_atomically(path, data)
    facts = {"schema": 1, "session": record.label, "format": form, "file": str(path), "bytes": len(data)}
    if json:
        shell.console.json(facts)
    else:
        shell.console.message(f"Wrote {record.label} to {output}: {len(data):,} bytes.")


def _require_sense(ctx: typer.Context, form: str, path: Path | None, *, json: bool) -> None:
    from nexus_core.dialects.finding import NAMES  # noqa: PLC0415 - other commands do not need it

    if form not in (_OWN, _ORIGINAL, *NAMES) and form not in (known := _formats(ctx)):
        raise UnknownNameError("format", form, known)
    if json and path is None:
        raise UsageError("--json says what was written to a file", hint="name one: -o FILE")
    if form == _ORIGINAL and path is None:
        raise UsageError("the file that was imported is given back as it was", hint="name a file for it: -o FILE")


def _takes_everything() -> bool:
    """Whether every character can be printed; otherwise JSON's own escapes stand for them."""
    return (sys.stdout.encoding or "").lower().replace("-", "") in ("utf8", "utf_8")


def _path(shell: CommandShell, output: str, *, force: bool) -> Path | None:
    if output == STANDARD_OUTPUT:
        return None
    path = shell.cwd / output
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where a directory cannot be reached
        raise FileError("is a directory", where=output, hint="name a file in it")
    if os.path.lexists(path) and not force:
        raise FileError("exists already", where=output, hint="choose another name, or --force replaces it")
    return path


def _whole(nexus: Nexus, label: str, form: str, *, everything: bool, ascii_only: bool) -> bytes:
    if form == _ORIGINAL:
        return _original(nexus, label)
    from nexus_core.session.exporting.lines import export_lines  # noqa: PLC0415 - one of three

    return "".join(export_lines(nexus.ledger, label, forks=everything, ascii_only=ascii_only)).encode()


def _original(nexus: Nexus, label: str) -> bytes:
    from nexus_core.session.importing.sources import read_source  # noqa: PLC0415 - as above
    from nexus_core.session.importing.transcripts import about_import  # noqa: PLC0415 - as above

    source = about_import(find_session(nexus.ledger, label)).get("source")
    if not isinstance(source, str):
        raise UsageError(f"{label!r} was not imported from a file of its own", hint="other formats: --format nexus")
    return read_source(nexus.ledger, source)


def _messages(nexus: Nexus, label: str, api: str, *, everything: bool, secrets: bool, ascii_only: bool) -> str:
    from json import dumps  # noqa: PLC0415 - as above

    from nexus_core.dialects.plain import plain  # noqa: PLC0415 - as above
    from nexus_core.session.exporting.messages import everything_said, write_messages  # noqa: PLC0415 - as above
    from nexus_core.text.redaction import redact_json  # noqa: PLC0415 - as above
    from nexus_core.text.visible import visible_json  # noqa: PLC0415 - as above

    tip = find_session(nexus.ledger, label).tip
    said = everything_said(nexus.ledger, tip) if everything else nexus.session(label).messages
    written = plain(write_messages(said, api, nexus.dialects))  # an SDK may take bytes
    shown = written if secrets else redact_json(written)
    return visible_json(dumps(shown, ensure_ascii=ascii_only, indent=2)) + "\n"
