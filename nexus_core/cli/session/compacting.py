"""`nexus session compact`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import DryRun, Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import Label, LedgerUrl, app, find_session, open_session

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell

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
    with open_session(ctx, label, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        report = nexus.session(record.label).compact(focus, dry_run=dry_run)
    print_report(shell, record.label, report, json=json)
