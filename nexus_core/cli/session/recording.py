"""`nexus session record`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import DryRun, Json, Tools, dialect_names, model_option
from nexus_core.cli.session.group import Label, LedgerUrl, app, open_session
from nexus_core.errors import UnknownNameError, UsageError
from nexus_core.values.request import MODES

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell

_SPEAKERS = ("user", "assistant")

File = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE]", help="What to record; - is standard input. Without it, only print where the session stands."
    ),
]
As = Annotated[
    str,
    typer.Option(
        "--as", metavar="WHO", help="FILE is plain text, said by: user, assistant.", autocompletion=lambda: [*_SPEAKERS]
    ),
]
Call = Annotated[str, typer.Option("--call", metavar="CALL", help="FILE is the result of that call, by its key or id.")]
Failed = Annotated[bool, typer.Option("--error", help="With --call: the tool failed.")]
Interrupt = Annotated[bool, typer.Option("--interrupt", help="A user's message gives up a turn that is open.")]
Interrupted = Annotated[
    bool, typer.Option("--interrupted", help="The reply was cut off; without FILE, the open turn is given up.")
]
ModelName = Annotated[str, model_option("Whom the session asks from now on.")]
Driven = Annotated[
    str,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="How the agent is driven from now on: repl (by a person), server (by programs).",
        autocompletion=lambda: [*MODES],
    ),
]
To = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="API",
        help="With --json: the request to send next, for openai, responses, anthropic, gemini, neutral, or a plugin's.",
        autocompletion=dialect_names,
    ),
]

AnyDirectory = Annotated[
    bool, typer.Option("--any-directory", help="With -C: do not warn that the session was used elsewhere before.")
]

EXAMPLES = """
\b
Examples:
  echo 'Why does login fail?' | nexus session record auth-bug - --as user --json --to anthropic
  nexus session record auth-bug reply.json --json
"""


@app.command(epilog=EXAMPLES)
def record(
    ctx: typer.Context,
    label: Label,
    file: File = None,
    *,
    speaker: As = "",
    call: Call = "",
    failed: Failed = False,
    interrupt: Interrupt = False,
    interrupted: Interrupted = False,
    model: ModelName = "",
    tools: Tools = "",
    mode: Driven = "",
    to: To = "",
    any_directory: AnyDirectory = False,
    dry_run: DryRun = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Keep a session from a shell script or any language: record what was said, answered and brought.

    FILE is JSON: a reply of any API, results of tools, a message, an agent's result; several of them, one on each line.
    Everything is read before anything is recorded. --json says what was recorded, which calls wait, and with --to what
    to send next. docs/reference/session-commands.md has the whole contract.
    """
    from nexus_core.cli.session.recorded import Options, record_given  # noqa: PLC0415 - other commands do not need it

    _require_sense(file, speaker, call, failed=failed)
    _require_api(ctx.obj, to, json=json)
    options = Options(
        label=label,
        file=file,
        speaker=speaker,
        call=call,
        is_error=failed,
        interrupt=interrupt,
        interrupted=interrupted,
        model=model,
        tools=tools,
        mode=mode,
        api=to,
        any_directory=any_directory,
        dry_run=dry_run,
        json=json,
    )
    with open_session(ctx, label, ledger, writes=not dry_run, exact=True) as nexus:
        record_given(ctx.obj, nexus, options)


def _require_sense(file: str | None, speaker: str, call: str, *, failed: bool) -> None:
    if speaker and speaker not in _SPEAKERS:
        raise UnknownNameError("speaker", speaker, _SPEAKERS)
    if speaker and call:
        raise UsageError("--as and --call say different things about FILE", hint="leave out one of them")
    if (speaker or call) and file is None:
        raise UsageError("--as and --call need a FILE", hint="- is standard input")
    if failed and not call:
        raise UsageError("--error goes with --call", hint="name the call: --call CALL --error")


def _require_api(shell: CommandShell, to: str, *, json: bool) -> None:
    if to:
        shell.dialects().get(to)
        if not json:
            raise UsageError("--to prints the request as a part of JSON", hint="--to API --json")
