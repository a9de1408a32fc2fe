"""`nexus assemble`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.ledger import LedgerUrl, find_session, open_session, resolve_session_name, session_option
from nexus_core.cli.options import (
    Dialect,
    Json,
    ModeName,
    Permissions,
    RendererName,
    RequireTrusted,
    RoleName,
    Skills,
    Task,
    Tools,
    model_option,
)
from nexus_core.cli.request.asked import Asked, begin, read_pairs, request_of, would_begin
from nexus_core.errors import BudgetError
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell
    from nexus_core.nexus import Nexus
    from nexus_core.values.assembled import AssembledContext

app = typer.Typer()

Message = Annotated[
    str | None,
    typer.Argument(
        metavar="[MSG]", help="The user's message; - reads standard input. Without it, what would be sent now."
    ),
]
Session = Annotated[str, session_option("The session whose history is sent.")]
ModelName = Annotated[str, model_option("The model to ask; by default the session's, else provider.model.")]
Timezone = Annotated[
    str, typer.Option("--timezone", metavar="ZONE", help="The user's time zone, such as Europe/Zurich.")
]
Platform = Annotated[
    str, typer.Option("--platform", metavar="NAME", help="The platform the user is on, such as slack.")
]
Actions = Annotated[list[str] | None, typer.Option("--action", metavar="NAME", help="An action the platform offers.")]
Data = Annotated[
    list[str] | None, typer.Option("--data", metavar="NAME=VALUE", help="A fact that a program adds to the message.")
]

EXAMPLES = """
\b
Examples:
  nexus assemble "Why does login fail?" --model gpt-4o
  nexus assemble --session auth-bug --dialect anthropic > request.json
"""


@app.command(epilog=EXAMPLES)
def assemble(
    ctx: typer.Context,
    message: Message = None,
    *,
    session: Session = "",
    dialect: Dialect = "",
    model: ModelName = "",
    renderer: RendererName = "",
    role: RoleName = "",
    mode: ModeName = "",
    permissions: Permissions = None,
    task: Task = "",
    skill: Skills = None,
    tools: Tools = "",
    timezone: Timezone = "",
    platform: Platform = "",
    action: Actions = None,
    data: Data = None,
    ledger: LedgerUrl = "",
    json: Json = False,
    require_trusted: RequireTrusted = False,
) -> None:
    """Print what would be sent to a model: system prompt, tools, messages. Nothing is written, and no model is called.

    --dialect prints the body of an API call. --json prints everything known about the request: where each piece comes
    from, what was left out and why, and what it takes. Exits with 1 if the request does not fit the model's window.
    """
    from nexus_core.cli.request.shown import print_request, require_dialect  # noqa: PLC0415 - not for completion

    shell: CommandShell = ctx.obj
    require_dialect(shell, dialect)
    said = {"session": session, "model": model, "renderer": renderer, "role": role, "mode": mode, "task": task}
    lists = {"permissions": tuple(permissions or ()), "skills": tuple(skill or ())}
    occasion = {"timezone": timezone, "platform": platform, "platform_actions": tuple(action or ())}
    asked = Asked(message, tools, {**said, **lists}, {**occasion, "hook_data": read_pairs(data or ())})
    with open_session(ctx, session, ledger) as nexus:
        if session:  # a message may begin a new one
            label = (
                resolve_session_name(nexus.ledger, session) if message else find_session(nexus.ledger, session).label
            )
            asked = asked._replace(circumstances={**asked.circumstances, "session": label})
        loaded = nexus.load()
        shell.review(loaded, require_trusted=require_trusted)
        context = _assembled(shell, nexus, asked, json=json)
        print_request(shell, nexus, loaded.settings, context, dialect, json=json, active=loaded.active)


def _assembled(shell: CommandShell, nexus: Nexus, asked: Asked, *, json: bool) -> AssembledContext:
    """What was asked for; where it does not fit, `--json` says why in JSON too."""
    request = request_of(nexus, asked, shell.cwd)
    is_new = request.message is not None and would_begin(nexus, request.session)
    if is_new:
        told = f"(there is no session {request.session!r} yet: this would begin it)"
        shell.console.message(visible_line(told), style="dim")
    try:
        return begin(nexus, request) if is_new else nexus.assemble(request, announce=False)
    except BudgetError as error:
        if json:
            pieces = [{"name": name, "tokens": tokens} for name, tokens in error.pieces]
            facts = {"needed": error.needed, "available": error.available, "parts": error.parts, "pieces": pieces}
            shell.console.json({"schema": 1, "error": {"what": error.what, "hint": error.hint, **facts}})
        raise
