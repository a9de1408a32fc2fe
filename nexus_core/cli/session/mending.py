"""`nexus session verify|repair|copy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.ledger import session_labels
from nexus_core.cli.options import DryRun, Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import LedgerUrl, OptionalLabel, app, find_session, ledger_url, open_nexus
from nexus_core.errors import LedgerError, UnreachableError
from nexus_core.history.ledger.opening import open_ledger, without_secret
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from nexus_core.cli.shell import CommandShell
    from nexus_core.history.ledger.ledger import StoreLedger
    from nexus_core.history.ledger.rebuilding import Rebuilt
    from nexus_core.nexus import Nexus
    from nexus_core.values.finding import Finding
    from nexus_core.values.ledger import Ledger, SessionRecord

Target = Annotated[str, typer.Argument(metavar="NEW", help="A new file, or the URL of an empty ledger.")]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without", metavar="LABEL", help="A session to leave out, with its workers.", autocompletion=session_labels
    ),
]

VERIFY_EXAMPLES = """
\b
Examples:
  nexus session verify auth-bug
  nexus session verify --ledger copy-of-ledger.db --json
"""
REPAIR_EXAMPLES = """
\b
Examples:
  nexus session repair saved.db --dry-run
  nexus session repair saved.db --ledger damaged.db
"""
COPY_EXAMPLES = """
\b
Examples:
  nexus session copy postgresql://nexus@db.example.org/nexus
  nexus session copy clean.db --without auth-bug
"""


@app.command(epilog=VERIFY_EXAMPLES)
def verify(ctx: typer.Context, label: OptionalLabel = None, *, ledger: LedgerUrl = "", json: Json = False) -> None:
    """Say what in a ledger is not as it was recorded: changed, deleted, moved, damaged; exits with 1 if anything is.

    With LABEL, only what concerns that session: its record, its names, its steps, those before a fork included, and
    what they refer to. Nothing else is read, so that damage of the file itself is found without LABEL only.
    """
    from nexus_core.history.ledger.ledger import StoreLedger  # noqa: PLC0415 - other commands do not need it

    shell: CommandShell = ctx.obj
    with open_nexus(ctx, ledger) as nexus:
        url = without_secret(nexus.ledger.url)
        record = None if label is None else find_session(nexus.ledger, label)
        with shell.console.progress(_about_steps(nexus.ledger, record)) as progress:
            looked_at = 0

            def advance(steps: int) -> None:
                nonlocal looked_at
                looked_at += steps
                progress.advance(steps)

            sessions: int | None = 1
            if record is None:
                findings = list(nexus.ledger.verify(advance=advance))
                sessions = _sessions_in(nexus.ledger)
            elif isinstance(nexus.ledger, StoreLedger):
                findings = list(nexus.ledger.verify(advance=advance, label=record.label))
            else:  # a plugin's own ledger checks all of it
                findings, looked_at = _concerning(nexus.ledger, record, nexus.ledger.verify(advance=progress.advance))
        deletions = _deletions_in(nexus.ledger)
    if json:
        about = {"schema": 1, "ledger": url, "steps": looked_at, "sessions": sessions}
        about |= {"deletions": deletions} if record is None else {"session": record.label}
        shell.console.json(about | {"findings": _facts(findings)})
    else:
        _print(shell, findings)
        seen = counted(looked_at, "step") + ("" if sessions is None else f" and {counted(sessions, 'session')}")
        found = counted(len(findings), "finding") if findings else "everything is as it was recorded"
        found += f", {counted(deletions, 'deletion')} recorded" * (record is None and deletions > 0)
        whose = "" if record is None else visible_line(f"session {record.label}: ")
        shell.console.message(f"{whose}Looked at {seen} in {url}: {found}.")
        if findings:
            where = f" --ledger {visible_line(without_secret(ledger))}" if ledger else ""
            shell.console.message(f"`nexus session repair NEW{where}` saves what is whole.")
    if findings:
        raise typer.Exit(FINDINGS)


@app.command(epilog=REPAIR_EXAMPLES)
def repair(
    ctx: typer.Context, new: Target, *, dry_run: DryRun = False, ledger: LedgerUrl = "", json: Json = False
) -> None:
    """Save every turn that is whole into a new ledger, and leave the old one as it is.

    It need not be a file that can still be opened. Of a sound ledger, the new one is a copy. Exits with 1 if something
    is lost.
    """
    _save(ctx, new, dry_run=dry_run, ledger=ledger, json=json)


@app.command(epilog=COPY_EXAMPLES)
def copy(
    ctx: typer.Context,
    new: Target,
    *,
    without: Without = None,
    dry_run: DryRun = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Copy everything into a new ledger, from a file to a server or back, with every id and every digest.

    The old one stays as it is. What is damaged in it is named and left out, as by `repair`; it exits with 1 then.
    --without leaves a session out, and everything that only it leads to: the way to get rid of one.
    """
    _save(ctx, new, without=without or (), dry_run=dry_run, ledger=ledger, json=json)


def _concerning(ledger: Ledger, record: SessionRecord, findings: Iterable[Finding]) -> tuple[list[Finding], int]:
    """Return the findings about one session and about the ledger as a whole, and how many steps lead to the session."""
    from nexus_core.session.steps.walking import walk_back  # noqa: PLC0415 - other commands do not need it

    steps: set[str] = set() if record.tip is None else {record.tip}
    try:
        steps |= {step.id for step in walk_back(ledger, record.tip)}
    except UnreachableError:
        raise
    except LedgerError:  # the findings say what is wrong with the step behind those that were read
        pass
    names = [f"session {record.label!r}", *(f"alias {each!r}" for each in ledger.aliases(record.label))]
    concerning = [
        each
        for each in findings
        if each.step in steps or any(name in each.message for name in names) or not _is_about_one(each)
    ]
    return concerning, len(steps)


def _is_about_one(finding: Finding) -> bool:
    """True for a finding about one step, session or blob; others are about the ledger as a whole."""
    return finding.code.partition("-")[0] in ("step", "session", "blob")


def _save(
    ctx: typer.Context, new: str, *, without: Collection[str] = (), dry_run: bool, ledger: str, json: bool
) -> None:
    shell: CommandShell = ctx.obj
    with open_nexus(ctx, ledger) as nexus:
        old = _repairable(nexus.ledger)
        target = _target(nexus, new, dry_run=dry_run)
        try:
            with shell.console.progress(1) as progress:
                rebuilt = old.repair(target, advance=progress.advance, without=without)
        finally:
            target.close()
    where = without_secret(ledger_url(shell.cwd, new) or "")
    if json:
        facts = {"turns": rebuilt.turns, "steps": rebuilt.steps, "sessions": rebuilt.sessions, "blobs": rebuilt.blobs}
        document = {"schema": 1, "ledger": without_secret(old.url), "new": where, "dry_run": dry_run, "saved": facts}
        left_out = {"left_out": [*rebuilt.left_out], "sharing": [*rebuilt.sharing]}
        shell.console.json(document | {"lost": _facts(rebuilt.lost), **left_out})
    else:
        _print(shell, rebuilt.lost)
        shell.console.message(f"{'Would save' if dry_run else 'Saved'} {_saved(rebuilt)} in {where}.")
        _tell_left_out(shell, rebuilt)
    if rebuilt.lost:
        raise typer.Exit(FINDINGS)


def _tell_left_out(shell: CommandShell, rebuilt: Rebuilt) -> None:
    if rebuilt.left_out:
        shell.console.message(visible_line(f"Left out: {', '.join(rebuilt.left_out)}."))
    if rebuilt.sharing:
        shared = f"steps that are also part of {', '.join(rebuilt.sharing)} are still there"
        shell.console.warning(visible_line(f"{shared}; to get rid of them, add --without for each of these sessions"))


def _sessions_in(ledger: Ledger) -> int | None:
    """How many sessions there are; None where nobody can tell any more."""
    try:
        return len(ledger.sessions(status=None))
    except UnreachableError:
        raise
    except LedgerError:
        return None


def _deletions_in(ledger: Ledger) -> int:
    """Return the number of recorded deletions."""
    from nexus_core.history.ledger.deletion import DeletableLedger  # noqa: PLC0415 - as above

    try:
        return len(ledger.deletions()) if isinstance(ledger, DeletableLedger) else 0
    except UnreachableError:
        raise
    except LedgerError:  # the findings say what is wrong
        return 0


def _about_steps(ledger: Ledger, only: SessionRecord | None) -> int:
    from nexus_core.cli.session.reading import steps_up_to  # noqa: PLC0415 - other commands do not need it

    try:
        records = ledger.sessions(status=None) if only is None else [only]
        return steps_up_to(ledger, [record.tip for record in records])
    except UnreachableError:
        raise
    except LedgerError:  # whatever it is, it will be found
        return 0


def _target(nexus: Nexus, new: str, *, dry_run: bool) -> StoreLedger:
    if dry_run:
        from nexus_core.history.ledger.memory import MemoryLedger  # noqa: PLC0415 - as above

        return MemoryLedger()
    return _repairable(open_ledger(nexus.host, ledger_url(nexus.cwd, new) or ""))


def _repairable(ledger: Ledger) -> StoreLedger:
    """A ledger that can be read row by row.

    Raises:
        LedgerError: Its plugin keeps conversations in a way of its own.
    """
    from nexus_core.history.ledger.ledger import StoreLedger  # noqa: PLC0415 - as above

    if isinstance(ledger, StoreLedger):
        return ledger
    hint = "only its plugin knows how it is repaired; `nexus session export` and `import` copy what can be read"
    raise LedgerError("this ledger cannot be repaired from outside", where=without_secret(ledger.url), hint=hint)


def _print(shell: CommandShell, findings: Iterable[Finding]) -> None:
    for finding in findings:
        shell.console.text(visible_line(str(finding)))


def _facts(findings: Iterable[Finding]) -> list[dict[str, object]]:
    return [{"code": each.code, "message": each.message, "step": each.step or None} for each in findings]


def _saved(rebuilt: Rebuilt) -> str:
    turns, steps = counted(rebuilt.turns, "turn"), counted(rebuilt.steps, "step")
    return f"{turns} ({steps}), {counted(rebuilt.sessions, 'session')} and {counted(rebuilt.blobs, 'blob')}"
