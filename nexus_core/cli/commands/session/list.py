"""`nexus session list`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.commands.session.overview import (
    TOKEN_MARKS,
    add_session_costs,
    print_price_date,
    read_all_overviews,
    report_damage,
)
from nexus_core.cli.options import JsonOption
from nexus_core.cli.output import compute_hit_rate, format_rate, format_time
from nexus_core.cli.session_lookup import EMPTY_LEDGER_HINT, LedgerOption, open_ledger_nexus
from nexus_core.errors import UsageError
from nexus_core.ledger.queries import find_newest_sessions
from nexus_core.ledger.url import without_secret
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.cli.commands.session.overview import SessionOverview
    from nexus_core.cli.context import CliContext
    from nexus_core.text.console import ConsoleStyle
    from nexus_core.types.ledger import SessionStatus

app = typer.Typer()

_HEADING = ("SESSION", "TURNS", "TOKENS", "CACHED", "CHANGED", "STATE", "MODEL", "DIRECTORY")
_COST_COLUMN = 4
_MAX_NAME_CHARACTERS = 60
"""Characters of a name beside other columns. On a terminal, columns of longer names are in the next line."""
_MAX_INDENT_LEVELS = 5
"""Maximum indentation of nested workers, in levels."""


@app.command(
    "list", epilog="\b\nExamples:\n  nexus session list --here -n 5\n  nexus session list --include-archived --json"
)
def list_sessions(
    ctx: typer.Context,
    *,
    everything: Annotated[bool, typer.Option("--include-archived", help="List archived sessions, too.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="List archived sessions only.")] = False,
    here: Annotated[bool, typer.Option("--here", help="List only sessions of this directory.")] = False,
    limit: Annotated[
        int | None,
        typer.Option("-n", "--limit", metavar="N", min=1, help="List only the N sessions that changed last."),
    ] = None,
    cost: Annotated[
        bool, typer.Option("--cost/--no-cost", help="Show costs, for which every step of the sessions is read.")
    ] = True,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """List sessions with their workers.

    Those that changed last come first. TOKENS are those of all messages, compacted or not. CACHED is the share of the
    input that came from the provider's cache. COST is that of all calls, if the prices of their models are known; that
    of a fork includes the calls before it was forked. Of thousands of sessions it takes the most time, see --no-cost. A
    session that is damaged is named on standard error; the others are listed, and the exit code is 3.
    """
    if everything and archived:
        raise UsageError("--include-archived and --archived were given", hint="leave out one of them")
    cli: CliContext = ctx.obj
    status: SessionStatus | None = "archived" if archived else None if everything else "active"
    with open_ledger_nexus(ctx, ledger) as nexus:
        url = without_secret(nexus.ledger.url)
        directory = str(nexus.cwd) if here else None
        records, left_out = find_newest_sessions(nexus.ledger, status=status, directory=directory, limit=limit)
        with cli.console.progress(len(records) * (1 + cost), "Listing", unit="") as progress:
            found, damaged = read_all_overviews(nexus.ledger, records, advance=progress.advance)
            found = add_session_costs(nexus, found, damaged, advance=progress.advance) if cost else found
        where = f" that work in {nexus.cwd}" if here else ""
    sessions = [*_nest_workers(found)]
    if json:
        listing = {
            "sessions": [session.to_json() for session, _ in sessions],
            "damaged": [each._asdict() for each in damaged],
        }
        cli.console.json({"schema": 1, "ledger": url, **listing, "left_out": left_out})
    elif sessions:
        _print_sessions(cli, sessions, with_costs=cost)
    elif not damaged:
        hint = "" if archived or here else f" {EMPTY_LEDGER_HINT}"
        cli.console.message(visible_line(f"No {'archived ' * archived}sessions{where} in {url}.{hint}"))
    if left_out and not json:
        cli.console.message(f"({format_count(left_out, 'more session')}; without -n, all are listed)", style="dim")
    report_damage(cli, damaged)


def _nest_workers(sessions: Sequence[SessionOverview]) -> Iterator[tuple[SessionOverview, int]]:
    """Yield sessions with their depth, each worker after the session that created it."""
    workers: dict[str, list[SessionOverview]] = defaultdict(list)
    labels = {session.record.label for session in sessions}
    for session in sessions:
        workers[session.maker if session.maker in labels else ""].append(session)
    stack = [(session, 0) for session in reversed(workers.pop("", []))]
    while stack or workers:
        if not stack:  # records edited by hand may form a cycle
            stack = [(session, 0) for session in workers.pop(next(iter(workers)))]
        session, depth = stack.pop()
        yield session, depth
        stack += [(worker, depth + 1) for worker in reversed(workers.pop(session.record.label, []))]


def _print_sessions(cli: CliContext, sessions: Sequence[tuple[SessionOverview, int]], *, with_costs: bool) -> None:
    styles: list[ConsoleStyle] = ["dim" if session.record.status == "archived" else "plain" for session, _ in sessions]
    heading = (*_HEADING[:_COST_COLUMN], "COST", *_HEADING[_COST_COLUMN:]) if with_costs else _HEADING
    rows = [heading, *(_build_row(session, depth, with_costs=with_costs) for session, depth in sessions)]
    state = heading.index("STATE")
    is_open = [session.state == "open" for session, _ in sessions]
    cli.console.table(
        rows,
        styles=["bold", *styles],
        cell_styles={(index, state): "yellow" for index, opened in enumerate(is_open, 1) if opened},
        right=range(1, 5 if with_costs else 4),
        longest_name=_MAX_NAME_CHARACTERS,
    )
    for sign, meaning in TOKEN_MARKS.items():
        if any(sign in session.marked_tokens for session, _ in sessions):
            cli.console.message(visible_line(cli.complete_commands(f"{sign} {meaning}")), style="dim")
    print_price_date(cli, [session.cost for session, _ in sessions])
    first_calls = [session.first_call for session, _ in sessions if session.first_call]
    if len({*first_calls}) < len(first_calls):
        note = "COST of forks includes the calls that they share; `nexus session stats` counts each once"
        cli.console.message(visible_line(cli.complete_commands(note)), style="dim")


def _build_row(session: SessionOverview, depth: int, *, with_costs: bool) -> tuple[str, ...]:
    return (
        "  " * min(depth, _MAX_INDENT_LEVELS) + session.record.label,
        f"{session.turns:,}",
        session.marked_tokens,
        format_rate(compute_hit_rate(session.usage)),
        *([session.shown_cost] if with_costs else []),
        format_time(session.record.updated),
        session.state,
        session.model or "-",
        session.directory or "-",
    )
