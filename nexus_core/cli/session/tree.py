"""`nexus session tree`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.bars import line_width
from nexus_core.cli.options import Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import LedgerUrl, OptionalLabel, app, find_session, open_nexus
from nexus_core.history.ledger.opening import without_secret
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nexus_core.cli.session.branches import Item, Line, Tree
    from nexus_core.cli.session.damage import Damaged
    from nexus_core.cli.shell import CommandShell
    from nexus_core.values.ledger import Ledger, SessionRecord

_LINES = 200
"""So many lines are drawn, unless all are wanted."""

EXAMPLES = """
\b
Examples:
  nexus session tree              where every session stands
  nexus session tree auth-bug     the conversation it is part of, with all its forks
"""


@app.command(epilog=EXAMPLES)
def tree(
    ctx: typer.Context,
    label: OptionalLabel = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help=f"Every turn, and more than {_LINES} lines.")] = False,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Draw how conversations branch: forks, compactions, open turns, and where each session stands.

    `-` is the start of a session, `*` a turn, `o` one that is open, `#` a compaction, `~` one taken back, `:` turns
    about which there is nothing to say, `!` what is damaged; that is named on standard error, and the exit code is 3.
    With LABEL, its workers are drawn too. `nexus session fork LABEL NEW --at TURN` begins at any closed turn, and --all
    lists them all.
    """
    from nexus_core.cli.session.branches import find_trees, read_lines  # noqa: PLC0415 - other commands do not need it
    from nexus_core.cli.session.damage import tell_damage  # noqa: PLC0415 - as above

    shell: CommandShell = ctx.obj
    with open_nexus(ctx, ledger) as nexus:
        records = nexus.ledger.sessions(status=None)
        found, damaged = find_trees(nexus.ledger, records)
        trees = _chosen(nexus.ledger, found, label)
        chosen = {name for each in trees for name in each.labels}
        if label is not None:
            chosen.add(find_session(nexus.ledger, label).label)
            damaged = [each for each in damaged if each.label in chosen]
        read = _noting_damage(
            ((each, [*read_lines(nexus.ledger, each, records, unfolded=everything)]) for each in trees), damaged
        )
        if json:
            some = [*_enough(read, None if everything else _LINES)]
            document = [_facts(each, lines) for each, lines in some]
            told = {"trees": document, "more_trees": len(trees) - len(some)}
            shell.console.json({"schema": 1, **told, "damaged": [each._asdict() for each in damaged]})
        elif trees:
            _print(shell, read, len(trees), None if everything else _LINES)
        elif damaged:
            pass
        elif label is None:
            shell.console.message(f"No sessions in {without_secret(nexus.ledger.url)}.")
        else:
            shell.console.message("Nothing has been said in it yet.")
        tell_damage(shell, damaged)


def _chosen(ledger: Ledger, trees: list[Tree], label: str | None) -> list[Tree]:
    if label is None:
        return trees
    from nexus_core.cli.session.branches import with_workers  # noqa: PLC0415 - as above

    record: SessionRecord = find_session(ledger, label)
    return with_workers(trees, record.label)


def _noting_damage(
    read: Iterable[tuple[Tree, list[Line]]], damaged: list[Damaged]
) -> Iterator[tuple[Tree, list[Line]]]:
    """What is read, with damage noted as it is found; that of one conversation counts once, for its first session."""
    from nexus_core.cli.session.damage import Damaged  # noqa: PLC0415 - as above

    for each, lines in read:
        damaged += [Damaged(each.labels[0], what) for line in lines for what in line.damage]
        yield each, lines


def _enough(read: Iterator[tuple[Tree, list[Line]]], most: int | None) -> Iterator[tuple[Tree, list[Line]]]:
    """Whole trees, until they have so many lines together; those behind are not read."""
    left = most
    for each, lines in read:
        yield each, lines
        if left is not None:
            left -= sum(len(line.items) for line in lines)
            if left <= 0:
                return


def _print(shell: CommandShell, read: Iterator[tuple[Tree, list[Line]]], trees: int, most: int | None) -> None:
    from nexus_core.cli.session.drawing import draw  # noqa: PLC0415 - as above

    drawn = shown = 0
    for number, (each, lines) in enumerate(_enough(read, most)):
        if number:
            shell.console.text("")
        shell.console.table([(_heading(each, lines),)], styles=["bold"])
        text = list(draw({line.branch.id: line for line in lines}, each.root, line_width()))
        room = None if most is None else max(most - drawn, 1)
        for line in islice(text, room):
            shell.console.text(line)
        if room is not None and len(text) > room:
            shell.console.message(f"({counted(len(text) - room, 'more line')}; --all shows them)", style="dim")
        drawn += len(text)
        shown += 1
    if shown < trees:
        shell.console.message(f"({counted(trees - shown, 'more tree')}; --all shows them)", style="dim")


def _heading(each: Tree, lines: Sequence[Line]) -> str:
    turns = sum(line.turns for line in lines)
    facts = (
        counted(turns, "turn"),
        f"{len(lines):,} branch{'es' * (len(lines) != 1)}",
        counted(len(each.labels), "session"),
        *([f"worker of {each.maker}"] if each.maker else []),
    )
    return visible_line(", ".join(facts))


def _facts(each: Tree, lines: Sequence[Line]) -> dict[str, object]:
    return {
        "root": each.root,
        "sessions": list(each.labels),
        "worker_of": each.maker,
        "branches": [
            {
                "id": line.branch.id,
                "left_from": line.branch.parent.id if line.branch.parent else None,
                "turns": line.turns,
                "items": [_item_facts(item) for item in line.items],
            }
            for line in lines
        ],
    }


def _item_facts(item: Item) -> dict[str, object]:
    if isinstance(item, int):
        return {"folded": item}
    facts = item._asdict()
    return {**facts, "sessions": list(item.sessions), "forks": list(item.forks)}
