"""`nexus session delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import DryRun, Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import Label, LedgerUrl, app, find_session, open_nexus
from nexus_core.errors import UsageError
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell
    from nexus_core.history.ledger.deletion import DeletionReport

Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it stays in the ledger.")]
Workers = Annotated[bool, typer.Option("--workers", help="Delete the session's workers, too.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.command(epilog="\b\nExamples:\n  nexus session delete auth-bug --dry-run\n  nexus session delete auth-bug --yes")
def delete(
    ctx: typer.Context,
    label: Label,
    *,
    reason: Reason = "",
    workers: Workers = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Erase a session for good: its names, and the text, pictures and prompts that no other session needs.

    Ids and digests of its steps stay, and a record of the deletion, so that `verify` can tell it from damage. Steps
    that other sessions share stay whole. `archive` puts a session away without erasing anything.
    """
    from nexus_core.history.ledger.deletion import DeletableLedger, undeletable  # noqa: PLC0415 - seldom used

    shell: CommandShell = ctx.obj
    with open_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        if not isinstance(nexus.ledger, DeletableLedger):
            raise undeletable(nexus.ledger.url)
        report = nexus.ledger.delete(record.label, workers=workers, dry_run=True)
        if not dry_run and (yes or _agrees(shell, report)):
            report = nexus.delete_session(record.label, reason=reason, workers=workers)
    if json:
        shell.console.json({"schema": 1, "dry_run": dry_run, **report._asdict()})
    _tell(shell, report, dry_run=dry_run)


def _agrees(shell: CommandShell, report: DeletionReport) -> bool:
    """Ask on a terminal.

    Raises:
        UsageError: There is none.
    """
    if not shell.can_ask:
        hint = "look at it with --dry-run, then pass --yes"
        raise UsageError("there is no terminal to ask on, so nothing was deleted", hint=hint)
    shell.console.message(visible_line(f"{_erased(report)} would be erased for good."))
    return shell.agrees("Delete it?")


def _erased(report: DeletionReport) -> str:
    names = ", ".join(report.labels)
    return f"{names}: {counted(report.steps, 'step')} and {counted(report.blobs, 'blob')}"


def _tell(shell: CommandShell, report: DeletionReport, *, dry_run: bool) -> None:
    if not report.ids and not dry_run:
        shell.console.message("Nothing was deleted.")
        return
    shell.console.message(visible_line(f"{'Would delete' if dry_run else 'Deleted'} {_erased(report)}."))
    if report.sharing:
        shared = f"steps that are also part of {', '.join(report.sharing)} stay"
        shell.console.warning(visible_line(f"{shared}; to erase them, delete these sessions, too"))
    if report.workers:
        what = f"its workers stay: {', '.join(report.workers)}; --workers deletes them, too"
        shell.console.warning(visible_line(what))
    for copy in report.copies:
        shell.console.warning(visible_line(f"an older copy still has everything: {copy}; delete it yourself"))
    if dry_run:
        return
    if not report.is_purged:
        what = "another program is reading the ledger, so the erased text may still lie in its file"
        shell.console.warning(f"{what}; the next program that opens the ledger overwrites it")
    if report.note:
        shell.console.message(report.note)
