"""`nexus diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.ledger import LedgerUrl, ledger_url, open_nexus, session_labels
from nexus_core.cli.options import Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.errors import UsageError

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell

app = typer.Typer()

A = Annotated[
    str | None,
    typer.Argument(metavar="[A]", help="A step, session, file or model.", autocompletion=session_labels),
]
B = Annotated[
    str | None,
    typer.Argument(
        metavar="[B]",
        help="What to compare it with, the later one; by default, the last call of A.",
        autocompletion=session_labels,
    ),
]
Check = Annotated[
    bool,
    typer.Option("--check", help="Exit with 1 if they differ; without B, compare A, or this directory, with itself."),
]

EXAMPLES = """
\b
Examples:
  nexus diff auth-bug         the last two calls of a session: why the cache broke
  nexus diff --check          whether the request of this directory is the same every time
"""


@app.command(epilog=EXAMPLES)
def diff(
    ctx: typer.Context,
    a: A = None,
    b: B = None,
    *,
    check: Check = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Show where two requests first differ, which file or plugin is to blame, and how many tokens are billed again.

    A step stands for what was sent before that reply. A session or a model stands for what would be sent now; write
    model:NAME for an unknown model. A model next to a session is what that model would be sent in it. A file is what
    `nexus assemble` has printed, or a request of any API. Nothing is written.
    """
    from nexus_core.cli.request.compared import facts_of, print_compared  # noqa: PLC0415 - not for completion
    from nexus_core.cli.request.comparing import compare_again, compare_two  # noqa: PLC0415 - as above

    shell: CommandShell = ctx.obj
    with open_nexus(ctx, ledger) as nexus:
        if check and b is None:
            compared = compare_again(shell, nexus, a, ledger_url(shell.cwd, ledger))
        elif a is not None:
            compared = compare_two(shell, nexus, a, b)
        else:
            raise UsageError("there is nothing to compare", hint="nexus diff A B, nexus diff LABEL, nexus diff --check")
    if json:
        shell.console.json(facts_of(compared))
    else:
        print_compared(shell, compared)
    if check and compared.difference.first is not None:
        raise typer.Exit(FINDINGS)
