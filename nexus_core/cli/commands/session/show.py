"""`nexus session show`: the newest turns of a session, or one step."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from json import dumps
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nexus_core.cli.commands.session.overview import (
    TOKEN_MARKS,
    DamagedSession,
    collect_damage,
    read_overview,
    report_damage,
)
from nexus_core.cli.options import (
    ALL_ITEMS,
    FullOption,
    JsonOption,
    RawOption,
    WithSecretsOption,
    build_limit_option,
)
from nexus_core.cli.output import format_time
from nexus_core.cli.session_lookup import LedgerOption, SessionArgument, find_session, open_ledger_nexus
from nexus_core.cli.step_view import (
    StepLine,
    call_to_json,
    format_step,
    format_turn,
    format_usage,
    print_step_lines,
    step_to_json,
)
from nexus_core.errors import UsageError
from nexus_core.ledger.codec import StoredStep
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line
from nexus_core.text.secrets import redact, redact_json
from nexus_core.thread.lookup import find_step
from nexus_core.thread.state import opens_turn, read_newest_turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.cli.commands.session.overview import SessionOverview
    from nexus_core.cli.context import CliContext
    from nexus_core.nexus import Nexus
    from nexus_core.session.session import Session
    from nexus_core.thread.state import RecordedCall, Turn
    from nexus_core.types.ledger import Ledger, SessionRecord, Step

app = typer.Typer()

_DEFAULT_TURNS = 5

StepOption = Annotated[
    str,
    typer.Option(
        "--step", metavar="ID", help="One step, whole; with --full all that is known of it. The end of its id will do."
    ),
]
CompactedOption = Annotated[
    bool,
    typer.Option("--compacted", help="Show the steps that a compaction replaced; NAME may be its id."),
]
LimitOption = Annotated[int | None, build_limit_option(f"Show the N newest turns; {_DEFAULT_TURNS} by default.")]

EXAMPLES = """
\b
Examples:
  nexus session show auth-bug --step 4N6M1R --full
  nexus session show auth-bug --compacted
"""


@app.command(epilog=EXAMPLES)
def show(
    ctx: typer.Context,
    label: SessionArgument,
    *,
    step: StepOption = "",
    limit: LimitOption = None,
    compacted: CompactedOption = False,
    full: FullOption = False,
    raw: RawOption = False,
    with_secrets: WithSecretsOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Show the messages and tool calls of a session.

    The cost and the calls that wait for results are shown, too, and with --full the texts of memories. Keys, tokens and
    passwords are redacted. What is damaged, or not what was recorded, is named on standard error, and the exit code is
    3. If nothing is compacted, --compacted says so and exits with 0.
    """
    chosen = [("--step", step), ("--limit", limit is not None), ("--compacted", compacted)]
    given = [name for name, is_given in chosen if is_given]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} select different things", hint="leave out one of them")
    if compacted:
        from nexus_core.cli.commands.session.compact import show_compacted

        show_compacted(ctx, label, full=full, raw=raw, secrets=with_secrets, ledger=ledger, json=json)
        return
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        if step:
            show_step(cli, nexus, record, step, full=full, raw=raw, secrets=with_secrets, json=json)
        else:
            wanted = _DEFAULT_TURNS if limit is None else None if limit == ALL_ITEMS else limit
            show_turns(cli, nexus, record, wanted, full=full, raw=raw, secrets=with_secrets, json=json)


_EXPECTED_MISS_CAUSES = ("first", "short", "unknown")
"""Causes of a cache miss that no change of the request explains."""


def show_turns(
    cli: CliContext,
    nexus: Nexus,
    record: SessionRecord,
    wanted: int | None,
    *,
    full: bool,
    raw: bool,
    secrets: bool,
    json: bool,
) -> None:
    """Print a session and its newest turns.

    Args:
        cli: Where to print.
        nexus: Whose session it is.
        record: The session.
        wanted: How many turns; None for all.
        full: Whether long texts are printed whole.
        raw: Whether Markdown is printed as it is written.
        secrets: Whether keys, tokens and passwords are printed.
        json: Whether as JSON.
    """
    ledger, damaged = nexus.ledger, list[DamagedSession]()
    session, aliases = read_overview(ledger, record), ledger.aliases(record.label)
    # The newest is read in any case: it says what is waited for.
    turns = read_newest_turns(ledger, record, None if wanted is None else max(wanted, 1))
    pending: tuple[RecordedCall, ...] = ()
    with collect_damage(damaged, record.label):
        pending = turns[-1].pending if turns else ()
    shown = turns if wanted != 0 else []
    damaged += _find_changed_steps(record.label, (step for turn in shown for step in turn.steps))
    if json:
        about = {**session.to_json(), "aliases": aliases}
        content = {"turns": [_turn_to_json(turn, damaged, record.label) for turn in shown]}
        content |= {"pending": [call_to_json(call) for call in pending]}
        document = (content if secrets else redact_json(content)) | {"damaged": [each._asdict() for each in damaged]}
        cli.console.json({"schema": 1, "session": about, **document})
    else:
        for line in _format_heading(
            session, aliases, [str(call) if secrets else redact(str(call)).text for call in pending]
        ):
            cli.console.text(visible_line(cli.complete_commands(line)), wrap=True)
        earlier = session.turns - sum(opens_turn(turn.steps[0]) for turn in shown)
        if shown and earlier:  # in place of the earlier turns
            cli.console.text(f"({format_count(earlier, 'earlier turn')}; --limit all shows all)")
        unsent = turns[-1].steps[-1].payload.unsent_memories if turns else ()
        remark = partial(_explain_cache_miss, nexus.session(record.label))
        for turn in shown:
            cli.console.text("")
            with collect_damage(damaged, record.label):
                lines = format_turn(
                    turn, full=full, remark=remark, secrets=secrets, session=record.label, unsent=unsent
                )
                print_step_lines(cli.console, lines, markdown=not raw)
    report_damage(cli, [*dict.fromkeys(damaged)])


def show_step(
    cli: CliContext,
    nexus: Nexus,
    record: SessionRecord,
    name: str,
    *,
    full: bool,
    raw: bool,
    secrets: bool,
    json: bool,
) -> None:
    """Print the whole text of a step, and with `full` or as JSON its other fields."""
    step = _find_step(nexus.ledger, record, name)
    damaged = [*_find_changed_steps(record.label, (step,))]
    report = nexus.session(record.label).cache_report(step.id) if step.kind == "reply" else None
    if json:
        facts = step_to_json(step) if secrets else redact_json(step_to_json(step))
        if report is not None:
            facts["cache"] = asdict(report) | {"verdict": report.verdict}
        cli.console.json({"schema": 1, "step": facts, "damaged": [each._asdict() for each in damaged]})
    else:
        heading = f"Step {step.id}, {step.kind}, {format_time(step.created)}"
        print_step_lines(
            cli.console,
            [StepLine(heading, is_heading=True), *format_step(step, full=True, secrets=secrets)],
            markdown=not raw,
        )
        if report is not None:
            cli.console.text(visible_line(f"cache: {report}"))
        if full:
            cli.console.text("")
            cli.console.table([*_list_step_fields(step, secrets=secrets)])
        else:
            cli.console.message("(--full shows the tokens, digests and data of the step)", style="dim")
    report_damage(cli, damaged)


def _list_step_fields(step: Step, *, secrets: bool) -> Iterator[tuple[str, str]]:
    """Yield the other fields of a step that are not None."""
    facts: dict[str, Any] = step_to_json(step)
    facts = facts if secrets else redact_json(facts)
    fields = {name: facts[name] for name in facts if name not in ("id", "kind", "created", "data", "messages")}
    for name, value in (fields | {f"data.{name}": value for name, value in facts["data"].items()}).items():
        if value is not None:
            yield name, value if isinstance(value, str) else dumps(value, ensure_ascii=False)


def _find_changed_steps(label: str, steps: Iterable[Step]) -> Iterator[DamagedSession]:
    """Yield the steps whose content does not match its digest."""
    for step in steps:
        if isinstance(step, StoredStep) and not step.is_as_recorded:
            yield DamagedSession(label, f"step {step.id} is not what was recorded")


def _explain_cache_miss(session: Session, step: Step) -> str:
    """Return why a call missed the prompt cache; "" if there is nothing to explain."""
    blame = session.cache_report(step.id).blame if step.kind == "reply" else None
    return "" if blame is None or blame.cause in _EXPECTED_MISS_CAUSES else f"cache: {blame}"


def _format_heading(session: SessionOverview, aliases: list[str], pending: list[str]) -> list[str]:
    record = session.record
    tokens = f"{session.marked_tokens} token{'s' * (session.tokens != 1)}"
    facts = (format_count(session.turns, "turn"), tokens, session.state, session.model)
    where = f" in {session.directory}" if session.directory else ""
    lines = [f"{record.label}: {', '.join(filter(None, facts))}", f"changed {format_time(record.updated)}{where}"]
    if session.usage.total_tokens:
        lines.append(f"usage {format_usage(session.usage)}")
    lines += [f"{sign} {meaning}" for sign, meaning in TOKEN_MARKS.items() if sign in session.marked_tokens]
    if record.origin:
        lines.append(f"forked from {record.origin}")
    if aliases:
        lines.append(f"also called {', '.join(aliases)}")
    if pending:
        lines.append(f"waits for {', '.join(pending)}")
    return lines


def _turn_to_json(turn: Turn, damaged: list[DamagedSession], label: str) -> dict[str, object]:
    steps: list[dict[str, object]] = []
    for step in turn.steps:
        with collect_damage(damaged, label):
            steps.append(step_to_json(step))
    return {"id": turn.steps[-1].turn, "open": turn.is_open, "steps": steps}


def _find_step(ledger: Ledger, record: SessionRecord, name: str) -> Step:
    tip = None if record.tip is None else ledger.step(record.tip)
    step = None if tip is None else find_step(ledger, name, tip)
    if step is None:
        hint = f"`nexus session show {quote(record.label)}` names those of the newest turns"
        raise UsageError(f"there is no step {name!r} in session {record.label!r}", hint=hint)
    return step
