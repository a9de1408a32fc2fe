"""What of a ledger cannot be read: noted while the rest is shown, and told after it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import typer

from nexus_core.cli.exits import CONFIGURATION
from nexus_core.errors import LedgerError, UnreachableError
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.cli.shell import CommandShell

_SHOWN = 20
"""So much damage is named one by one; `nexus session verify` has all of it."""


class Damaged(NamedTuple):
    """A session that cannot be read, or not all of it, and why; without a label, something of the ledger."""

    label: str
    what: str


@contextmanager
def noting(damaged: list[Damaged], label: str) -> Iterator[None]:
    """Note what is damaged, and go on behind it.

    Raises:
        UnreachableError: The ledger does not answer any more.
    """
    try:
        yield
    except UnreachableError:
        raise
    except LedgerError as error:
        damaged.append(Damaged(label, error.what))


def tell_damage(shell: CommandShell, damaged: Sequence[Damaged]) -> None:
    """Say on standard error what could not be read, if anything, and exit with 3 then."""
    if not damaged:
        return
    for each in damaged[:_SHOWN]:
        whose = f"session {each.label!r}" if each.label else "the ledger"
        shell.console.error(visible_line(f"{whose} is damaged: {each.what}"))
    if len(damaged) > _SHOWN:
        shell.console.message(f"  ({counted(len(damaged) - _SHOWN, 'more fault')})")
    shell.console.message("  `nexus session verify` says what is wrong, `nexus session repair` saves what is whole")
    raise typer.Exit(CONFIGURATION)
