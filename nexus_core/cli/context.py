"""`nexus context`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import Json, RequireTrusted, model_names

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell

app = typer.Typer()


File = Annotated[
    str | None,
    typer.Argument(metavar="[FILE]", help="A transcript or a list of messages; - is standard input."),
]
ModelName = Annotated[
    str,
    typer.Option(
        "-m",
        "--model",
        metavar="MODEL",
        help="Whose tokens and whose window; by default the transcript's model, else provider.model.",
        autocompletion=model_names,
    ),
]
Top = Annotated[int, typer.Option("--top", metavar="N", min=0, help="How many tools and messages to list.")]
Everything = Annotated[bool, typer.Option("--all", help="Count also what was compacted away.")]

EXAMPLES = """
\b
Examples:
  nexus context                          the prompt of this directory, section by section
  nexus context session.jsonl -m gpt-4o  a transcript, counted for another model
"""


@app.command(epilog=EXAMPLES)
def context(
    ctx: typer.Context,
    file: File = None,
    *,
    model: ModelName = "",
    top: Top = 10,
    everything: Everything = False,
    json: Json = False,
    require_trusted: RequireTrusted = False,
) -> None:
    """Show where the tokens go: in a transcript by role, kind, tool and message, else in the prompt of this directory.

    FILE may be a session of Claude Code, Codex or pi, an export of ChatGPT, or messages or a request of any API.
    It is only read. Exits with 1 if it does not fit into the model's window.
    """
    shell: CommandShell = ctx.obj
    if file is None:
        from nexus_core.cli.context_prompt import show_prompt  # noqa: PLC0415 - either this or the next

        show_prompt(shell, model, json=json, require_trusted=require_trusted)
    else:
        from nexus_core.cli.context_file import show_file  # noqa: PLC0415 - as above

        show_file(shell, file, model, top=top, everything=everything, json=json)
