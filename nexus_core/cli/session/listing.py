"""`nexus session list`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import LedgerUrl, app, open_nexus
from nexus_core.cli.tables import right_aligned
from nexus_core.errors import UsageError
from nexus_core.history.ledger.opening import without_secret
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.cli.session.overview import Overview
    from nexus_core.cli.shell import CommandShell
    from nexus_core.text.console import Style
    from nexus_core.values.ledger import SessionStatus

_HEADING = ("SESSION", "TURNS", "TOKENS", "CACHED", "CHANGED", "STATE", "MODEL", "DIRECTORY")
_NUMBERS = range(1, 4)
_LONGEST_NAME = 60
"""Characters of a name that the other columns stand beside; on a terminal, they stand below a longer one."""
_DEEPEST = 5
"""Workers of workers of workers stand no farther to the right than that."""


@app.command("list", epilog="\b\nExamples:\n  nexus session list --here -n 5\n  nexus session list --all --json")
def list_sessions(
    ctx: typer.Context,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Archived sessions, too.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Only archived sessions.")] = False,
    here: Annotated[bool, typer.Option("--here", help="Only sessions that work in this directory.")] = False,
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", metavar="N", min=1, help="Only the N sessions that changed last.")
    ] = None,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """List sessions, those changed last first, and under each its workers.

    TOKENS are those of all messages, compacted or not. CACHED is the share of the input that came from the provider's
    cache. A session that is damaged is named on standard
    error; the others are listed, and the exit code is 3.
    """
    from nexus_core.cli.session.damage import tell_damage  # noqa: PLC0415 - other commands do not need it
    from nexus_core.cli.session.overview import look_over_all  # noqa: PLC0415 - as above

    if everything and archived:
        raise UsageError("--all and --archived were given", hint="leave out one of them")
    shell: CommandShell = ctx.obj
    status: SessionStatus | None = "archived" if archived else None if everything else "active"
    with open_nexus(ctx, ledger) as nexus:
        url = without_secret(nexus.ledger.url)
        records = nexus.ledger.sessions(status=status)
        if here:
            records = [record for record in records if record.data.get("cwd") == str(nexus.cwd)]
        left_out = 0 if limit is None else max(len(records) - limit, 0)
        found, damaged = look_over_all(nexus.ledger, records[:limit])
        where = f" that work in {nexus.cwd}" if here else ""
    sessions = [*_under_makers(found)]
    if json:
        told = {
            "sessions": [session.facts() for session, _ in sessions],
            "damaged": [each._asdict() for each in damaged],
        }
        shell.console.json({"schema": 1, "ledger": url, **told, "left_out": left_out})
    elif sessions:
        _print(shell, sessions)
    elif not damaged:
        shell.console.message(visible_line(f"No {'archived ' * archived}sessions{where} in {url}."))
    if left_out and not json:
        shell.console.message(f"({counted(left_out, 'more session')}; without -n, all are listed)", style="dim")
    tell_damage(shell, damaged)


def _under_makers(sessions: Sequence[Overview]) -> Iterator[tuple[Overview, int]]:
    """Sessions in their order, but for workers, which come behind those that made them; how deep each stands."""
    workers: dict[str, list[Overview]] = defaultdict(list)
    labels = {session.record.label for session in sessions}
    for session in sessions:
        workers[session.maker if session.maker in labels else ""].append(session)
    stack = [(session, 0) for session in reversed(workers.pop("", []))]
    while stack or workers:
        if not stack:  # whoever changed the records by hand can make each the worker of another
            stack = [(session, 0) for session in workers.pop(next(iter(workers)))]
        session, depth = stack.pop()
        yield session, depth
        stack += [(worker, depth + 1) for worker in reversed(workers.pop(session.record.label, []))]


def _print(shell: CommandShell, sessions: Sequence[tuple[Overview, int]]) -> None:
    styles: list[Style] = ["dim" if session.record.status == "archived" else "plain" for session, _ in sessions]
    rows = right_aligned([_HEADING, *(_row(session, depth) for session, depth in sessions)], _NUMBERS)
    shell.console.table(rows, styles=["bold", *styles], longest_name=_LONGEST_NAME)
    from nexus_core.cli.session.overview import TOKEN_MARKS  # noqa: PLC0415 - as above

    for sign, meaning in TOKEN_MARKS.items():
        if any(sign in session.marked_tokens for session, _ in sessions):
            shell.console.message(f"{sign} {meaning}", style="dim")


def _row(session: Overview, depth: int) -> tuple[str, ...]:
    from nexus_core.cli.session.overview import hit_rate, moment, percent  # noqa: PLC0415 - as above

    return (
        "  " * min(depth, _DEEPEST) + session.record.label,
        f"{session.turns:,}",
        session.marked_tokens,
        percent(hit_rate(session.usage)),
        moment(session.record.updated),
        session.state,
        session.model or "-",
        session.directory or "-",
    )
