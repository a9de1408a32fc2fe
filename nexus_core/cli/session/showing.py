"""`nexus session show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import Full, Label, LedgerUrl, WithSecrets, app, find_session, open_nexus
from nexus_core.errors import UsageError

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell

_TURNS = 5

Step = Annotated[
    str,
    typer.Option(
        "--step", metavar="ID", help="One step, whole; with --full all that is known of it. The end of its id will do."
    ),
]
Turns = Annotated[
    int | None,
    typer.Option("--turns", metavar="N", min=0, help=f"How many of the newest turns; {_TURNS} by default."),
]
Everything = Annotated[bool, typer.Option("--all", help="All turns.")]

EXAMPLES = """
\b
Examples:
  nexus session show auth-bug --turns 1
  nexus session show auth-bug --step 4N6M1R --full
"""


@app.command(epilog=EXAMPLES)
def show(
    ctx: typer.Context,
    label: Label,
    *,
    step: Step = "",
    turns: Turns = None,
    everything: Everything = False,
    full: Full = False,
    with_secrets: WithSecrets = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Show what was said in a session: who said what, which tools were called, what it cost, what it waits for.

    Keys, tokens and passwords are redacted. What is damaged, or not what was recorded, is named on standard error, and
    the exit code is 3.
    """
    if sum((bool(step), turns is not None, everything)) > 1:
        raise UsageError("--step, --turns and --all say different things", hint="give one of them")
    from nexus_core.cli.session.shown import show_step, show_turns  # noqa: PLC0415 - other commands do not need it

    shell: CommandShell = ctx.obj
    with open_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        if step:
            show_step(shell, nexus, record, step, full=full, secrets=with_secrets, json=json)
        else:
            wanted = None if everything else _TURNS if turns is None else turns
            show_turns(shell, nexus, record, wanted, full=full, secrets=with_secrets, json=json)
