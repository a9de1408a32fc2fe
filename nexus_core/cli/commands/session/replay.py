"""`nexus session replay`."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.commands.diff_operand import find_newest_call
from nexus_core.cli.options import ApiOption, JsonOption
from nexus_core.cli.request_report import print_request, require_known_dialect
from nexus_core.cli.session_lookup import LedgerOption, list_session_names, match_session, open_ledger_nexus
from nexus_core.errors import UsageError
from nexus_core.thread.lookup import find_step

if TYPE_CHECKING:
    from nexus_core.cli.context import CliContext
    from nexus_core.types.ledger import Ledger

app = typer.Typer()

StepArgument = Annotated[
    str,
    typer.Argument(
        metavar="STEP",
        help="A reply, by the end of its id that `show` prints; a turn, for its last reply; a session, for its last.",
        autocompletion=list_session_names,
    ),
]

EXAMPLES = """
\b
Examples:
  nexus session replay auth-bug
  nexus session replay 4N6M1R --api anthropic > request.json
"""


@app.command(epilog=EXAMPLES)
def replay(
    ctx: typer.Context,
    step: StepArgument,
    *,
    dialect: ApiOption = "",
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Print the request that led to a reply.

    It is printed byte for byte from the ledger alone; files may have changed since.
    """
    require_known_dialect(ctx.obj, dialect)
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger) as nexus:
        settings = cli.load_readable(nexus).settings
        print_request(cli, nexus, settings, nexus.replay(_find_reply(nexus.ledger, step)), dialect, json=json)


def _find_reply(ledger: Ledger, given: str) -> str:
    """Return the step that is meant: of a session, its last reply.

    Raises:
        UsageError: Nothing that Nexus has sent in the session is answered.
    """
    record = ledger.session(given)
    if record is None and find_step(ledger, given) is None:
        record = match_session(ledger, given)
    if record is None:
        return given
    last = find_newest_call(ledger, record.tip)
    if last is None:
        name = quote(record.label)
        hint = f"`nexus assemble --session {name}` prints what would be sent, `nexus session show {name}` what was said"
        raise UsageError(f"Nexus has sent nothing in session {record.label!r} yet that was answered", hint=hint)
    return last.id
