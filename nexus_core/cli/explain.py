"""`nexus explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.ledger import LedgerUrl, find_session, open_session, session_option
from nexus_core.cli.options import Json, Profile, RequireTrusted  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.errors import UsageError, did_you_mean
from nexus_core.layers.explaining import Explanation
from nexus_core.layers.explaining import explain as find_explanations
from nexus_core.layers.loader import OWN_PROFILE
from nexus_core.text.visible import shortened
from nexus_core.values.source import source_name

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell
    from nexus_core.nexus import Nexus

app = typer.Typer()

_LONGEST_QUERY = 100
"""Characters of a query that an answer repeats."""

Query = Annotated[
    str,
    typer.Argument(metavar="X", help="A setting (provider.model), an MCP server, a file, or a piece of the prompt."),
]
Session = Annotated[str, session_option("Look into a session: X is a step, or a piece of what was said.")]


@app.command(epilog='\b\nExamples:\n  nexus explain provider.model\n  nexus explain "Never log a token"')
def explain(
    ctx: typer.Context,
    query: Query,
    *,
    session: Session = "",
    profile: Profile = OWN_PROFILE,
    ledger: LedgerUrl = "",
    json: Json = False,
    require_trusted: RequireTrusted = False,
) -> None:
    """Say where something comes from and what it overrode, or why it is not there.

    With --session, say which section or step of a session a sentence stands in, and why a step is not sent.
    """
    shell: CommandShell = ctx.obj
    if not query.strip():
        raise UsageError(
            "there is nothing to explain", hint="name a setting, an MCP server, a file, or a piece of the prompt"
        )
    with open_session(ctx, session, ledger) as nexus:
        found = _look_into(nexus, session, query) if session else []
        context = nexus.static_context() if profile == OWN_PROFILE else nexus.context(profile=profile)
        found = found or find_explanations(context, query)
    shell.review(context.loaded, require_trusted=require_trusted, warn=False)
    found = found or _default(query)
    if json:
        shell.console.json({"schema": 1, "explanations": [each._asdict() for each in found]})
    elif found:
        shell.console.table(_rows(found))
    if not found:
        named = repr(shortened(query, _LONGEST_QUERY))
        shell.console.message(f"Nothing in the prompt or the settings here matches {named}.{_nearest(query)}")
        raise typer.Exit(FINDINGS)


def _rows(found: list[Explanation]) -> list[tuple[str, ...]]:
    """Subject, place and remark; a file that is its own place is named once."""
    if all(each.place == each.subject for each in found):
        return [(each.subject, each.remark) for each in found]
    return [(each.subject, source_name(each.place) or "-", each.remark) for each in found]


def _look_into(nexus: Nexus, session: str, query: str) -> list[Explanation]:
    from nexus_core.session.explaining import explain_in_session  # noqa: PLC0415 - only with --session

    record = find_session(nexus.ledger, session)
    context = nexus.assemble(nexus.request(session=record.label), must_fit=False)
    return explain_in_session(nexus.ledger, record, context, query)


def _nearest(query: str) -> str:
    from nexus_core.config.keys import known_keys  # noqa: PLC0415 - only where nothing is found

    nearest = did_you_mean(query, known_keys())
    return f" {nearest.capitalize()}" if nearest else ""


def _default(query: str) -> list[Explanation]:
    from nexus_core.config.keys import default_of, known_keys  # noqa: PLC0415 - only where nothing else is found

    if query not in known_keys():
        return []
    return [Explanation(query, "", f"not set; the default is {default_of(query)!r}")]
