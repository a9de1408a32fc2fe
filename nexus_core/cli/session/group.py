"""The group `nexus session`, and what its commands have in common: which ledger, which session."""

from __future__ import annotations

from typing import Annotated

import typer

from nexus_core.cli.ledger import LedgerUrl, find_session, ledger_url, open_nexus, open_session, session_labels

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

app = typer.Typer(
    help="Look at conversations, move them, mend them.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus session list\n  nexus session show auth-bug",
)

Label = Annotated[str, typer.Argument(metavar="LABEL", help="A session.", autocompletion=session_labels)]
OptionalLabel = Annotated[
    str | None, typer.Argument(metavar="[LABEL]", help="A session; all by default.", autocompletion=session_labels)
]
Full = Annotated[bool, typer.Option("--full", help="Long texts and results whole.")]
