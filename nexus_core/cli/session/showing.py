"""`nexus session show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import Label, LedgerUrl, app, find_session, open_nexus
from nexus_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.cli.session.overview import Overview
    from nexus_core.cli.session.telling import Line
    from nexus_core.cli.shell import CommandShell
    from nexus_core.session.turns import Turn
    from nexus_core.values.ledger import Ledger, Step

_TURNS = 5

EXAMPLES = """
\b
Examples:
  nexus session show auth-bug --turns 1
  nexus session show auth-bug --step 01KA3XJW5C0A9G2Q7V8T4N6M1R --json
"""


@app.command(epilog=EXAMPLES)
def show(
    ctx: typer.Context,
    label: Label,
    *,
    step: Annotated[str, typer.Option("--step", metavar="ID", help="One step, with all that is known of it.")] = "",
    turns: Annotated[
        int | None, typer.Option("--turns", metavar="N", min=0, help=f"So many of the newest turns; {_TURNS} by default.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All turns.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Long texts and results whole.")] = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Show what was said in a session: who said what, which tools were called, what it cost, what it waits for."""
    if sum((bool(step), turns is not None, everything)) > 1:
        raise UsageError("--step, --turns and --all say different things", hint="give one of them")
    shell: CommandShell = ctx.obj
    with open_nexus(ctx, ledger) as nexus:
        if step:
            _show_step(shell, _step_of(nexus.ledger, label, step), json=json)
        else:
            wanted = None if everything else _TURNS if turns is None else turns
            _show_turns(shell, nexus.ledger, label, wanted, full=full, json=json)


def _show_turns(shell: CommandShell, ledger: Ledger, label: str, wanted: int | None, *, full: bool, json: bool) -> None:
    from nexus_core.cli.session.overview import look_over  # noqa: PLC0415 - other commands do not need it
    from nexus_core.cli.session.reading import newest_turns  # noqa: PLC0415 - as above
    from nexus_core.cli.session.step_facts import call_facts, step_facts  # noqa: PLC0415 - as above
    from nexus_core.cli.session.telling import tell_turn  # noqa: PLC0415 - as above

    session = look_over(ledger, find_session(ledger, label))
    # The newest is read in any case: it says what is waited for.
    turns = newest_turns(ledger, session.record, None if wanted is None else max(wanted, 1))
    pending = turns[-1].pending if turns else ()
    shown = turns if wanted != 0 else []
    aliases = ledger.aliases(session.record.label)
    if json:
        facts = [{"id": turn.steps[0].turn, "open": turn.is_open, "steps": [*map(step_facts, turn.steps)]} for turn in shown]
        waiting = [call_facts(call) for call in pending]
        document = {"schema": 1, "session": {**session.facts(), "aliases": aliases}, "turns": facts, "pending": waiting}
        shell.console.json(document)
        return
    for line in _heading(session, aliases, [str(call) for call in pending]):
        shell.console.text(line)
    if session.turns > len(shown) and shown:
        shell.console.message(f"({session.turns - len(shown):,} earlier turns; --all shows them)", style="dim")
    for turn in shown:
        shell.console.text("")
        _print(shell, tell_turn(turn, full=full))


def _heading(session: Overview, aliases: list[str], pending: list[str]) -> list[str]:
    from nexus_core.cli.session.telling import cost  # noqa: PLC0415 - as above
    from nexus_core.cli.session.overview import moment  # noqa: PLC0415 - as above
    from nexus_core.text.console import counted  # noqa: PLC0415 - as above
    from nexus_core.text.visible import visible_line  # noqa: PLC0415 - as above

    record = session.record
    facts = [counted(session.turns, "turn"), counted(session.tokens, "token"), session.state, session.model]
    lines = [f"{record.label}: {', '.join(filter(None, facts))}", f"changed {moment(record.updated)}"]
    lines[1] += f" in {session.directory}" * bool(session.directory)
    if session.usage.total_tokens:
        lines.append(f"cost {cost(session.usage)}")
    if record.origin:
        lines.append(f"forked from {record.origin}")
    if aliases:
        lines.append(f"also called {', '.join(aliases)}")
    if pending:
        lines.append(f"waits for {', '.join(pending)}")
    return [visible_line(line) for line in lines]


def _step_of(ledger: Ledger, label: str, name: str) -> Step:
    from nexus_core.session.walking import is_in_thread  # noqa: PLC0415 - as above

    record = find_session(ledger, label)
    step, tip = ledger.step(name), None if record.tip is None else ledger.step(record.tip)
    if step is None or tip is None or not is_in_thread(ledger, step, tip):
        raise UsageError(f"there is no step {name!r} in session {record.label!r}", hint="nexus session show LABEL --json")
    return step


def _show_step(shell: CommandShell, step: Step, *, json: bool) -> None:
    from nexus_core.cli.session.step_facts import step_facts  # noqa: PLC0415 - as above
    from nexus_core.cli.session.telling import tell_step  # noqa: PLC0415 - as above

    facts = step_facts(step)
    if json:
        shell.console.json({"schema": 1, "step": facts})
        return
    del facts["messages"]
    shell.console.table([(name, _written(value)) for name, value in facts.items()])
    shell.console.text("")
    _print(shell, tell_step(step, full=True))


def _written(value: object) -> str:
    from json import dumps  # noqa: PLC0415 - as above

    return value if isinstance(value, str) else dumps(value, ensure_ascii=False)


def _print(shell: CommandShell, lines: Iterable[Line]) -> None:
    for line in lines:
        if line.is_heading:
            shell.console.table([(line.text,)], styles=["bold"])
        else:
            shell.console.text(line.text)
