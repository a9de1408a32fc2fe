"""Two requests, or one that is made several times, held against each other."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.assembly.difference import Difference, Side, compare
from nexus_core.assembly.sides import side_of
from nexus_core.cli.ledger import where_it_works
from nexus_core.cli.request.operands import Operand, call_before, find_operand, find_two
from nexus_core.errors import UsageError
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from nexus_core.assembly.sides import Sendable
    from nexus_core.cli.shell import CommandShell
    from nexus_core.nexus import Nexus


class Compared(NamedTuple):
    """Two requests.

    Attributes:
        names: What they are called.
        sides: What they are made of.
        difference: By what they differ.
    """

    names: tuple[str, str]
    sides: tuple[Side, Side]
    difference: Difference


def compare_two(shell: CommandShell, nexus: Nexus, a: str, b: str | None) -> Compared:
    """By what B differs from A; without B, by what the last call of A differs from the one before."""
    before, after = call_before(nexus, find_operand(nexus, a)) if b is None else find_two(nexus, a, b)
    made = _read(shell, nexus, before), _read(shell, nexus, after)
    if made[0].api != made[1].api:
        from nexus_core.cli.request.written import translated  # noqa: PLC0415 - only for files

        api = made[1].api or made[0].api
        made = translated(nexus, made[0], api), translated(nexus, made[1], api)
    marks = nexus.dialects.cache_marks()
    sides = side_of(made[0], marks), side_of(made[1], marks)
    return Compared((str(before), str(after)), sides, compare(*sides))


def compare_again(shell: CommandShell, nexus: Nexus, a: str | None, ledger: str | None) -> Compared:
    """By what A, or what goes to a model here, differs from itself, made again.

    Args:
        shell: What opens a Nexus for another directory.
        nexus: Who knows what A is.
        a: What to make; None for this directory.
        ledger: The url of the ledger; None for the user's own.
    """
    from nexus_core.cli.request.twice import made_again  # noqa: PLC0415 - only with --check

    operand = Operand("", "") if a is None else find_operand(nexus, a)
    if operand.kind == "file":
        raise UsageError("a file is the same each time it is read", hint="nexus diff A B --check")
    with where_it_works(shell, nexus, operand.session) as there:
        name, first = str(operand), _steady(operand, operand.read(there))
        last = first
        reopened = shell.nexus(ledger=ledger, cwd=there.cwd)
        with closing(made_again(operand, there, ledger or "", reopened)) as again:
            for name, made in again:  # noqa: B007 - the last name counts
                last = _steady(operand, made)
                if compare(first, last).first is not None:
                    break
    return Compared((str(operand), name), (first, last), compare(first, last))


def _read(shell: CommandShell, nexus: Nexus, operand: Operand) -> Sendable:
    with where_it_works(shell, nexus, operand.session) as there:
        if operand.kind == "model":
            _warn(shell, there, operand.name)
        return operand.read(there)


def _warn(shell: CommandShell, nexus: Nexus, model: str) -> None:
    """Say that nobody knows a model: its window and its tokens are guesses then."""
    from nexus_core.tokens.counters import find_unknown  # noqa: PLC0415 - only where a model is named

    if (finding := find_unknown(model, host=nexus.host, settings=nexus.load().settings)) is not None:
        shell.console.warning(visible_line(str(finding)))


def _steady(operand: Operand, made: Sendable) -> Side:
    """What must be the same each time: of what would be sent now, the last message tells the time."""
    return side_of(made if operand.kind == "step" else made._replace(messages=(), message_tokens=()))
