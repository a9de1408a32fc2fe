"""`nexus session replay`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import Dialect, Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import LedgerUrl, app, open_nexus

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell

Step = Annotated[
    str,
    typer.Argument(
        metavar="STEP",
        help="A reply, by the id of its step or a part of that; or any step of a turn, for what was sent then.",
    ),
]

EXAMPLES = """
\b
Examples:
  nexus session replay 01KA3XJW5C0A9G2Q7V8T4N6M1R
  nexus session replay 01KA3XJW5C0A9G2Q7V8T4N6M1R --dialect anthropic > request.json
"""


@app.command(epilog=EXAMPLES)
def replay(
    ctx: typer.Context, step: Step, *, dialect: Dialect = "", ledger: LedgerUrl = "", json: Json = False
) -> None:
    """Print what was sent before a reply, byte for byte, from what is kept alone; files may have changed since."""
    from nexus_core.cli.request.shown import print_request, require_dialect  # noqa: PLC0415 - others do not need it

    require_dialect(dialect)
    shell: CommandShell = ctx.obj
    with open_nexus(ctx, ledger) as nexus:
        print_request(shell, nexus, nexus.load().settings, nexus.replay(step), dialect, json=json)
