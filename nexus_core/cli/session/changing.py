"""`nexus session fork|rename|archive`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import DryRun, Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import Label, LedgerUrl, app, find_session, open_nexus
from nexus_core.errors import ExistsError
from nexus_core.text.visible import visible_line
from nexus_core.values.ledger import SessionRecord

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell
    from nexus_core.values.ledger import Ledger, SessionStatus

New = Annotated[str, typer.Argument(metavar="NEW", help="A name that no session has.")]
At = Annotated[
    str, typer.Option("--at", metavar="TURN", help="A closed turn, or the step that ended it; the last by default.")
]
Undo = Annotated[bool, typer.Option("--undo", help="Restore it.")]

FORK_EXAMPLES = """
\b
Examples:
  nexus session fork auth-bug second-try
  nexus session fork auth-bug second-try --at 01KA3XJW5C0A9G2Q7V8T4N6M1R
"""


@app.command(epilog=FORK_EXAMPLES)
def fork(
    ctx: typer.Context,
    label: Label,
    new: New,
    *,
    at: At = "",
    dry_run: DryRun = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Begin a new session where a turn of another ended; both go their own way from there."""
    from nexus_core.session.steps.naming import end_of_turn  # noqa: PLC0415 - other commands do not need it

    with open_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        head = end_of_turn(nexus.ledger, record, at).id if at else record.head
        if dry_run:
            made = SessionRecord(label=_free(nexus.ledger, new), head=head, tip=head, origin=record.label)
        else:
            nexus.session(record.label).fork(new, at=at or None)
            made = find_session(nexus.ledger, new)
    where = f"after step {made.head}" if made.head else "before its first turn"
    _report(ctx, f"{'Would fork' if dry_run else 'Forked'} {record.label} as {made.label}, {where}.", made, json=json)


@app.command(
    epilog="\b\nExamples:\n  nexus session rename auth-bug login\n  nexus session rename login auth-bug --dry-run"
)
def rename(
    ctx: typer.Context, label: Label, new: New, *, dry_run: DryRun = False, ledger: LedgerUrl = "", json: Json = False
) -> None:
    """Give a session another name; the old one still leads to it."""
    with open_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        if dry_run:
            renamed = replace(record, label=_free(nexus.ledger, new, unless=record))
        else:
            renamed = nexus.ledger.rename(record.label, new)
    what = f"{'Would rename' if dry_run else 'Renamed'} {record.label} to {renamed.label}."
    _report(ctx, what, renamed, json=json)


@app.command(epilog="\b\nExamples:\n  nexus session archive auth-bug\n  nexus session archive --undo auth-bug")
def archive(
    ctx: typer.Context,
    label: Label,
    *,
    undo: Undo = False,
    dry_run: DryRun = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Put a session away: it opens no new turn and `list` leaves it out, but it can be read and forked."""
    status: SessionStatus = "active" if undo else "archived"
    with open_nexus(ctx, ledger) as nexus:
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
    _report(ctx, what, changed, json=json)


def _free(ledger: Ledger, name: str, unless: SessionRecord | None = None) -> str:
    """A name as it would be stored, if it could be.

    Raises:
        UsageError: Nothing can be called so.
        ExistsError: A session has that name.
    """
    from nexus_core.history.ledger.texts import label_of  # noqa: PLC0415 - as above

    there = ledger.session(label := label_of(name))
    if there is not None and (unless is None or there.label != unless.label):
        raise ExistsError(f"there is a session {label!r} already", hint="choose another name, or use that one")
    return label


def _report(ctx: typer.Context, what: str, record: SessionRecord, *, json: bool) -> None:
    """Say what was done, or would be, and what the session is like then."""
    shell: CommandShell = ctx.obj
    shell.console.message(visible_line(what))
    if json:
        facts = {name: getattr(record, name) for name in ("label", "status", "head", "tip", "open_turn", "origin")}
        shell.console.json({"schema": 1, "session": facts})
