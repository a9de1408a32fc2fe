"""`nexus session list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.exits import CONFIGURATION
from nexus_core.cli.options import Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import LedgerUrl, app, open_nexus
from nexus_core.cli.session.tables import right_aligned
from nexus_core.errors import UsageError
from nexus_core.history.ledger.opening import without_secret
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from nexus_core.cli.session.overview import Overview
    from nexus_core.cli.shell import CommandShell
    from nexus_core.text.console import Style
    from nexus_core.values.ledger import SessionStatus

_HEADING = ("SESSION", "TURNS", "TOKENS", "CACHED", "CHANGED", "STATE", "MODEL", "DIRECTORY")
_NUMBERS = range(1, 4)
_LONGEST_NAME = 60


@app.command("list", epilog="\b\nExamples:\n  nexus session list\n  nexus session list --all --json")
def list_sessions(
    ctx: typer.Context,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Those that are archived, too.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Only those that are archived.")] = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """List sessions, those changed last first.

    CACHED is the share of the input that came from the provider's cache. A session that is damaged is named on standard
    error; the others are listed, and the exit code is 3.
    """
    from nexus_core.cli.session.overview import look_over_all  # noqa: PLC0415 - other commands do not need it

    if everything and archived:
        raise UsageError("--all and --archived were given", hint="leave out one of them")
    shell: CommandShell = ctx.obj
    status: SessionStatus | None = "archived" if archived else None if everything else "active"
    with open_nexus(ctx, ledger) as nexus:
        url = without_secret(nexus.ledger.url)
        sessions, damaged = look_over_all(nexus.ledger, nexus.ledger.sessions(status=status))
    if json:
        told = {"sessions": [session.facts() for session in sessions], "damaged": [each._asdict() for each in damaged]}
        shell.console.json({"schema": 1, "ledger": url, **told})
    elif sessions:
        _print(shell, sessions)
    elif not damaged:
        shell.console.message(f"No {'archived ' * archived}sessions in {url}.")
    for each in damaged:
        shell.console.error(visible_line(f"session {each.label!r} is damaged: {each.what}"))
    if damaged:
        shell.console.message("  `nexus session verify` says what is wrong, `nexus session repair` saves what is whole")
        raise typer.Exit(CONFIGURATION)


def _print(shell: CommandShell, sessions: list[Overview]) -> None:
    styles: list[Style] = ["dim" if session.record.status == "archived" else "plain" for session in sessions]
    rows = right_aligned([_HEADING, *map(_row, sessions)], _NUMBERS)
    shell.console.table(rows, styles=["bold", *styles])


def _row(session: Overview) -> tuple[str, ...]:
    from nexus_core.cli.session.overview import hit_rate, moment, percent  # noqa: PLC0415 - as above

    label = session.record.label
    return (
        label if len(label) <= _LONGEST_NAME else f"{label[: _LONGEST_NAME - 1]}…",
        f"{session.turns:,}",
        f"{session.tokens:,}",
        percent(hit_rate(session.usage)),
        moment(session.record.updated),
        session.state,
        session.model or "-",
        session.directory or "-",
    )
