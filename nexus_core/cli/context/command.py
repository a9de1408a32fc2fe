"""`nexus context`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nexus_core.cli.ledger import LedgerUrl, session_option
from nexus_core.cli.options import Json, Profile, RequireTrusted, model_option
from nexus_core.errors import UsageError
from nexus_core.layers.loader import OWN_PROFILE

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell

app = typer.Typer()

File = Annotated[
    str | None,
    typer.Argument(metavar="[FILE]", help="A transcript or a list of messages; - reads standard input."),
]
ModelName = Annotated[str, model_option("The model to count for; by default the transcript's, else provider.model.")]
Top = Annotated[int, typer.Option("--top", metavar="N", min=0, help="How many tools and messages to list.")]
Session = Annotated[str, session_option("Show what a session would send now, instead of a file.")]
Tree = Annotated[
    bool, typer.Option("--tree", help="A tree from zones down to sections, instead of bars; not for a FILE.")
]
Everything = Annotated[bool, typer.Option("--all", help="Also count what was compacted away.")]

EXAMPLES = """
\b
Examples:
  nexus context                          what goes to a model here, by zone, kind, layer and section
  nexus context session.jsonl -m gpt-4o  a transcript, counted for another model
"""


class Wanted(NamedTuple):
    """What was said on the command line about a request."""

    model: str
    session: str
    ledger: str
    profile: str
    top: int
    tree: bool
    json: bool
    require_trusted: bool


@app.command(epilog=EXAMPLES)
def context(
    ctx: typer.Context,
    file: File = None,
    *,
    session: Session = "",
    model: ModelName = "",
    top: Top = 10,
    tree: Tree = False,
    everything: Everything = False,
    profile: Profile = OWN_PROFILE,
    ledger: LedgerUrl = "",
    json: Json = False,
    require_trusted: RequireTrusted = False,
) -> None:
    """Show where the tokens go: in a transcript, or in what would be sent to a model here.

    FILE may be a session of Claude Code, Codex or pi, a ChatGPT export, or the messages or request of any API. It is
    only read, and shown by role, kind, tool and message. Without FILE, the request of this directory or of a session
    is shown by zone, kind, layer, section and tool, with the free space and what was left out. Exits with 1 if it does
    not fit the model's window.
    """
    shell: CommandShell = ctx.obj
    wanted = Wanted(
        model=model,
        session=session,
        ledger=ledger,
        profile=profile,
        top=top,
        tree=tree,
        json=json,
        require_trusted=require_trusted,
    )
    _require_sense(file, wanted, everything=everything)
    if file is None:
        from nexus_core.cli.context.request import show_request  # noqa: PLC0415 - either this or the next

        show_request(ctx, wanted)
    else:
        from nexus_core.cli.context.transcript import show_file  # noqa: PLC0415 - as above

        show_file(shell, file, model, top=top, everything=everything, json=json)


def _require_sense(file: str | None, wanted: Wanted, *, everything: bool) -> None:
    is_foreign = wanted.profile != OWN_PROFILE
    if file is None and everything:
        raise UsageError("--all needs a transcript", hint="name the FILE")
    if file is None and wanted.session and is_foreign:
        raise UsageError("no other agent reads a session of Nexus", hint="leave out --session or --as")
    if file is not None and (wanted.session or wanted.tree or is_foreign or wanted.ledger):
        raise UsageError(
            "--session, --tree, --as and --ledger cannot be used with a FILE", hint="leave out FILE, or them"
        )
