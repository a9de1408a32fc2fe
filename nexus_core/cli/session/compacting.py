"""`nexus session compact`."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import DryRun, Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import Label, LedgerUrl, app, find_session, ledger_url, open_nexus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.cli.shell import CommandShell
    from nexus_core.nexus import Nexus

Focus = Annotated[str, typer.Option("--focus", metavar="TEXT", help="What is to be kept above all.")]

EXAMPLES = """
\b
Examples:
  nexus session compact auth-bug --dry-run
  nexus session compact auth-bug --focus "the failing tests"
"""


@app.command(epilog=EXAMPLES)
def compact(
    ctx: typer.Context,
    label: Label,
    *,
    focus: Focus = "",
    dry_run: DryRun = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Have the earlier turns of a session summarised; nothing is deleted, and `undo` takes it back."""
    from nexus_core.cli.session.compaction_report import print_report  # noqa: PLC0415 - others do not need it

    shell: CommandShell = ctx.obj
    with _where_it_works(ctx, label, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        report = nexus.session(record.label).compact(focus, dry_run=dry_run)
    print_report(shell, record.label, report, json=json)


@contextmanager
def _where_it_works(ctx: typer.Context, label: str, ledger: str) -> Iterator[Nexus]:
    """A Nexus for the directory in which a session works: what is written there is read again."""
    shell: CommandShell = ctx.obj
    url = ledger_url(shell.cwd, ledger) or ""
    with open_nexus(ctx, url) as nexus:
        kept = find_session(nexus.ledger, label).data.get("cwd")
    if isinstance(kept, str) and os.path.isdir(kept):  # noqa: PTH112 - Path.is_dir raises where it cannot be reached
        shell.change_directory(kept)
    with open_nexus(ctx, url) as nexus:
        yield nexus
