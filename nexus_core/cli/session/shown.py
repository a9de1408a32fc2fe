"""What `nexus session show` prints."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from json import dumps
from shlex import quote
from typing import TYPE_CHECKING, Any

from nexus_core.cli.session.damage import Damaged, noting, tell_damage
from nexus_core.cli.session.overview import TOKEN_MARKS, look_over, moment
from nexus_core.cli.session.reading import newest_turns
from nexus_core.cli.session.step_facts import call_facts, step_facts
from nexus_core.cli.session.telling import Line, cost, print_lines, tell_step, tell_turn
from nexus_core.errors import UsageError
from nexus_core.history.ledger.stored import StoredStep
from nexus_core.session.steps.naming import find_named
from nexus_core.session.steps.numbering import opens_turn
from nexus_core.text.console import counted
from nexus_core.text.redaction import redact, redact_json
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.cli.session.overview import Overview
    from nexus_core.cli.shell import CommandShell
    from nexus_core.nexus import Nexus
    from nexus_core.session.session import Session
    from nexus_core.session.steps.recorded import RecordedCall
    from nexus_core.session.steps.turns import Turn
    from nexus_core.values.ledger import Ledger, SessionRecord, Step


_NO_NEWS = ("first", "short", "unknown")
"""Why a call finds nothing in a cache although nobody has changed anything."""


def show_turns(
    shell: CommandShell,
    nexus: Nexus,
    record: SessionRecord,
    wanted: int | None,
    *,
    full: bool,
    secrets: bool,
    json: bool,
) -> None:
    """Print a session and its newest turns.

    Args:
        shell: Where to print.
        nexus: Whose session it is.
        record: The session.
        wanted: How many turns; None for all.
        full: Whether long texts are printed whole.
        secrets: Whether keys, tokens and passwords are printed.
        json: Whether as JSON.
    """
    ledger, damaged = nexus.ledger, list[Damaged]()
    session, aliases = look_over(ledger, record), ledger.aliases(record.label)
    # The newest is read in any case: it says what is waited for.
    turns = newest_turns(ledger, record, None if wanted is None else max(wanted, 1))
    pending: tuple[RecordedCall, ...] = ()
    with noting(damaged, record.label):
        pending = turns[-1].pending if turns else ()
    shown = turns if wanted != 0 else []
    damaged += _changed(record.label, (step for turn in shown for step in turn.steps))
    if json:
        about = {**session.facts(), "aliases": aliases}
        said = {"turns": [_turn_facts(turn, damaged, record.label) for turn in shown]}
        said |= {"pending": [call_facts(call) for call in pending]}
        told = (said if secrets else redact_json(said)) | {"damaged": [each._asdict() for each in damaged]}
        shell.console.json({"schema": 1, "session": about, **told})
    else:
        for line in _heading(session, aliases, [str(call) if secrets else redact(str(call)).text for call in pending]):
            shell.console.text(visible_line(line))
        earlier = session.turns - sum(opens_turn(turn.steps[0]) for turn in shown)
        if shown and earlier:  # it stands where they would stand
            shell.console.text(f"({counted(earlier, 'earlier turn')}; --all shows all)")
        remark = partial(_missed, nexus.session(record.label))
        for turn in shown:
            shell.console.text("")
            with noting(damaged, record.label):
                print_lines(shell.console, tell_turn(turn, full=full, remark=remark, secrets=secrets))
    tell_damage(shell, [*dict.fromkeys(damaged)])


def show_step(
    shell: CommandShell, nexus: Nexus, record: SessionRecord, name: str, *, full: bool, secrets: bool, json: bool
) -> None:
    """Print one step of a session: what it says, whole, and with `full` or as JSON all else that is known of it."""
    step = _step_of(nexus.ledger, record, name)
    damaged = [*_changed(record.label, (step,))]
    report = nexus.session(record.label).cache(step.id) if step.kind == "reply" else None
    if json:
        facts = step_facts(step) if secrets else redact_json(step_facts(step))
        if report is not None:
            facts["cache"] = asdict(report) | {"verdict": report.verdict}
        shell.console.json({"schema": 1, "step": facts, "damaged": [each._asdict() for each in damaged]})
    else:
        heading = f"Step {step.id}, {step.kind}, {moment(step.created)}"
        print_lines(shell.console, [Line(heading, is_heading=True), *tell_step(step, full=True, secrets=secrets)])
        if report is not None:
            shell.console.text(visible_line(f"cache: {report}"))
        if full:
            shell.console.text("")
            shell.console.table([*_rest(step, secrets=secrets)])
        else:
            shell.console.message("(--full shows the tokens, digests and data of the step)", style="dim")
    tell_damage(shell, damaged)


def _rest(step: Step, *, secrets: bool) -> Iterator[tuple[str, str]]:
    """What else is known of a step, but for what is nothing."""
    facts: dict[str, Any] = step_facts(step)
    facts = facts if secrets else redact_json(facts)
    told = {name: facts[name] for name in facts if name not in ("id", "kind", "created", "data", "messages")}
    for name, value in (told | {f"data.{name}": value for name, value in facts["data"].items()}).items():
        if value is not None:
            yield name, value if isinstance(value, str) else dumps(value, ensure_ascii=False)


def _changed(label: str, steps: Iterable[Step]) -> Iterator[Damaged]:
    """The steps whose content is not what was recorded, as far as a ledger can tell."""
    for step in steps:
        if isinstance(step, StoredStep) and not step.is_as_recorded:
            yield Damaged(label, f"step {step.id} is not what was recorded")


def _missed(session: Session, step: Step) -> str:
    """What kept a call from finding its beginning in the cache, where something did that can be told."""
    blame = session.cache(step.id).blame if step.kind == "reply" else None
    return "" if blame is None or blame.cause in _NO_NEWS else f"cache: {blame}"


def _heading(session: Overview, aliases: list[str], pending: list[str]) -> list[str]:
    record = session.record
    tokens = f"{session.marked_tokens} token{'s' * (session.tokens != 1)}"
    facts = (counted(session.turns, "turn"), tokens, session.state, session.model)
    where = f" in {session.directory}" if session.directory else ""
    lines = [f"{record.label}: {', '.join(filter(None, facts))}", f"changed {moment(record.updated)}{where}"]
    if session.usage.total_tokens:
        lines.append(f"cost {cost(session.usage)}")
    lines += [f"{sign} {meaning}" for sign, meaning in TOKEN_MARKS.items() if sign in session.marked_tokens]
    if record.origin:
        lines.append(f"forked from {record.origin}")
    if aliases:
        lines.append(f"also called {', '.join(aliases)}")
    if pending:
        lines.append(f"waits for {', '.join(pending)}")
    return lines


def _turn_facts(turn: Turn, damaged: list[Damaged], label: str) -> dict[str, object]:
    steps: list[dict[str, object]] = []
    for step in turn.steps:
        with noting(damaged, label):
            steps.append(step_facts(step))
    return {"id": turn.steps[-1].turn, "open": turn.is_open, "steps": steps}


def _step_of(ledger: Ledger, record: SessionRecord, name: str) -> Step:
    tip = None if record.tip is None else ledger.step(record.tip)
    step = None if tip is None else find_named(ledger, name, tip)
    if step is None:
        hint = f"`nexus session show {quote(record.label)}` names those of the newest turns"
        raise UsageError(f"there is no step {name!r} in session {record.label!r}", hint=hint)
    return step
