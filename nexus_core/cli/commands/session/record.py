"""`nexus session record`: append messages, replies and tool results."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from nexus_core.cli.aliases import warn_old_name
from nexus_core.cli.commands.session.record_input import (
    CallResultItem,
    RecordItem,
    StepItem,
    UserMessageItem,
    read_item_file,
    read_result_file,
    read_text_file,
)
from nexus_core.cli.input import read_tool_file
from nexus_core.cli.options import DryRunOption, JsonOption, ToolsOption, build_model_option, list_dialect_names
from nexus_core.cli.session_lookup import LedgerOption, get_session_names, list_session_names, open_session_nexus
from nexus_core.cli.step_view import call_to_json, format_call_key
from nexus_core.dialects.neutral import message_to_json
from nexus_core.dialects.registry import BUILT_IN_DIALECTS
from nexus_core.errors import BudgetError, NexusError, TurnError, UnknownNameError, UsageError
from nexus_core.request.input import read_input
from nexus_core.text.safety import visible_line
from nexus_core.thread.cache import ThreadCache
from nexus_core.thread.state import Turn
from nexus_core.types.request import AGENT_MODES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core.cli.commands.session.record_input import LocatedItem, TextRole
    from nexus_core.cli.context import CliContext
    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.nexus import Nexus
    from nexus_core.session.session import Session
    from nexus_core.thread.state import RecordedCall, RecordedStep
    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.ledger import Ledger, Step
    from nexus_core.types.plugins import Finding
    from nexus_core.types.request import AgentMode

app = typer.Typer()

_TEXT_ROLES = ("user", "assistant")

WholeNameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The session, by its whole name; a new name begins one.", autocompletion=list_session_names
    ),
]
FileArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE]", help="What to record; - is standard input. Without it, only print the state of the session."
    ),
]
TextRoleOption = Annotated[
    str,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="Take FILE as plain text of this role: user or assistant.",
        autocompletion=lambda: [*_TEXT_ROLES],
    ),
]
CallOption = Annotated[
    str, typer.Option("--call", metavar="CALL", help="Take FILE as the result of this tool call, by key or id.")
]
ErrorOption = Annotated[bool, typer.Option("--error", help="The tool call failed; needs --call.")]
DiscardOption = Annotated[
    bool, typer.Option("--discard-open-turn", help="Discard the open turn; alone, or before a user's message.")
]
PartialOption = Annotated[bool, typer.Option("--partial", help="The reply was cut off.")]
OldInterruptOption = Annotated[bool, typer.Option("--interrupt", hidden=True)]
OldInterruptedOption = Annotated[bool, typer.Option("--interrupted", hidden=True)]
ModelOption = Annotated[str, build_model_option("Ask this model from now on.")]
SessionModeOption = Annotated[
    str,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="Say who drives the agent from now on: repl (a person) or server (programs).",
        autocompletion=lambda: [*AGENT_MODES],
    ),
]
RequestApiOption = Annotated[
    str,
    typer.Option(
        "--api",
        metavar="API",
        help="With --json, print the next request for this API.",
        autocompletion=list_dialect_names,
    ),
]

AnyDirectoryOption = Annotated[
    bool, typer.Option("--any-directory", help="With -C, do not warn that the session was used elsewhere before.")
]

EXAMPLES = """
\b
Examples:
  echo 'Why does login fail?' | nexus session record auth-bug - --role user --json --api anthropic
  nexus session record auth-bug reply.json --json
"""


@app.command(epilog=EXAMPLES)
def record(
    ctx: typer.Context,
    label: WholeNameArgument,
    file: FileArgument = None,
    *,
    speaker: TextRoleOption = "",
    call: CallOption = "",
    failed: ErrorOption = False,
    discard_open_turn: DiscardOption = False,
    partial: PartialOption = False,
    interrupt: OldInterruptOption = False,
    interrupted: OldInterruptedOption = False,
    model: ModelOption = "",
    tools: ToolsOption = "",
    mode: SessionModeOption = "",
    to: RequestApiOption = "",
    any_directory: AnyDirectoryOption = False,
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Append messages, replies and tool results to a session.

    A shell script or a program in any language can keep a session with it. FILE is JSON: a reply of any API, results of
    tools, a message, an agent's result; several of them, one on each line. Everything is read before anything is
    recorded. --json says what was recorded, which calls wait, and with --api what to send next.
    docs/reference/session-commands.md has the whole contract.
    """
    if interrupt:
        warn_old_name(ctx, "--interrupt", "--discard-open-turn")
    if interrupted:
        warn_old_name(ctx, "--interrupted", "--discard-open-turn" if file is None else "--partial")
    _check_options(file, speaker, call, failed=failed, partial=partial)
    _check_api_option(ctx.obj, to, json=json)
    options = RecordArguments(
        label=label,
        file=file,
        speaker=speaker,
        call=call,
        is_error=failed,
        interrupt=interrupt or discard_open_turn,
        interrupted=interrupted or partial or (discard_open_turn and file is None),
        model=model,
        tools=tools,
        mode=mode,
        api=to,
        any_directory=any_directory,
        dry_run=dry_run,
        json=json,
    )
    with open_session_nexus(ctx, label, ledger, writes=not dry_run, exact=True) as nexus:
        record_file(ctx.obj, nexus, options)


def _check_options(file: str | None, speaker: str, call: str, *, failed: bool, partial: bool) -> None:
    if speaker and speaker not in _TEXT_ROLES:
        raise UnknownNameError("role", speaker, _TEXT_ROLES)
    if speaker and call:
        raise UsageError("--role and --call say different things about FILE", hint="leave out one of them")
    if (speaker or call) and file is None:
        raise UsageError("--role and --call need a FILE", hint="- is standard input")
    if failed and not call:
        raise UsageError("--error goes with --call", hint="name the call: --call CALL --error")
    if partial and file is None:
        raise UsageError("--partial needs a FILE with a reply", hint="--discard-open-turn discards the open turn")


def _check_api_option(cli: CliContext, to: str, *, json: bool) -> None:
    if to:
        cli.dialects().get(to)
        if not json:
            raise UsageError("--api prints the request as a part of JSON", hint="--api API --json")


class RecordArguments(NamedTuple):
    """Arguments of `nexus session record`."""

    label: str
    file: str | None
    speaker: str
    call: str
    is_error: bool
    interrupt: bool
    interrupted: bool
    model: str
    tools: str
    mode: str
    api: str
    any_directory: bool
    dry_run: bool
    json: bool


class RecordOutcome(NamedTuple):
    """The steps that were recorded, and the next request.

    Attributes:
        kept: What is recorded.
        request: The next request body, if `--api` asked for one.
        findings: What to know about that.
        error: What went wrong after that.
    """

    kept: list[RecordedItem]
    request: dict[str, Any] | None = None
    findings: tuple[Finding, ...] = ()
    error: NexusError | None = None


def record_file(cli: CliContext, nexus: Nexus, options: RecordArguments) -> None:
    """Read everything, record it in order, and print what was recorded and what the session waits for.

    Raises:
        NexusError: Something went wrong; what was recorded before is printed.
    """
    try:
        given = _read_items(cli.cwd, options, nexus.dialects)
        tools = read_tool_file(cli.cwd, options.tools) if options.tools else None
        is_new = nexus.ledger.session(options.label) is None
        if is_new and (not given or not _can_start_session(given[0])):
            raise UnknownNameError("session", options.label, get_session_names(nexus.ledger))
        if not options.any_directory and any(isinstance(each.item, UserMessageItem) for each in given):
            _warn_if_moved(cli, nexus, options.label)
        mode = cast("AgentMode | None", options.mode or None)  # another word is refused by the session
        chosen = options.model or None
        session = nexus.session(options.label, model=chosen, tools=tools, mode=mode, any_directory=True)
    except NexusError as error:
        if options.json:
            cli.console.json(
                {"schema": 1, "session": options.label, "recorded": [], "error": _error_to_json(cli, error)}
            )
        raise
    if is_new:
        note = f"({'would begin' if options.dry_run else 'begins'} session {options.label!r})"
        cli.console.message(visible_line(note), style="dim")
    if options.dry_run:
        _print_plan(cli, options, given)
        return
    outcome = _record_items(session, nexus, given, options)
    for finding in outcome.findings:
        cli.console.warning(visible_line(str(finding)))
    if options.json:
        cli.console.json(_outcome_to_json(cli, session, outcome, options))
    else:
        _print_outcome(cli, session, outcome, len(given))
    if outcome.error is not None:
        raise outcome.error


def _warn_if_moved(cli: CliContext, nexus: Nexus, label: str) -> None:
    """Warn that `-C` moves a session to another directory."""
    record = nexus.ledger.session(label)
    before = "" if record is None or record.tip is None else record.payload.cwd or ""
    if record is None or not before or before == str(nexus.cwd) or record.payload.inherits is not None:
        return
    what = f"session {label!r} was last used in {before}, and what was said there goes along to {nexus.cwd}"
    cli.console.warning(visible_line(f"{what}; --any-directory goes on without this warning"))


def _read_items(directory: Path, options: RecordArguments, dialects: DialectRegistry) -> list[LocatedItem]:
    if options.file is None:
        return []
    if options.speaker:
        given = read_text_file(directory, options.file, cast("TextRole", options.speaker))
    elif options.call:
        given = read_result_file(directory, options.file, options.call, is_error=options.is_error)
    else:
        given = read_item_file(directory, options.file, dialects)
    first, last = given[0].item, given[-1].item
    if options.interrupt:
        if not isinstance(first, UserMessageItem):
            raise UsageError("--discard-open-turn goes with a user's message", hint="the first item in FILE is not one")
        given[0] = given[0]._replace(item=first._replace(interrupt=True))
    if options.interrupted:
        if not isinstance(last, StepItem) or last.what != "reply":
            raise UsageError("--partial goes with a reply", hint="the last item in FILE is not one")
        given[-1] = given[-1]._replace(item=last._replace(interrupted=True))
    return given


def _can_start_session(given: LocatedItem) -> bool:
    """True if an item may create a session. Other items need an existing one."""
    return isinstance(given.item, UserMessageItem) or (isinstance(given.item, StepItem) and given.item.what == "turn")


def _record_items(session: Session, nexus: Nexus, given: list[LocatedItem], options: RecordArguments) -> RecordOutcome:
    kept: list[RecordedItem] = []
    ledger = nexus.ledger
    try:
        if options.file is None and options.interrupted and (ended := interrupt_turn(session, ledger)):
            kept.append(ended)
        for each in given:
            try:
                kept.append(record_item(session, ledger, each.item))
            except NexusError as error:
                error.where = ": ".join(filter(None, (each.where, error.where)))
                raise
        context = _assemble_next_call(session, kept) if options.api else None
        if context is None:
            return RecordOutcome(kept)
        return RecordOutcome(
            kept, context.to(options.api), (*context.findings, *_list_call_warnings(nexus, context, options.api))
        )
    except NexusError as error:
        return RecordOutcome(kept, error=error)


def _assemble_next_call(session: Session, kept: list[RecordedItem]) -> AssembledContext | None:
    """Return the next request, or None if no turn is open or calls wait for results."""
    if not session.is_open or session.pending_calls:
        return None
    if kept and kept[-1].does_not_fit is not None:
        raise kept[-1].does_not_fit
    opened = kept[-1].context if kept else None
    return session.next() if opened is None else opened


def _list_call_warnings(nexus: Nexus, context: AssembledContext, api: str) -> Iterator[Finding]:
    from nexus_core.cli.request_report import find_api_warnings

    return find_api_warnings(nexus, nexus.load().settings, context, api)


def _outcome_to_json(
    cli: CliContext, session: Session, outcome: RecordOutcome, options: RecordArguments
) -> dict[str, object]:
    replies = (kept.recorded.text for kept in reversed(outcome.kept) if kept.recorded and kept.recorded.text)
    facts: dict[str, object] = {
        "schema": 1,
        "session": session.name,
        "recorded": [kept.to_json() for kept in outcome.kept],
        "text": next(replies, ""),
        "done": not session.is_open,
        "pending": [call_to_json(call) for call in session.pending_calls],
    }
    if options.api:
        facts["request"] = outcome.request
        facts["findings"] = [{"code": each.code, "message": each.message} for each in outcome.findings]
    if (error := outcome.error) is not None:
        facts["error"] = _error_to_json(cli, error)
    return facts


def _error_to_json(cli: CliContext, error: NexusError) -> dict[str, str | None]:
    hint = error.command or error.hint
    return {"what": error.what, "where": error.where, "hint": hint and cli.complete_commands(hint)}


def _print_outcome(cli: CliContext, session: Session, outcome: RecordOutcome, given: int) -> None:
    for kept in outcome.kept:
        cli.console.text(visible_line(_format_recorded(kept)))
        if kept.does_not_fit is not None:
            cli.console.warning(f"it is recorded, but cannot be sent: {kept.does_not_fit}")
    if outcome.error is not None:
        cli.console.message(f"{len(outcome.kept)} of {given} recorded.")
    elif not session.is_open:
        cli.console.message("No turn is open.")
    else:
        waiting = ", ".join(map(str, session.pending_calls))
        cli.console.message(visible_line(f"The turn waits for {waiting or 'a reply'}."))


def _format_recorded(kept: RecordedItem) -> str:
    calls = ", ".join(map(str, kept.recorded.tool_calls)) if kept.recorded else ""
    notes = (f"calls {calls}" if calls else "", "recorded before" if kept.is_known else "")
    return "  ".join((kept.step.id, kept.step.kind, *filter(None, notes)))


def _print_plan(cli: CliContext, options: RecordArguments, given: list[LocatedItem]) -> None:
    plan = [{"what": _get_item_kind(each), "where": each.where} for each in given]
    if options.json:
        cli.console.json({"schema": 1, "session": options.label, "would_record": plan})
        return
    for each in plan:
        cli.console.text(visible_line(f"{each['where']}: {each['what']}"))
    cli.console.message(f"Would record {len(plan)}; whether the session expects them was not checked.")


def _get_item_kind(given: LocatedItem) -> str:
    if isinstance(given.item, UserMessageItem):
        return "message"
    return given.item.what if isinstance(given.item, StepItem) else "result"


class RecordedItem(NamedTuple):
    """Something that is recorded.

    Attributes:
        step: The step that has it.
        recorded: What the session says of it; None for a message that opened a turn.
        is_known: Whether it was recorded before.
        does_not_fit: Why nothing can be sent now, though it is recorded.
        context: What is to be sent now, where a message has just opened a turn.
    """

    step: Step
    recorded: RecordedStep | None = None
    is_known: bool = False
    does_not_fit: BudgetError | None = None
    context: AssembledContext | None = None

    def to_json(self) -> dict[str, object]:
        """Return all of it, for JSON."""
        reply = self.recorded
        return {
            "step": self.step.id,
            "turn": self.step.turn,
            "kind": self.step.kind,
            "text": reply.text if reply else "",
            "tool_calls": [call_to_json(call) for call in reply.tool_calls] if reply else [],
            "usage": asdict(reply.usage) if reply and reply.usage else None,
            "done": self.step.closes,
            "duplicate": self.is_known,
        }


def record_item(session: Session, ledger: Ledger, item: RecordItem) -> RecordedItem:
    """Record one thing.

    Raises:
        TurnError: The session does not expect it now.
        ConflictError: Another writer has appended to the session.
    """
    try:
        if isinstance(item, UserMessageItem):
            return _record_message(session, ledger, item)
        given = item.given if isinstance(item, StepItem) else _build_result(session, ledger, item)
        interrupted = item.interrupted if isinstance(item, StepItem) else None
        return _build_recorded_item(ledger, session.record(given, interrupted=interrupted))
    except TurnError as error:
        error.command = _suggest_next_input(session, ledger) or error.command
        raise


def interrupt_turn(session: Session, ledger: Ledger) -> RecordedItem | None:
    """End the turn that is open, if there is one."""
    step = session.interrupt()
    return None if step is None else _build_recorded_item(ledger, step)


def _record_message(session: Session, ledger: Ledger, item: UserMessageItem) -> RecordedItem:
    opened = _find_open_step(session, ledger)
    # A script that was killed before it heard that its message is recorded says it again.
    if opened is not None and not item.interrupt and _has_message(opened, item.message):
        return RecordedItem(opened, is_known=True)
    does_not_fit = context = None
    try:
        context = session.ask(item.message, interrupt=item.interrupt, **item.event)
    except BudgetError as error:
        does_not_fit = error
    opened = _find_open_step(session, ledger)
    assert opened is not None  # noqa: S101 - it has just been opened
    return RecordedItem(opened, does_not_fit=does_not_fit, context=context)


def _find_open_step(session: Session, ledger: Ledger) -> Step | None:
    record = ledger.session(session.name)
    return None if record is None or record.open_turn is None else ledger.step(record.open_turn)


def _has_message(step: Step, message: object) -> bool:
    user_message = read_input(message, {}, BUILT_IN_DIALECTS).message  # read already, or plain words
    return [message_to_json(each) for each in step.messages] == [message_to_json(user_message)]


def _build_result(session: Session, ledger: Ledger, item: CallResultItem) -> Any:  # noqa: ANN401 - what `record` takes
    return _find_call(session, ledger, item.call).result(item.content, is_error=item.is_error)


def _find_call(session: Session, ledger: Ledger, name: str) -> RecordedCall:
    """Return the call of that id or key, in the turn at the end of the session."""
    from nexus_core.thread.state import RecordedCall

    record = ledger.session(session.name)
    if record is None or record.tip is None:
        raise _no_pending_call_error()
    turn = Turn(ThreadCache(ledger).read_turn(record.tip))
    found = [RecordedCall(key, call) for key, call in turn.calls.items() if name in (call.id, format_call_key(key))]
    if len(found) > 1:
        found = [call for call in found if call.key not in turn.answered] or found[-1:]
    if len(found) > 1:
        keys = ", ".join(format_call_key(call.key) for call in found)
        raise UsageError(f"{len(found)} calls have the id {name!r}", hint=f"name one by its key: {keys}")
    if not found and not turn.pending:
        raise _no_pending_call_error()
    if not found:
        raise UnknownNameError("call", name, [call.id or format_call_key(call.key) for call in turn.pending])
    return found[0]


def _no_pending_call_error() -> TurnError:
    return TurnError("no call waits for a result", command="record the reply first that asks for tools")


def _build_recorded_item(ledger: Ledger, recorded: RecordedStep) -> RecordedItem:
    step = ledger.step(recorded.id)
    assert step is not None  # noqa: S101 - it has just been recorded
    return RecordedItem(step, recorded, recorded.duplicate)


def _suggest_next_input(session: Session, ledger: Ledger) -> str:
    """Return the options that record what the session waits for."""
    if not session.is_open:
        record = ledger.session(session.name)
        return "" if record and record.status == "archived" else "a user message opens a turn: FILE with --role user"
    waiting = [f"{call} --call {format_call_key(call.key)}" for call in session.pending_calls]
    if waiting:
        return (
            f"these results are missing: {', '.join(waiting)}; a user's message with --discard-open-turn gives them up"
        )
    return "a reply is expected; a user's message with --discard-open-turn gives the turn up"
