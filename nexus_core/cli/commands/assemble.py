"""`nexus assemble`: the request that would be sent to a model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from nexus_core.cli.input import STANDARD_INPUT, note_unread_input, read_input_text
from nexus_core.cli.options import (
    ApiOption,
    JsonOption,
    ModeOption,
    PermissionsOption,
    RendererOption,
    RequireTrustedOption,
    RoleOption,
    SkillOption,
    TaskOption,
    ToolsOption,
    build_model_option,
)
from nexus_core.cli.session_lookup import (
    LedgerOption,
    build_session_option,
    find_session,
    get_session_names,
    open_session_nexus,
    resolve_session_name,
)
from nexus_core.errors import BudgetError, MessageError, UnknownNameError, UsageError, did_you_mean
from nexus_core.text.safety import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from nexus_core.cli.context import CliContext
    from nexus_core.nexus import Nexus
    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.request import Request

app = typer.Typer()

MessageArgument = Annotated[
    str | None,
    typer.Argument(metavar="[MESSAGE]", help="The user's message; - reads standard input."),
]
SessionOption = Annotated[str, build_session_option("The session whose history is sent.")]
ModelOption = Annotated[str, build_model_option("The model to ask; by default the session's, else provider.model.")]
TimezoneOption = Annotated[
    str, typer.Option("--timezone", metavar="ZONE", help="The user's time zone, such as Europe/Zurich.")
]
PlatformOption = Annotated[
    str, typer.Option("--platform", metavar="NAME", help="The platform the user is on, such as slack.")
]
ActionOption = Annotated[
    list[str] | None, typer.Option("--action", metavar="NAME", help="An action the platform offers.")
]
DataOption = Annotated[
    list[str] | None, typer.Option("--data", metavar="NAME=VALUE", help="A fact that a program adds to the message.")
]

EXAMPLES = """
\b
Examples:
  nexus assemble "Why does login fail?" --model gpt-4o
  nexus assemble --session auth-bug --api anthropic > request.json
"""


@app.command(epilog=EXAMPLES)
def assemble(
    ctx: typer.Context,
    message: MessageArgument = None,
    *,
    session: SessionOption = "",
    dialect: ApiOption = "",
    model: ModelOption = "",
    renderer: RendererOption = "",
    role: RoleOption = "",
    mode: ModeOption = "",
    permissions: PermissionsOption = None,
    task: TaskOption = "",
    skill: SkillOption = None,
    tools: ToolsOption = "",
    timezone: TimezoneOption = "",
    platform: PlatformOption = "",
    action: ActionOption = None,
    data: DataOption = None,
    ledger: LedgerOption = "",
    json: JsonOption = False,
    require_trusted: RequireTrustedOption = False,
) -> None:
    """Print the request that would be sent to a model.

    It has the system prompt, tools and messages. Nothing is written, and no model is called. --api prints the body of
    an API call. --json prints everything known about the request: where each piece comes from, what was left out and
    why, and what it takes. Exits with 1 if the request does not fit the model's window.
    """
    from nexus_core.cli.request_report import print_request, require_known_dialect

    cli: CliContext = ctx.obj
    require_known_dialect(cli, dialect)
    _require_timezone(timezone)
    if STANDARD_INPUT not in (message, tools):
        note_unread_input(cli, "nexus assemble -")
    options = {"session": session, "model": model, "renderer": renderer, "role": role, "mode": mode, "task": task}
    lists = {"permissions": tuple(permissions or ()), "skills": tuple(skill or ())}
    event = {"timezone": timezone, "platform": platform, "platform_actions": tuple(action or ())}
    asked = AssembleArguments(
        message, tools, {**options, **lists}, {**event, "hook_data": parse_data_pairs(data or ())}
    )
    with open_session_nexus(ctx, session, ledger) as nexus:
        if session:  # a message may begin a new one
            label = (
                resolve_session_name(nexus.ledger, session) if message else find_session(nexus.ledger, session).label
            )
            asked = asked._replace(options={**asked.options, "session": label})
        [(_, loaded)] = nexus.runtime.static_contexts.load([nexus.cwd])  # kept for the request, which needs it again
        cli.review(loaded, require_trusted=require_trusted)
        context = _assemble_request(cli, nexus, asked, json=json)
        print_request(cli, nexus, loaded.settings, context, dialect, json=json, active=loaded.active)


def _require_timezone(name: str) -> None:
    """Refuse a time zone that is neither a known name nor an offset in minutes.

    Raises:
        UnknownNameError: The time zone is unknown on this machine.
    """
    if name in ("", "UTC") or re.fullmatch(r"[+-]?[0-9]{1,9}", name):  # renderers check offsets
        return
    from zoneinfo import ZoneInfo, available_timezones

    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # not there, not a name, or a directory of zones
        if known := available_timezones():  # some systems have no database of zones
            raise UnknownNameError("time zone", name, known) from None


def _assemble_request(cli: CliContext, nexus: Nexus, asked: AssembleArguments, *, json: bool) -> AssembledContext:
    """Return the assembled request. If it does not fit, `--json` reports the reason as JSON too."""
    request = build_assemble_request(nexus, asked, cli.cwd)
    is_new = request.message is not None and would_start_session(nexus, request.session)
    if is_new:
        note = f"(there is no session {request.session!r} yet: this would begin it)"
        cli.console.message(visible_line(note), style="dim")
    try:
        return preview_session(nexus, request) if is_new else nexus.assemble(request, announce=False)
    except BudgetError as error:
        if json:
            pieces = [{"name": name, "tokens": tokens} for name, tokens in error.pieces]
            facts = {"needed": error.needed, "available": error.available, "parts": error.parts, "pieces": pieces}
            cli.console.json({"schema": 1, "error": {"what": error.what, "hint": error.hint, **facts}})
        raise


class AssembleArguments(NamedTuple):
    """Arguments of `nexus assemble`. An empty value was not given.

    Attributes:
        message: The user message, `-` for standard input, None for no message.
        tools: A file with the tools.
        options: Fields of the request: session, model, renderer, role, mode, permissions, task, skills.
        event: Metadata of the message: timezone, platform, platform_actions, hook_data.
    """

    message: str | None
    tools: str
    options: Mapping[str, Any]
    event: Mapping[str, Any]


def build_assemble_request(nexus: Nexus, asked: AssembleArguments, directory: Path) -> Request:
    """Return the request that is asked for.

    Args:
        nexus: Whose request it is.
        asked: The arguments.
        directory: Where names of files begin.

    Raises:
        UsageError: The message is empty, or an option describes a message that is not given.
        FileError: The tools or standard input cannot be read.
        MessageError: A tool has an unknown format.
    """
    message, tools = asked.message, asked.tools
    event = {name: value for name, value in asked.event.items() if value}
    if event and message is None:
        names = "--timezone, --platform, --action and --data"
        raise UsageError(f"{names} describe a message, and there is none", hint="nexus assemble MSG …")
    fields = {name: value for name, value in asked.options.items() if value} | event
    if message is not None:
        fields["message"] = _read_message(directory, message, is_event="hook_data" in event)
    if tools:
        from nexus_core.cli.input import read_tool_file

        fields["tools"] = read_tool_file(directory, tools)
    try:
        return nexus.request(**fields)
    except MessageError as error:
        if not error.path.startswith("tools"):
            raise
        raise MessageError(error.what, path=f"{tools}: {error.path}", hint=error.command or error.hint) from None


def would_start_session(nexus: Nexus, label: str) -> bool:
    """True if the request would create a session: no existing session matches the name."""
    if not label or nexus.ledger.session(label):
        return False
    return not did_you_mean(label, get_session_names(nexus.ledger))


def preview_session(nexus: Nexus, request: Request) -> AssembledContext:
    """Return the first request of a session that does not exist yet. Writes nothing.

    Args:
        nexus: Whose session it would be.
        request: The session, its options and the message.
    """
    from nexus_core.request.input import EVENT_FIELDS
    from nexus_core.session.options import get_request_options

    event = {name: value for name in EVENT_FIELDS if (value := getattr(request, name))}
    return nexus.session(request.session, **get_request_options(request, nexus.dialects)._asdict()).preview(
        request.message, **event
    )


def parse_data_pairs(given: Iterable[str]) -> dict[str, str]:
    """Return the values of `--data` by name.

    Raises:
        UsageError: One of them is not NAME=VALUE.
    """
    pairs = {}
    for each in given:
        name, found, value = each.partition("=")
        if not found or not name.strip():
            raise UsageError(f"--data takes NAME=VALUE, not {each!r}", hint="--data git=clean")
        pairs[name.strip()] = value
    return pairs


def _read_message(directory: Path, message: str, *, is_event: bool) -> str:
    text = message
    if message == STANDARD_INPUT:
        text = read_input_text(directory, STANDARD_INPUT)[1].removesuffix("\n")
    try:
        text.encode()
    except UnicodeEncodeError:  # what Python makes of an argument that is not UTF-8
        raise UsageError("the message is not UTF-8", hint="save it as UTF-8") from None
    if not text.strip() and not is_event:
        raise UsageError("the message is empty", hint="leave it out to see what would be sent without one")
    return text
