"""The group `nexus session`, and what its commands have in common: which ledger, which session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from nexus_core.cli.ledger import LedgerUrl, find_session, ledger_url, open_nexus, open_session, session_labels
from nexus_core.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from typer._click import Command, Context  # private, but it is what the method we override is typed with

__all__ = [
    "Full",
    "Label",
    "LedgerUrl",
    "OptionalLabel",
    "app",
    "find_session",
    "ledger_url",
    "open_nexus",
    "open_session",
]

_DELETING = ("clear", "drop", "erase", "forget", "purge", "remove", "rm")


class SessionGroup(TyperGroup):
    """The group; whoever asks for a command that it has not is told what there is instead."""

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """The command that is meant.

        Raises:
            UsageError: There is no such command.
        """
        name = args[0]
        if name in self.commands or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        if name in _DELETING:
            hint = "`nexus session delete LABEL` erases a session; `nexus session archive LABEL` only puts it away"
            raise UsageError(f"unknown command {name!r}", hint=hint)
        raise UnknownNameError("command", name, self.commands)


app = typer.Typer(
    cls=SessionGroup,
    help="Look at conversations, move them, mend them.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus session list\n  nexus session show auth-bug",
)

Label = Annotated[str, typer.Argument(metavar="LABEL", help="A session.", autocompletion=session_labels)]
OptionalLabel = Annotated[
    str | None, typer.Argument(metavar="[LABEL]", help="A session; all by default.", autocompletion=session_labels)
]
WithSecrets = Annotated[
    bool, typer.Option("--with-secrets", help="Of messages, also keys, tokens and passwords that stand in them.")
]
Full = Annotated[bool, typer.Option("--full", help="Long texts and results whole.")]
