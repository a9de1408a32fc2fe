"""`nexus session fork|rename|archive`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import DryRun, Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import Label, LedgerUrl, app, find_session, open_nexus
from nexus_core.errors import ExistsError
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell
    from nexus_core.values.ledger import Ledger, SessionRecord, SessionStatus

New = Annotated[str, typer.Argument(metavar="NEW", help="A name that no session has.")]
At = Annotated[
    str, typer.Option("--at", metavar="TURN", help="A closed turn, or the step that ended it; the last by default.")
]
Undo = Annotated[bool, typer.Option("--undo", help="Take it back into use.")]

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
    from nexus_core.session.walking import end_of_turn  # noqa: PLC0415 - other commands do not need it

    shell: CommandShell = ctx.obj
    with open_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        head = end_of_turn(nexus.ledger, record, at).id if at else record.head
        _require_free(nexus.ledger, new)
        if not dry_run:
            nexus.session(record.label).fork(new, at=head)
        where = f"after step {head}" if head else "before the first turn"
        _report(shell, nexus.ledger, new, f"fork {record.label} as {new}, {where}", dry_run=dry_run, json=json, head=head)


@app.command(epilog="\b\nExamples:\n  nexus session rename auth-bug login\n  nexus session rename login auth-bug --dry-run")
def rename(
    ctx: typer.Context, label: Label, new: New, *, dry_run: DryRun = False, ledger: LedgerUrl = "", json: Json = False
) -> None:
    """Give a session another name; the old one still leads to it."""
    shell: CommandShell = ctx.obj
    with open_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        _require_free(nexus.ledger, new, unless=record)
        if not dry_run:
            nexus.ledger.rename(record.label, new)
        _report(shell, nexus.ledger, new, f"rename {record.label} to {new}", dry_run=dry_run, json=json, head=record.head)


@app.command(epilog="\b\nExamples:\n  nexus session archive auth-bug\n  nexus session archive --undo auth-bug")
def archive(
    ctx: typer.Context, label: Label, *, undo: Undo = False, dry_run: DryRun = False, ledger: LedgerUrl = "", json: Json = False
) -> None:
    """Put a session away: it opens no new turn and `list` leaves it out, but it can be read and forked."""
    shell: CommandShell = ctx.obj
    status: SessionStatus = "active" if undo else "archived"
    with open_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        if not dry_run and record.status != status:
            nexus.ledger.update(record.label, status=status)
        what = f"take {record.label} back into use" if undo else f"archive {record.label}"
        _report(shell, nexus.ledger, record.label, what, dry_run=dry_run, json=json, head=record.head)


def _require_free(ledger: Ledger, name: str, unless: SessionRecord | None = None) -> None:
    from nexus_core.history.ledger.texts import label_of  # noqa: PLC0415 - as above

    there = ledger.session(label_of(name))
    if there is not None and (unless is None or there.label != unless.label):
        alias = "" if there.label == name else f", as another name of {there.label!r}"
        raise ExistsError(f"there is a session {name!r} already{alias}", hint="choose another name, or use that one")


def _report(shell: CommandShell, ledger: Ledger, label: str, what: str, *, dry_run: bool, json: bool, head: str | None) -> None:
    """Say what was done, or would be."""
    if json:
        record = None if dry_run else ledger.session(label)
        facts = {"label": label, "status": record.status if record else None, "head": head}
        shell.console.json({"schema": 1, "dry_run": dry_run, "session": facts})
    else:
        shell.console.message(visible_line(f"{'Would ' if dry_run else 'Done: '}{what}."))
