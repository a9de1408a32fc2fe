"""`nexus session replay`."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.ledger import match_session, session_labels
from nexus_core.cli.options import Dialect, Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import LedgerUrl, app, open_nexus
from nexus_core.errors import UsageError

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell
    from nexus_core.values.ledger import Ledger

Step = Annotated[
    str,
    typer.Argument(
        metavar="STEP",
        help="A reply, by the end of its id that `show` prints; a turn, for its last reply; a session, for its last.",
        autocompletion=session_labels,
    ),
]

EXAMPLES = """
\b
Examples:
  nexus session replay auth-bug
  nexus session replay 4N6M1R --dialect anthropic > request.json
"""


@app.command(epilog=EXAMPLES)
def replay(
    ctx: typer.Context, step: Step, *, dialect: Dialect = "", ledger: LedgerUrl = "", json: Json = False
) -> None:
    """Print what was sent before a reply, byte for byte, from what is kept alone; files may have changed since."""
    from nexus_core.cli.request.shown import print_request, require_dialect  # noqa: PLC0415 - others do not need it

    require_dialect(ctx.obj, dialect)
    shell: CommandShell = ctx.obj
    with open_nexus(ctx, ledger) as nexus:
        print_request(shell, nexus, nexus.load().settings, nexus.replay(_reply(nexus.ledger, step)), dialect, json=json)


def _reply(ledger: Ledger, given: str) -> str:
    """The step that is meant: of a session, its last reply.

    Raises:
        UsageError: Nothing that Nexus has sent in the session is answered.
    """
    from nexus_core.cli.request.operands import newest_call  # noqa: PLC0415 - as above
    from nexus_core.session.steps.naming import find_named  # noqa: PLC0415 - as above

    record = ledger.session(given)
    if record is None and find_named(ledger, given) is None:
        record = match_session(ledger, given)
    if record is None:
        return given
    last = newest_call(ledger, record.tip)
    if last is None:
        name = quote(record.label)
        hint = f"`nexus assemble --session {name}` prints what would be sent, `nexus session show {name}` what was said"
        raise UsageError(f"Nexus has sent nothing in session {record.label!r} yet that was answered", hint=hint)
    return last.id
