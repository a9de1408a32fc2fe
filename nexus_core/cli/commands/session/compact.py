"""`nexus session compact`, `pin` and `unpin`, and the steps that a compaction replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import (
    DryRunOption,
    JsonOption,
)
from nexus_core.cli.session_lookup import (
    LedgerOption,
    SessionArgument,
    find_session,
    match_session,
    open_ledger_nexus,
    open_session_nexus,
)
from nexus_core.cli.step_view import format_step, get_turn_word, print_step_lines, step_to_json
from nexus_core.compaction.undo import build_pin_step, find_latest_compaction, list_covered_steps
from nexus_core.errors import UsageError
from nexus_core.ledger.ledger import missing_step_error
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line
from nexus_core.text.secrets import redact_json
from nexus_core.thread.cache import ThreadCache
from nexus_core.thread.lookup import find_step
from nexus_core.thread.state import SessionState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.cli.context import CliContext
    from nexus_core.compaction.compact import CompactionPreview
    from nexus_core.compaction.trigger import NoCompaction
    from nexus_core.nexus import Nexus
    from nexus_core.types.compaction import CompactionReport, Fidelity, RevertedCompaction
    from nexus_core.types.ledger import Ledger, SessionRecord, Step

app = typer.Typer()

FocusOption = Annotated[str, typer.Option("--focus", metavar="TEXT", help="Keep what concerns this above all.")]
UndoOption = Annotated[bool, typer.Option("--undo", help="Revert the latest compaction instead.")]

COMPACT_EXAMPLES = """
\b
Examples:
  nexus session compact auth-bug --focus "the failing tests"
  nexus session compact auth-bug --undo
"""


@app.command(epilog=COMPACT_EXAMPLES)
def compact(
    ctx: typer.Context,
    label: SessionArgument,
    *,
    focus: FocusOption = "",
    undo: UndoOption = False,
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Summarize the earlier turns of a session.

    Nothing is deleted. --undo reverts the latest compaction: the one before it counts again, and later turns stay. If
    there is nothing to summarize or undo, says so and exits with 0.
    """
    if undo and focus:
        raise UsageError("--focus changes nothing with --undo", hint="leave out --focus, or --undo")
    if undo:
        _undo_compaction(ctx, label, dry_run=dry_run, ledger=ledger, json=json)
        return
    cli: CliContext = ctx.obj
    with open_session_nexus(ctx, label, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        session = nexus.session(record.label)
        with cli.console.progress(None, "Planning" if dry_run else "Summarizing"):
            preview = session.preview_compaction(focus) if dry_run else None
            report = session.compact(focus) if preview is None else preview.report
    if preview is None:
        print_compaction_report(cli, record.label, report, json=json)
    else:
        print_compaction_preview(cli, record.label, preview, json=json)


_FIDELITY_HEADING = ("FACTS", "RETAINED", "RECOVERABLE", "LOST")
_FACT_NAMES = {
    "decision": "decisions",
    "path": "paths",
    "command": "commands",
    "identifier": "identifiers",
    "url": "addresses",
    "number": "numbers",
    "error": "errors",
}


def print_compaction_report(cli: CliContext, label: str, report: CompactionReport | None, *, json: bool) -> None:
    """Print the report of a compaction, or without one, that there was nothing to summarize."""
    if json:
        cli.console.json(
            {"schema": 1, "session": label, "compaction": None if report is None else _report_to_json(report)}
        )
        return
    if report is None:
        stays = "The newest turns stay as they are (compaction.keep_turns, 3 by default)."
        cli.console.message(visible_line(f"There is nothing to summarize in {label}. {stays}"))
        return
    for name, what in report.failures:
        cli.console.warning(visible_line(f"{name} {what}"))
    cli.console.table([("session", label), *_list_report_rows(report)])
    if report.fidelity:
        cli.console.text("")
        rows = [
            _FIDELITY_HEADING,
            *((_FACT_NAMES[kind], *_count_fidelity(each)) for kind, each in report.fidelity.items()),
        ]
        cli.console.table(rows, styles=["bold"], right={1, 2, 3})


def print_compaction_preview(cli: CliContext, label: str, preview: CompactionPreview, *, json: bool) -> None:
    """Print the plan of a compaction, or one line with the reason why there is none."""
    report, reason, automatic = preview
    if json:
        facts = {
            "compaction": None if report is None else _report_to_json(report),
            "reason": None if reason is None else _reason_to_json(reason),
            "automatic": None if automatic is None else _reason_to_json(automatic),
        }
        cli.console.json({"schema": 1, "session": label, **facts})
    elif report is not None:
        when = "before the next call" if automatic is None else f"no: {automatic.message}; {automatic.hint}"
        cli.console.table([("session", label), *_list_report_rows(report), ("automatic", visible_line(when))])
    elif reason is not None:
        cli.console.message(visible_line(f"Would not compact {label}: {reason.message}; {reason.hint}."))


def _reason_to_json(reason: NoCompaction) -> dict[str, str]:
    return {"code": reason.code, "message": reason.message, "hint": reason.hint}


def _list_report_rows(report: CompactionReport) -> Iterator[tuple[str, str]]:
    what = f"{format_count(report.turns, 'turn')}, {format_count(report.messages, 'message')}"
    yield "summarized" if report.step else "to summarize", what
    yield "kept", f"everything from step {report.first_kept} on" if report.first_kept else "nothing of it"
    if report.pinned:
        yield "pinned", ", ".join(report.pinned)
    at_most = "" if report.step else "at most "
    sizes = f"{report.tokens_before:,} -> {at_most}{report.tokens_after:,} of {report.available:,}"
    yield "tokens", sizes
    if report.step:
        yield "summarizer", report.summarizer
        if report.note:
            yield "note", report.note
        if report.redacted:
            taken = ", ".join(f"{number} {kind}" for kind, number in sorted(report.redacted.items()))
            yield "secrets taken out", taken
        yield "step", report.step


def _count_fidelity(fidelity: Fidelity) -> tuple[str, str, str]:
    return f"{len(fidelity.retained):,}", f"{len(fidelity.recoverable):,}", f"{len(fidelity.lost):,}"


def _report_to_json(report: CompactionReport) -> dict[str, object]:
    """Return all of it, for JSON."""
    return {
        "step": report.step,
        "trigger": report.trigger,
        "turns": report.turns,
        "messages": report.messages,
        "first_kept": report.first_kept,
        "pinned": list(report.pinned),
        "tokens_before": report.tokens_before,
        "tokens_after": report.tokens_after,
        "available": report.available,
        "summary": report.summary,
        "summariser": report.summarizer,
        "calls": report.calls,
        "failures": [{"summariser": name, "what": what} for name, what in report.failures],
        "fidelity": {
            kind: {"retained": list(each.retained), "recoverable": dict(each.recoverable), "lost": list(each.lost)}
            for kind, each in report.fidelity.items()
        },
        "redacted": dict(report.redacted),
        "form": report.form,
        "note": report.note,
        "planner": report.planner,
    }


def _undo_compaction(ctx: typer.Context, name: str, *, dry_run: bool, ledger: str, json: bool) -> None:
    """Revert the latest compaction. The one before it counts again, and later turns stay."""
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, name)
        if _find_compaction(nexus.ledger, record) is None:
            _report_nothing(cli, record.label, "undo", {"session": record.label, "reverted": None}, json=json)
            return
        done = _preview_undo(nexus, record.label) if dry_run else nexus.session(record.label).undo()
    then = f"compaction {done.restored} counts again" if done.restored else "everything is there in full"
    what = f"{'Would take' if dry_run else 'Took'} back compaction {done.compaction} of {record.label}: {then}."
    cli.console.message(visible_line(what))
    if json:
        facts = {"step": done.step or None, "compaction": done.compaction, "restored": done.restored}
        cli.console.json({"schema": 1, "session": record.label, "reverted": facts})


def show_compacted(
    ctx: typer.Context, name: str, *, full: bool, raw: bool, secrets: bool, ledger: str, json: bool
) -> None:
    """Print the steps that a compaction replaced, as they were recorded.

    Args:
        ctx: The command.
        name: A session, for its latest compaction, or a compaction by its id or a part of that.
        full: True prints long texts whole.
        raw: True prints Markdown as it is written.
        secrets: True prints keys, tokens and passwords.
        ledger: The value of `--ledger`.
        json: True prints JSON.
    """
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger) as nexus:
        step = find_step(nexus.ledger, name)
        record = match_session(nexus.ledger, name) if step is None else None
        latest = None if record is None else _find_compaction(nexus.ledger, record)
        if record is not None and latest is None:
            _report_nothing(cli, record.label, "show", {"compaction": None, "steps": []}, json=json)
            return
        compaction = step.id if step else latest or name
        steps = list_covered_steps(nexus.ledger, compaction)
    if json:
        rows = [step_to_json(step) for step in steps]
        cli.console.json({"schema": 1, "compaction": compaction, "steps": rows if secrets else redact_json(rows)})
    elif steps:
        _print_steps(cli, steps, full=full, raw=raw, secrets=secrets)
    else:
        cli.console.message(f"Compaction {compaction} replaced no steps: there is nothing to show.")


def _find_compaction(ledger: Ledger, record: SessionRecord) -> str | None:
    """Return the id of a session's current compaction, or None if nothing is compacted.

    Raises:
        LedgerError: The newest step of the session is missing.
    """
    tip = None if record.tip is None else ledger.step(record.tip)
    if tip is None and record.tip is not None:
        raise missing_step_error(record.tip)
    return None if tip is None else tip.compaction


def _report_nothing(cli: CliContext, label: str, action: str, report: dict[str, object], *, json: bool) -> None:
    cli.console.message(visible_line(f"Nothing is compacted in {label}: there is nothing to {action}."))
    if json:
        cli.console.json({"schema": 1, **report})


def _preview_undo(nexus: Nexus, label: str) -> RevertedCompaction:
    """Return the compaction that an undo would revert."""
    record = find_session(nexus.ledger, label)
    tail = ThreadCache(nexus.ledger)
    return find_latest_compaction(tail, None if record.tip is None else tail.get_step(record.tip))


def _print_steps(cli: CliContext, steps: tuple[Step, ...], *, full: bool, raw: bool, secrets: bool) -> None:
    for step in steps:
        if step.kind == "sealed":  # the input again, as it was rendered
            continue
        if step.id == step.turn and (word := get_turn_word(step)):
            cli.console.table([(f"{word} {step.turn}",)], styles=["bold"])
        print_step_lines(cli.console, format_step(step, full=full, secrets=secrets), markdown=not raw)


OptionalStepArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[STEP]",
        help="What stays, by the id of its step or some characters of that. Without it, all are listed.",
    ),
]
PinnedStepArgument = Annotated[
    str, typer.Argument(metavar="STEP", help="A pinned step, by its id or some characters of that.")
]

PIN_EXAMPLES = """
\b
Examples:
  nexus session pin auth-bug 01KA3XJW5C0A9G2Q7V8T4N6M1R
  nexus session pin auth-bug
"""


@app.command(epilog=PIN_EXAMPLES)
def pin(
    ctx: typer.Context,
    label: SessionArgument,
    step: OptionalStepArgument = None,
    *,
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Keep a step as it is in compactions.

    Without STEP, the pinned steps are listed. `unpin` lets compactions summarize it again.
    """
    _pin_or_unpin(ctx, label, step, remove=False, dry_run=dry_run, ledger=ledger, json=json)


@app.command(
    epilog="\b\nExamples:\n  nexus session unpin auth-bug 4N6M1R\n  nexus session unpin auth-bug 4N6M1R --dry-run"
)
def unpin(
    ctx: typer.Context,
    label: SessionArgument,
    step: PinnedStepArgument,
    *,
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Let compactions summarize a pinned step."""
    _pin_or_unpin(ctx, label, step, remove=True, dry_run=dry_run, ledger=ledger, json=json)


def _pin_or_unpin(
    ctx: typer.Context, label: str, step: str | None, *, remove: bool, dry_run: bool, ledger: str, json: bool
) -> None:
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger) as nexus:
        label = find_session(nexus.ledger, label).label
        if step is not None:
            step = _resolve_step_id(nexus, label, step)
            changed = _change_pin(nexus, label, step, remove=remove, dry_run=dry_run)
            what = _describe_change(step, label, remove=remove, changed=changed, dry_run=dry_run)
            cli.console.message(visible_line(what))
        pins = _read_state(nexus, label).newest.pins
    if json:
        cli.console.json({"schema": 1, "session": label, "pins": list(pins)})
    elif step is None:
        for name in pins:
            cli.console.text(name)
        if not pins:
            cli.console.message(visible_line(f"Nothing is pinned in {label}."))


def _change_pin(nexus: Nexus, label: str, step: str, *, remove: bool, dry_run: bool) -> bool:
    """Pin or unpin a step, and return True if that changed anything."""
    if dry_run:
        return build_pin_step(nexus.ledger, label, _read_state(nexus, label), step, remove=remove) is not None
    session = nexus.session(label)
    return session.unpin(step) if remove else session.pin(step)


def _resolve_step_id(nexus: Nexus, label: str, step: str) -> str:
    """Return the full id of a step, or the given text if no step matches."""
    found = find_step(nexus.ledger, step, _read_state(nexus, label).tip)
    return step if found is None else found.id


def _read_state(nexus: Nexus, label: str) -> SessionState:
    record = find_session(nexus.ledger, label)
    return SessionState(record, None if record.tip is None else nexus.ledger.step(record.tip), None)


def _describe_change(step: str, label: str, *, remove: bool, changed: bool, dry_run: bool) -> str:
    if not changed:
        return f"Step {step} of {label} is {'not pinned' if remove else 'pinned already'}."
    verb = ("Would unpin" if dry_run else "Unpinned") if remove else "Would pin" if dry_run else "Pinned"
    return f"{verb} step {step} of {label}."
