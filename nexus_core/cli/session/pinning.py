"""`nexus session pin`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import DryRun, Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import Label, LedgerUrl, app, find_session, open_nexus
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell
    from nexus_core.nexus import Nexus
    from nexus_core.session.steps.state import State

Step = Annotated[
    str | None,
    typer.Argument(
        metavar="[STEP]",
        help="What stays, by the id of its step or some characters of that. Without it, all are listed.",
    ),
]
Remove = Annotated[bool, typer.Option("--remove", help="Unpin it.")]

EXAMPLES = """
\b
Examples:
  nexus session pin auth-bug 01KA3XJW5C0A9G2Q7V8T4N6M1R
  nexus session pin auth-bug 01KA3XJW5C0A9G2Q7V8T4N6M1R --remove
"""


@app.command(epilog=EXAMPLES)
def pin(
    ctx: typer.Context,
    label: Label,
    step: Step = None,
    *,
    remove: Remove = False,
    dry_run: DryRun = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Have what was said in a step stay as it is when the rest is summarised; with --remove, no longer."""
    shell: CommandShell = ctx.obj
    with open_nexus(ctx, ledger) as nexus:
        label = find_session(nexus.ledger, label).label
        if step is not None:
            step = _whole_name(nexus, label, step)
            changed = _change(nexus, label, step, remove=remove, dry_run=dry_run)
            what = _told(step, label, remove=remove, changed=changed, dry_run=dry_run)
            shell.console.message(visible_line(what))
        pins = _state(nexus, label).pins
    if json:
        shell.console.json({"schema": 1, "session": label, "pins": list(pins)})
    elif step is None:
        for name in pins:
            shell.console.text(name)
        if not pins:
            shell.console.message(visible_line(f"Nothing is pinned in {label}."))


def _change(nexus: Nexus, label: str, step: str, *, remove: bool, dry_run: bool) -> bool:
    """Whether a step is pinned, or let go of, that was not before."""
    if dry_run:
        from nexus_core.session.compacting.pinning import pin_step  # noqa: PLC0415 - other commands do not need it

        return pin_step(nexus.ledger, label, _state(nexus, label), step, remove=remove) is not None
    session = nexus.session(label)
    return session.unpin(step) if remove else session.pin(step)


def _whole_name(nexus: Nexus, label: str, step: str) -> str:
    """The id of the step that is meant; what was given where there is none."""
    from nexus_core.session.steps.naming import find_named  # noqa: PLC0415 - as above

    found = find_named(nexus.ledger, step, _state(nexus, label).tip)
    return step if found is None else found.id


def _state(nexus: Nexus, label: str) -> State:
    from nexus_core.session.steps.state import State  # noqa: PLC0415 - as above

    record = find_session(nexus.ledger, label)
    return State(record, None if record.tip is None else nexus.ledger.step(record.tip), None)


def _told(step: str, label: str, *, remove: bool, changed: bool, dry_run: bool) -> str:
    if not changed:
        return f"Step {step} of {label} is {'not pinned' if remove else 'pinned already'}."
    verb = ("Would unpin" if dry_run else "Unpinned") if remove else "Would pin" if dry_run else "Pinned"
    return f"{verb} step {step} of {label}."
