"""What `nexus session record` does and prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from nexus_core.cli.ledger import labels_in
from nexus_core.cli.session.given_items import read_answer, read_items, read_tools, read_words
from nexus_core.cli.session.items import Ask, Keep
from nexus_core.cli.session.keeping import give_up, keep
from nexus_core.cli.session.step_facts import call_facts
from nexus_core.errors import NexusError, UnknownNameError, UsageError
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core.cli.session.given_items import GivenItem
    from nexus_core.cli.session.items import Speaker
    from nexus_core.cli.session.keeping import Kept
    from nexus_core.cli.shell import CommandShell
    from nexus_core.dialects.finding import Dialects
    from nexus_core.nexus import Nexus
    from nexus_core.session.session import Session
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.finding import Finding
    from nexus_core.values.request import Mode


class Options(NamedTuple):
    """What was said on the command line."""

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


class Outcome(NamedTuple):
    """What became of it.

    Attributes:
        kept: What is recorded.
        request: What to send next, for whoever asked.
        findings: What to know about that.
        error: What went wrong after that.
    """

    kept: list[Kept]
    request: dict[str, Any] | None = None
    findings: tuple[Finding, ...] = ()
    error: NexusError | None = None


def record_given(shell: CommandShell, nexus: Nexus, options: Options) -> None:
    """Read everything, record it in order, and print what was recorded and what the session waits for.

    Raises:
        NexusError: Something went wrong; what was recorded before is printed.
    """
    try:
        given = _read(shell.cwd, options, nexus.dialects)
        tools = read_tools(shell.cwd, options.tools) if options.tools else None
        if (not given or not _begins(given[0])) and nexus.ledger.session(options.label) is None:
            raise UnknownNameError("session", options.label, labels_in(nexus.ledger))
        if not options.any_directory and any(isinstance(each.item, Ask) for each in given):
            _warn_if_moved(shell, nexus, options.label)
        mode = cast("Mode | None", options.mode or None)  # another word is refused by the session
        chosen = options.model or None
        session = nexus.session(options.label, model=chosen, tools=tools, mode=mode, any_directory=True)
    except NexusError as error:
        if options.json:
            shell.console.json({"schema": 1, "session": options.label, "recorded": [], "error": _told(error)})
        raise
    if options.dry_run:
        _print_plan(shell, options, given)
        return
    outcome = _record(session, nexus, given, options)
    for finding in outcome.findings:
        shell.console.warning(visible_line(str(finding)))
    if options.json:
        shell.console.json(_facts(session, outcome, options))
    else:
        _print(shell, session, outcome, len(given))
    if outcome.error is not None:
        raise outcome.error


def _warn_if_moved(shell: CommandShell, nexus: Nexus, label: str) -> None:
    """Say on standard error that a session goes on in another directory than before, as `-C` has it."""
    record = nexus.ledger.session(label)
    before = "" if record is None or record.tip is None else str(record.data.get("cwd") or "")
    if record is None or not before or before == str(nexus.cwd) or "inherits" in record.data:
        return
    what = f"session {label!r} was last used in {before}, and what was said there goes along to {nexus.cwd}"
    shell.console.warning(visible_line(f"{what}; --any-directory goes on without this warning"))


def _read(directory: Path, options: Options, dialects: Dialects) -> list[GivenItem]:
    if options.file is None:
        return []
    if options.speaker:
        given = read_words(directory, options.file, cast("Speaker", options.speaker))
    elif options.call:
        given = read_answer(directory, options.file, options.call, is_error=options.is_error)
    else:
        given = read_items(directory, options.file, dialects)
    first, last = given[0].item, given[-1].item
    if options.interrupt:
        if not isinstance(first, Ask):
            raise UsageError("--interrupt goes with a user's message", hint="the first item in FILE is not one")
        given[0] = given[0]._replace(item=first._replace(interrupt=True))
    if options.interrupted:
        if not isinstance(last, Keep) or last.what != "reply":
            raise UsageError("--interrupted goes with a reply", hint="the last item in FILE is not one")
        given[-1] = given[-1]._replace(item=last._replace(interrupted=True))
    return given


def _begins(given: GivenItem) -> bool:
    """Whether it may be the first thing in a session; anything else is meant for one that is there."""
    return isinstance(given.item, Ask) or (isinstance(given.item, Keep) and given.item.what == "turn")


def _record(session: Session, nexus: Nexus, given: list[GivenItem], options: Options) -> Outcome:
    kept: list[Kept] = []
    ledger = nexus.ledger
    try:
        if options.file is None and options.interrupted and (ended := give_up(session, ledger)):
            kept.append(ended)
        for each in given:
            try:
                kept.append(keep(session, ledger, each.item))
            except NexusError as error:
                error.where = ": ".join(filter(None, (each.where, error.where)))
                raise
        context = _next(session, kept) if options.api else None
        if context is None:
            return Outcome(kept)
        return Outcome(kept, context.to(options.api), (*context.findings, *_remarks(nexus, context, options.api)))
    except NexusError as error:
        return Outcome(kept, error=error)


def _next(session: Session, kept: list[Kept]) -> AssembledContext | None:
    """What to send next; None where nothing is, because no turn is open or calls wait."""
    if not session.is_open or session.pending:
        return None
    if kept and kept[-1].does_not_fit is not None:
        raise kept[-1].does_not_fit
    opened = kept[-1].context if kept else None
    return session.next() if opened is None else opened


def _remarks(nexus: Nexus, context: AssembledContext, api: str) -> Iterator[Finding]:
    from nexus_core.cli.request.remarks import remarks_on  # noqa: PLC0415 - only for whoever wants a request

    return remarks_on(nexus, nexus.load().settings, context, api, "--to")


def _facts(session: Session, outcome: Outcome, options: Options) -> dict[str, object]:
    said = (kept.recorded.text for kept in reversed(outcome.kept) if kept.recorded and kept.recorded.text)
    facts: dict[str, object] = {
        "schema": 1,
        "session": session.label,
        "recorded": [kept.facts() for kept in outcome.kept],
        "text": next(said, ""),
        "done": not session.is_open,
        "pending": [call_facts(call) for call in session.pending],
    }
    if options.api:
        facts["request"] = outcome.request
        facts["findings"] = [{"code": each.code, "message": each.message} for each in outcome.findings]
    if (error := outcome.error) is not None:
        facts["error"] = _told(error)
    return facts


def _told(error: NexusError) -> dict[str, str | None]:
    return {"what": error.what, "where": error.where, "hint": error.command or error.hint}


def _print(shell: CommandShell, session: Session, outcome: Outcome, given: int) -> None:
    for kept in outcome.kept:
        shell.console.text(visible_line(_line(kept)))
        if kept.does_not_fit is not None:
            shell.console.warning(f"it is recorded, but cannot be sent: {kept.does_not_fit}")
    if outcome.error is not None:
        shell.console.message(f"{len(outcome.kept)} of {given} recorded.")
    elif not session.is_open:
        shell.console.message("No turn is open.")
    else:
        waiting = ", ".join(map(str, session.pending))
        shell.console.message(visible_line(f"The turn waits for {waiting or 'a reply'}."))


def _line(kept: Kept) -> str:
    calls = ", ".join(map(str, kept.recorded.tool_calls)) if kept.recorded else ""
    notes = (f"calls {calls}" if calls else "", "recorded before" if kept.is_known else "")
    return "  ".join((kept.step.id, kept.step.kind, *filter(None, notes)))


def _print_plan(shell: CommandShell, options: Options, given: list[GivenItem]) -> None:
    plan = [{"what": _what(each), "where": each.where} for each in given]
    if options.json:
        shell.console.json({"schema": 1, "session": options.label, "would_record": plan})
        return
    for each in plan:
        shell.console.text(visible_line(f"{each['where']}: {each['what']}"))
    shell.console.message(f"Would record {len(plan)}; whether the session expects them was not checked.")


def _what(given: GivenItem) -> str:
    if isinstance(given.item, Ask):
        return "message"
    return given.item.what if isinstance(given.item, Keep) else "result"
