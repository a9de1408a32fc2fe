"""`nexus ledger verify|repair|copy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.context import EXIT_FINDINGS
from nexus_core.cli.options import DryRunOption, JsonOption
from nexus_core.cli.session_lookup import (
    LedgerOption,
    OptionalSessionArgument,
    estimate_steps,
    find_session,
    list_session_names,
    open_ledger_nexus,
    resolve_ledger_url,
)
from nexus_core.errors import LedgerError, LedgerUnreachableError
from nexus_core.ledger.deletion import DeletableLedger
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger, walk_back
from nexus_core.ledger.url import open_ledger, without_secret
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line
from nexus_core.thread.state import count_ledger_turns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from nexus_core.cli.context import CliContext
    from nexus_core.ledger.rebuild import RebuildReport
    from nexus_core.nexus import Nexus
    from nexus_core.types.ledger import Ledger, SessionRecord
    from nexus_core.types.plugins import Finding

app = typer.Typer(
    help="Verify, repair and copy the ledger.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus ledger verify\n  nexus ledger copy backup.db",
)

TargetArgument = Annotated[str, typer.Argument(metavar="NEW", help="A new file, or the URL of an empty ledger.")]
WithoutOption = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="NAME",
        help="Leave this session and its workers out; repeatable.",
        autocompletion=list_session_names,
    ),
]

VERIFY_EXAMPLES = """
\b
Examples:
  nexus ledger verify auth-bug
  nexus ledger verify --ledger copy-of-ledger.db --json
"""
REPAIR_EXAMPLES = """
\b
Examples:
  nexus ledger repair saved.db --dry-run
  nexus ledger repair saved.db --ledger damaged.db
"""
COPY_EXAMPLES = """
\b
Examples:
  nexus ledger copy postgresql://nexus@db.example.org/nexus
  nexus ledger copy clean.db --without auth-bug
"""


@app.command(epilog=VERIFY_EXAMPLES)
def verify(
    ctx: typer.Context, label: OptionalSessionArgument = None, *, ledger: LedgerOption = "", json: JsonOption = False
) -> None:
    """Check the ledger for changed, missing or damaged records.

    Exits with 1 if there is anything. The search index is not checked: it is derived from the steps.

    With NAME, only what concerns that session: its record, its names, its steps, those before a fork included, and
    what they refer to. Nothing else is read, so that damage of the file itself is found without NAME only.
    """
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger) as nexus:
        url = without_secret(nexus.ledger.url)
        record = None if label is None else find_session(nexus.ledger, label)
        with cli.console.progress(estimate_steps(nexus.ledger, record), "Verifying", unit="steps") as progress:
            looked_at = 0

            def advance(steps: int) -> None:
                nonlocal looked_at
                looked_at += steps
                progress.advance(steps)

            sessions: int | None = 1
            if record is None:
                findings = list(nexus.ledger.verify(advance=advance))
                sessions = _count_sessions(nexus.ledger)
            elif isinstance(nexus.ledger, StoreLedger):
                findings = list(nexus.ledger.verify(advance=advance, label=record.label))
            else:  # a plugin's own ledger checks all of it
                findings, looked_at = _select_findings(
                    nexus.ledger, record, nexus.ledger.verify(advance=progress.advance)
                )
        deletions, erased = (0, 0) if record is not None else _count_erased(nexus.ledger)
    erased = min(erased, looked_at)  # the ledger may be damaged
    if json:
        about = {"schema": 1, "ledger": url, "steps": looked_at - erased, "sessions": sessions}
        about |= {"erased": erased, "deletions": deletions} if record is None else {"session": record.label}
        cli.console.json(about | {"findings": _findings_to_json(findings)})
    else:
        _print_findings(cli, findings)
        seen = format_count(looked_at - erased, "step") + f" ({erased:,} erased)" * (erased > 0)
        seen += "" if sessions is None else f" and {format_count(sessions, 'session')}"
        found = format_count(len(findings), "finding") if findings else "everything is as it was recorded"
        found += f", {format_count(deletions, 'deletion')} recorded" * (deletions > 0)
        whose = "" if record is None else visible_line(f"session {record.label}: ")
        cli.console.message(f"{whose}Looked at {seen} in {url}: {found}.")
        if findings:
            cli.console.message(visible_line(cli.complete_commands("`nexus ledger repair NEW` saves what is whole.")))
    if findings:
        raise typer.Exit(EXIT_FINDINGS)


@app.command(epilog=REPAIR_EXAMPLES)
def repair(
    ctx: typer.Context,
    new: TargetArgument,
    *,
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Save every intact turn into a new ledger.

    The old one stays as it is. Of a damaged file, what SQLite can still read is saved. Of a sound ledger, the new one
    is a copy. Exits with 1 if something is lost.
    """
    _rebuild_ledger(ctx, new, dry_run=dry_run, ledger=ledger, json=json)


@app.command(epilog=COPY_EXAMPLES)
def copy(
    ctx: typer.Context,
    new: TargetArgument,
    *,
    without: WithoutOption = None,
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Copy the ledger to a new file or server.

    Every id and every digest stays. The old ledger stays as it is. What is damaged in it is named and left out, as by
    `repair`; it exits with 1 then. --without leaves a session out, and everything that only it leads to;
    `nexus session delete` erases one in place.
    """
    _rebuild_ledger(ctx, new, without=without or (), dry_run=dry_run, ledger=ledger, json=json)


def _select_findings(ledger: Ledger, record: SessionRecord, findings: Iterable[Finding]) -> tuple[list[Finding], int]:
    """Return the findings about one session and about the whole ledger, and the session's step count."""
    steps: set[str] = set() if record.tip is None else {record.tip}
    try:
        steps |= {step.id for step in walk_back(ledger, record.tip)}
    except LedgerUnreachableError:
        raise
    except LedgerError:  # the findings say what is wrong with the step behind those that were read
        pass
    names = [f"session {record.label!r}", *(f"alias {each!r}" for each in ledger.aliases(record.label))]
    concerning = [
        each
        for each in findings
        if each.step in steps or any(name in each.message for name in names) or not _is_about_one_record(each)
    ]
    return concerning, len(steps)


def _is_about_one_record(finding: Finding) -> bool:
    """True if a finding is about one step, session or blob, not about the whole ledger."""
    return finding.code.partition("-")[0] in ("step", "session", "blob")


def _rebuild_ledger(
    ctx: typer.Context, new: str, *, without: Collection[str] = (), dry_run: bool, ledger: str, json: bool
) -> None:
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger) as nexus:
        old = _require_store_ledger(nexus.ledger)
        target = _open_target(nexus, new, dry_run=dry_run)
        try:
            steps = estimate_steps(old, None) or None
            with cli.console.progress(steps, "Copying", unit="steps") as progress:
                rebuilt = old.repair(
                    target, advance=lambda share: progress.advance(share * (steps or 0)), without=without
                )
            turns = count_ledger_turns(target)
        finally:
            target.close()
    where = without_secret(resolve_ledger_url(cli.cwd, new) or "")
    if json:
        facts = {"turns": turns, "steps": rebuilt.steps, "sessions": rebuilt.sessions, "blobs": rebuilt.blobs}
        document = {"schema": 1, "ledger": without_secret(old.url), "new": where, "dry_run": dry_run, "saved": facts}
        left_out = {"left_out": [*rebuilt.left_out], "sharing": [*rebuilt.sharing]}
        cli.console.json(document | {"lost": _findings_to_json(rebuilt.lost), **left_out})
    else:
        _print_findings(cli, rebuilt.lost)
        cli.console.message(f"{'Would save' if dry_run else 'Saved'} {_describe_rebuilt(rebuilt, turns)} in {where}.")
        _report_left_out(cli, rebuilt)
    if rebuilt.lost:
        raise typer.Exit(EXIT_FINDINGS)


def _report_left_out(cli: CliContext, rebuilt: RebuildReport) -> None:
    if rebuilt.left_out:
        cli.console.message(visible_line(f"Left out: {', '.join(rebuilt.left_out)}."))
    if rebuilt.sharing:
        shared = f"steps that are also part of {', '.join(rebuilt.sharing)} are still there"
        cli.console.warning(visible_line(f"{shared}; to get rid of them, add --without for each of these sessions"))


def _count_sessions(ledger: Ledger) -> int | None:
    """Return the number of sessions, or None if they cannot be read."""
    try:
        return len(ledger.sessions(status=None))
    except LedgerUnreachableError:
        raise
    except LedgerError:
        return None


def _count_erased(ledger: Ledger) -> tuple[int, int]:
    """Return the number of recorded deletions, and of the steps that they erased."""
    try:
        deletions = ledger.deletions() if isinstance(ledger, DeletableLedger) else []
    except LedgerUnreachableError:
        raise
    except LedgerError:  # the findings say what is wrong
        return 0, 0
    stored: list[object] = [each.steps for each in deletions]
    return len(deletions), sum(max(number, 0) for number in stored if isinstance(number, int))


def _open_target(nexus: Nexus, new: str, *, dry_run: bool) -> StoreLedger:
    if dry_run:
        return MemoryLedger()
    return _require_store_ledger(open_ledger(nexus.host, resolve_ledger_url(nexus.cwd, new) or ""))


def _require_store_ledger(ledger: Ledger) -> StoreLedger:
    """Return a ledger that can be read row by row.

    Raises:
        LedgerError: Its plugin keeps conversations in a way of its own.
    """
    if isinstance(ledger, StoreLedger):
        return ledger
    hint = "only its plugin knows how it is repaired; `nexus session export` and `import` copy what can be read"
    raise LedgerError("this ledger cannot be repaired from outside", where=without_secret(ledger.url), hint=hint)


def _print_findings(cli: CliContext, findings: Iterable[Finding]) -> None:
    for finding in findings:
        cli.console.text(visible_line(str(finding)), wrap=True)


def _findings_to_json(findings: Iterable[Finding]) -> list[dict[str, object]]:
    return [{"code": each.code, "message": each.message, "step": each.step or None} for each in findings]


def _describe_rebuilt(rebuilt: RebuildReport, turns: int) -> str:
    saved = f"{format_count(turns, 'turn')} ({format_count(rebuilt.steps, 'step')})"
    return f"{saved}, {format_count(rebuilt.sessions, 'session')} and {format_count(rebuilt.blobs, 'blob')}"
