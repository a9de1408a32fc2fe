"""`nexus session import`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import DryRun, Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import LedgerUrl, app, open_nexus
from nexus_core.errors import UsageError

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell

_PROGRAMS = ("claude", "codex", "pi")

Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE]...", help="Transcripts, or exports of sessions; - is standard input."),
]
From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="PROGRAM",
        help="The sessions of this directory that claude, codex or pi keeps.",
        autocompletion=lambda: [*_PROGRAMS],
    ),
]
NewLabel = Annotated[str, typer.Option("--label", metavar="LABEL", help="What to call the session; for one FILE only.")]
List = Annotated[bool, typer.Option("--list", help="With --from: only list them.")]

EXAMPLES = """
\b
Examples:
  nexus session import --from claude --dry-run
  nexus session import rollout.jsonl --label auth-bug
"""


@app.command("import", epilog=EXAMPLES)
def import_sessions(
    ctx: typer.Context,
    files: Files = None,
    *,
    program: From = "",
    label: NewLabel = "",
    only_list: List = False,
    dry_run: DryRun = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Bring conversations of other programs into the ledger, to continue them there.

    FILE is a session of Claude Code, Codex, pi or NEXUS3, an export of ChatGPT (a session per conversation), messages
    or a request of any API, or what `nexus session export` wrote. Importing it again changes nothing; of one that has
    grown, only what is new is added. A report says what was read, merged, repaired and skipped.
    """
    from nexus_core.cli.session.imported import find_files, import_files, list_files  # noqa: PLC0415 - only here

    shell: CommandShell = ctx.obj
    _require_sense(files, program, only_list=only_list)
    found = find_files(shell, program) if program else []
    if only_list:
        list_files(shell, program, found, json=json)
        return
    names = files or [str(each.path) for each in found]
    if label and len(names) > 1:
        raise UsageError(f"{len(names)} files cannot have one name", hint="leave out --label, or name one FILE")
    with open_nexus(ctx, ledger, writes=True) as nexus:
        cwd = str(shell.cwd) if program else ""
        import_files(shell, nexus.ledger, names, label=label, cwd=cwd, dry_run=dry_run, json=json)


def _require_sense(files: list[str] | None, program: str, *, only_list: bool) -> None:
    if files and program:
        raise UsageError("FILE and --from name different things to import", hint="leave out one of them")
    if not files and not program:
        raise UsageError("nothing to import", hint="name a FILE, or say whose sessions: --from claude, codex or pi")
    if only_list and not program:
        raise UsageError("--list shows what --from finds", hint="nexus session import --from claude --list")
