"""`nexus session fork|rename|archive|unarchive|delete`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import (
    DryRunOption,
    JsonOption,
)
from nexus_core.cli.session_lookup import LedgerOption, SessionArgument, find_session, open_ledger_nexus
from nexus_core.errors import SessionExistsError, UsageError
from nexus_core.ledger.deletion import DeletableLedger, undeletable_ledger_error
from nexus_core.ledger.store import normalize_label
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line
from nexus_core.thread.lookup import find_turn_end
from nexus_core.types.ledger import SessionRecord

if TYPE_CHECKING:
    from nexus_core.cli.context import CliContext
    from nexus_core.ledger.deletion import DeletionReport
    from nexus_core.types.ledger import Ledger, SessionStatus

app = typer.Typer()

NewNameArgument = Annotated[str, typer.Argument(metavar="NEW", help="A name that no session has.")]
AtOption = Annotated[
    str, typer.Option("--at", metavar="TURN", help="Fork at this closed turn; the last one by default.")
]

FORK_EXAMPLES = """
\b
Examples:
  nexus session fork auth-bug second-try
  nexus session fork auth-bug second-try --at 01KA3XJW5C0A9G2Q7V8T4N6M1R
"""


@app.command(epilog=FORK_EXAMPLES)
def fork(
    ctx: typer.Context,
    label: SessionArgument,
    new: NewNameArgument,
    *,
    at: AtOption = "",
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Start a new session at a turn of another.

    Each continues on its own.
    """
    with open_ledger_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        head = find_turn_end(nexus.ledger, record, at).id if at else record.head
        if dry_run:
            made = SessionRecord(label=_require_free_name(nexus.ledger, new), head=head, tip=head, origin=record.label)
        else:
            nexus.session(record.label).fork(new, at=at or None)
            made = find_session(nexus.ledger, new)
    where = f"after step {made.head}" if made.head else "before its first turn"
    _report_change(
        ctx, f"{'Would fork' if dry_run else 'Forked'} {record.label} as {made.label}, {where}.", made, json=json
    )


@app.command(
    epilog="\b\nExamples:\n  nexus session rename auth-bug login\n  nexus session rename login auth-bug --dry-run"
)
def rename(
    ctx: typer.Context,
    label: SessionArgument,
    new: NewNameArgument,
    *,
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Rename a session.

    The old name still leads to it.
    """
    with open_ledger_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        if dry_run:
            renamed = replace(record, label=_require_free_name(nexus.ledger, new, unless=record))
        else:
            renamed = nexus.ledger.rename(record.label, new)
    what = f"{'Would rename' if dry_run else 'Renamed'} {record.label} to {renamed.label}."
    _report_change(ctx, what, renamed, json=json)


@app.command(epilog="\b\nExamples:\n  nexus session archive auth-bug\n  nexus session archive auth-bug --dry-run")
def archive(
    ctx: typer.Context,
    label: SessionArgument,
    *,
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Archive a session.

    It opens no new turn and `list` leaves it out, but it can be read and forked. `unarchive` restores it.
    """
    _set_status(ctx, label, "archived", dry_run=dry_run, ledger=ledger, json=json)


@app.command(epilog="\b\nExamples:\n  nexus session unarchive auth-bug\n  nexus session unarchive auth-bug --dry-run")
def unarchive(
    ctx: typer.Context,
    label: SessionArgument,
    *,
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Restore an archived session."""
    _set_status(ctx, label, "active", dry_run=dry_run, ledger=ledger, json=json)


def _set_status(
    ctx: typer.Context, label: str, status: SessionStatus, *, dry_run: bool, ledger: str, json: bool
) -> None:
    undo = status == "active"
    with open_ledger_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        if record.status == status:
            what, changed = f"{record.label} is {'in use' if undo else 'archived'} already.", record
        elif dry_run:
            what, changed = (
                f"Would {'restore' if undo else 'archive'} {record.label}.",
                replace(record, status=status),
            )
        else:
            what = f"{'Restored' if undo else 'Archived'} {record.label}."
            changed = nexus.ledger.update(record.label, status=status)
    _report_change(ctx, what, changed, json=json)


def _require_free_name(ledger: Ledger, name: str, unless: SessionRecord | None = None) -> str:
    """Return a name as it would be stored, if it could be.

    Raises:
        UsageError: Nothing can be called so.
        SessionExistsError: A session has that name.
    """
    there = ledger.session(label := normalize_label(name))
    if there is not None and (unless is None or there.label != unless.label):
        raise SessionExistsError(f"session {label!r} exists already", hint="choose another name, or use that one")
    return label


def _report_change(ctx: typer.Context, what: str, record: SessionRecord, *, json: bool) -> None:
    """Print what was or would be done, and the session afterwards."""
    cli: CliContext = ctx.obj
    cli.console.message(visible_line(what))
    if json:
        facts = {name: getattr(record, name) for name in ("label", "status", "head", "tip", "open_turn", "origin")}
        cli.console.json({"schema": 1, "session": facts})


ReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Say why; the ledger keeps it.")]
WorkersOption = Annotated[bool, typer.Option("--workers", help="Delete the session's workers, too.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.command(epilog="\b\nExamples:\n  nexus session delete auth-bug --dry-run\n  nexus session delete auth-bug --yes")
def delete(
    ctx: typer.Context,
    label: SessionArgument,
    *,
    reason: ReasonOption = "",
    workers: WorkersOption = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Delete a session and erase its content.

    Its names are erased, and the text, images and prompts that no other session needs. Ids and digests of its steps
    stay, and a record of the deletion, so that `nexus ledger verify` can tell it from damage. Steps that other sessions
    share stay whole. `archive` puts a session away without erasing anything.
    """
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        if not isinstance(nexus.ledger, DeletableLedger):
            raise undeletable_ledger_error(nexus.ledger.url)
        report = nexus.ledger.delete(record.label, workers=workers, dry_run=True)
        if not dry_run and (yes or _confirm_deletion(cli, report)):
            report = nexus.delete_session(record.label, reason=reason, workers=workers)
    if json:
        cli.console.json({"schema": 1, "dry_run": dry_run, **report._asdict()})
    _report_deletion(cli, report, dry_run=dry_run)


def _confirm_deletion(cli: CliContext, report: DeletionReport) -> bool:
    """Ask on a terminal.

    Raises:
        UsageError: There is none.
    """
    if not cli.can_ask:
        hint = "look at it with --dry-run, then pass --yes"
        raise UsageError("there is no terminal to ask on, so nothing was deleted", hint=hint)
    cli.console.message(visible_line(f"{_describe_erased(report)} would be erased for good."))
    return cli.agrees("Delete it?")


def _describe_erased(report: DeletionReport) -> str:
    names = ", ".join(report.labels)
    return f"{names}: {format_count(report.steps, 'step')} and {format_count(report.blobs, 'blob')}"


def _report_deletion(cli: CliContext, report: DeletionReport, *, dry_run: bool) -> None:
    if not report.ids and not dry_run:
        cli.console.message("Nothing was deleted.")
        return
    cli.console.message(visible_line(f"{'Would delete' if dry_run else 'Deleted'} {_describe_erased(report)}."))
    if report.sharing:
        shared = f"steps that are also part of {', '.join(report.sharing)} stay"
        cli.console.warning(visible_line(f"{shared}; to erase them, delete these sessions, too"))
    if report.workers:
        what = f"its workers stay: {', '.join(report.workers)}; --workers deletes them, too"
        cli.console.warning(visible_line(what))
    for copy in report.copies:
        cli.console.warning(visible_line(f"an older copy still has everything: {copy}; delete it yourself"))
    if dry_run:
        return
    if not report.is_purged:
        what = "another program is reading the ledger, so the erased text may still lie in its file"
        cli.console.warning(f"{what}; the next program that opens the ledger overwrites it")
    if report.note:
        cli.console.message(report.note)
