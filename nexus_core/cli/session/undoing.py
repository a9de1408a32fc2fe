"""`nexus session undo` and `expand`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.ledger import match_session
from nexus_core.cli.options import DryRun, Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import Full, Label, LedgerUrl, WithSecrets, app, find_session, open_nexus
from nexus_core.errors import UsageError
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell
    from nexus_core.nexus import Nexus
    from nexus_core.values.compaction import Reverted
    from nexus_core.values.ledger import Ledger, Step

Compaction = Annotated[
    str,
    typer.Argument(
        metavar="COMPACTION",
        help="A compaction, by the id of its step or a part of that; or a session, for its latest.",
    ),
]


@app.command(epilog="\b\nExamples:\n  nexus session undo auth-bug\n  nexus session undo auth-bug --dry-run")
def undo(
    ctx: typer.Context, label: Label, *, dry_run: DryRun = False, ledger: LedgerUrl = "", json: Json = False
) -> None:
    """Take the latest compaction of a session back; the one before it counts again, and later turns stay."""
    shell: CommandShell = ctx.obj
    with open_nexus(ctx, ledger) as nexus:
        record = find_session(nexus.ledger, label)
        done = _trial(nexus, record.label) if dry_run else nexus.session(record.label).undo()
    then = f"compaction {done.restored} counts again" if done.restored else "everything is there in full"
    what = f"{'Would take' if dry_run else 'Took'} back compaction {done.compaction} of {record.label}: {then}."
    shell.console.message(visible_line(what))
    if json:
        facts = {"step": done.step or None, "compaction": done.compaction, "restored": done.restored}
        shell.console.json({"schema": 1, "session": record.label, "reverted": facts})


@app.command(
    epilog="\b\nExamples:\n  nexus session expand auth-bug\n"
    "  nexus session expand 01KA3XJW5C0A9G2Q7V8T4N6M1R --full --json"
)
def expand(
    ctx: typer.Context,
    compaction: Compaction,
    *,
    full: Full = False,
    with_secrets: WithSecrets = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Show what a compaction stands for: the steps it has summarised, as they were recorded, without secrets."""
    from nexus_core.cli.session.step_facts import step_facts  # noqa: PLC0415 - other commands do not need it
    from nexus_core.session.compacting.covering import covered_steps  # noqa: PLC0415 - as above
    from nexus_core.text.redaction import redact_json  # noqa: PLC0415 - other commands do not need it

    shell: CommandShell = ctx.obj
    with open_nexus(ctx, ledger) as nexus:
        compaction = _whole_name(nexus.ledger, compaction)
        steps = covered_steps(nexus.ledger, compaction)
    if json:
        facts = [step_facts(step) for step in steps]
        told = facts if with_secrets else redact_json(facts)
        shell.console.json({"schema": 1, "compaction": compaction, "steps": told})
    else:
        _print_steps(shell, steps, full=full, secrets=with_secrets)


def _whole_name(ledger: Ledger, given: str) -> str:
    """The id of the compaction that is meant: by a part of it, or as the one that counts in a session.

    Raises:
        UsageError: Several could be meant, or none counts in the session.
    """
    from nexus_core.session.steps.naming import find_named  # noqa: PLC0415 - as above

    step = find_named(ledger, given)
    record = match_session(ledger, given) if step is None else None
    if record is None:
        return given if step is None else step.id
    tip = None if record.tip is None else ledger.step(record.tip)
    if tip is None or tip.compaction is None:
        raise UsageError(f"nothing is compacted in session {record.label!r}", hint="there is nothing to expand")
    return tip.compaction


def _trial(nexus: Nexus, label: str) -> Reverted:
    """What would be taken back."""
    from nexus_core.session.compacting.undoing import find_latest  # noqa: PLC0415 - as above
    from nexus_core.session.steps.tail import Tail  # noqa: PLC0415 - as above

    record = find_session(nexus.ledger, label)
    tail = Tail(nexus.ledger)
    return find_latest(tail, None if record.tip is None else tail.step(record.tip))


def _print_steps(shell: CommandShell, steps: tuple[Step, ...], *, full: bool, secrets: bool) -> None:
    from nexus_core.cli.session.telling import print_lines, tell_step  # noqa: PLC0415 - as above

    for step in steps:
        if step.kind == "sealed":  # it says what the input said, as it was sent
            continue
        if step.id == step.turn:
            shell.console.table([(f"Turn {step.turn}",)], styles=["bold"])
        print_lines(shell.console, tell_step(step, full=full, secrets=secrets))
