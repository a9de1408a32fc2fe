"""`nexus assemble`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.ledger import LedgerUrl, open_session, session_labels
from nexus_core.cli.options import Json, RequireTrusted, dialect_names, model_names, renderer_names, role_names
from nexus_core.cli.request.asked import begin, read_pairs, request_of, would_begin
from nexus_core.errors import BudgetError
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell

app = typer.Typer()

Message = Annotated[
    str | None,
    typer.Argument(metavar="[MSG]", help="What is said; - is standard input. Without it, what would be sent now."),
]
Session = Annotated[
    str, typer.Option("--session", metavar="LABEL", help="Whose history to send.", autocompletion=session_labels)
]
Dialect = Annotated[
    str,
    typer.Option(
        "--dialect",
        metavar="API",
        help="Print the body of that API's call: openai, responses, anthropic, gemini or neutral.",
        autocompletion=dialect_names,
    ),
]
ModelName = Annotated[
    str,
    typer.Option(
        "-m",
        "--model",
        metavar="MODEL",
        help="Whom to ask; the session's by default, else provider.model.",
        autocompletion=model_names,
    ),
]
RendererName = Annotated[
    str,
    typer.Option(
        "--renderer", metavar="NAME", help="What puts it into words: labelled, tagged.", autocompletion=renderer_names
    ),
]
Role = Annotated[
    str,
    typer.Option(
        "--role", metavar="NAME", help="What part the agent plays: unified, manager, worker.", autocompletion=role_names
    ),
]
Task = Annotated[str, typer.Option("--task", metavar="TEXT", help="What a worker is to do.")]
Skills = Annotated[
    list[str] | None,
    typer.Option("--skill", metavar="NAME", help="A skill that a worker is told about; all by default."),
]
Tools = Annotated[str, typer.Option("--tools", metavar="FILE", help="A list of tools, in the shape of any API.")]
Timezone = Annotated[
    str, typer.Option("--timezone", metavar="ZONE", help="Where the user's clock stands: Europe/Zurich.")
]
Platform = Annotated[str, typer.Option("--platform", metavar="NAME", help="Where the user is: slack.")]
Actions = Annotated[
    list[str] | None, typer.Option("--action", metavar="NAME", help="Something that can be done on the platform.")
]
Data = Annotated[
    list[str] | None, typer.Option("--data", metavar="NAME=VALUE", help="What a program has to say about the message.")
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
    role: Role = "",
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
    """Print what would go to a model: system prompt, tools, messages. Nothing is written, and no model is called.

    --dialect prints the body of an API's call; --json everything that is known about it: where each piece comes from,
    what was left out and why, what it takes. Exits with 1 if it does not fit into the model's window.
    """
    from nexus_core.cli.request.shown import print_request, require_dialect  # noqa: PLC0415 - not for completion

    require_dialect(dialect)
    shell: CommandShell = ctx.obj
    circumstances = {
        "session": session,
        "model": model,
        "renderer": renderer,
        "role": role,
        "task": task,
        "skills": tuple(skill or ()),
    }
    occasion = {
        "timezone": timezone,
        "platform": platform,
        "platform_actions": tuple(action or ()),
        "hook_data": read_pairs(data or ()),
    }
    with open_session(ctx, session, ledger) as nexus:
        loaded = nexus.load()
        shell.review(loaded, require_trusted=require_trusted)
        is_new = message is not None and would_begin(nexus, session)
        if is_new:
            shell.console.message(
                visible_line(f"(there is no session {session!r} yet: this would begin it)"), style="dim"
            )
        request = request_of(nexus, message, circumstances, occasion, tools=tools, directory=shell.cwd)
        try:
            context = begin(nexus, request) if is_new else nexus.assemble(request)
        except BudgetError as error:
            if json:
                facts = {"needed": error.needed, "available": error.available, "parts": error.parts}
                shell.console.json({"schema": 1, "error": {"what": error.what, "hint": error.hint, **facts}})
            raise
        print_request(shell, nexus, loaded.settings, context, dialect, json=json)
