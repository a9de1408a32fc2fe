"""All commands of `nexus session`; importing this fills the group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.cli.session import (
    changing,
    compacting,
    deletion,
    exporting,
    importing,
    listing,
    mending,
    pinning,
    recording,
    replaying,
    searching,
    showing,
    stats,
    tree,
    undoing,
)
from nexus_core.cli.session.group import app

if TYPE_CHECKING:
    from typer.models import CommandInfo

__all__ = [
    "LINES",
    "app",
    "changing",
    "compacting",
    "deletion",
    "exporting",
    "importing",
    "listing",
    "mending",
    "pinning",
    "recording",
    "replaying",
    "searching",
    "showing",
    "stats",
    "tree",
    "undoing",
]

LINES = {
    "list": "List sessions, and under each its workers.",
    "show": "Show what was said in a session.",
    "search": "Find where something was said.",
    "tree": "Draw how conversations branch.",
    "stats": "Add up turns, messages, tokens and cost.",
    "record": "Record what was said, answered and brought.",
    "replay": "Print what was sent before a reply.",
    "compact": "Have earlier turns summarised.",
    "undo": "Take the latest compaction back.",
    "expand": "Show what a compaction stands for.",
    "pin": "Keep a step as it is when the rest is summarised.",
    "fork": "Begin a new session where a turn of another ended.",
    "rename": "Give a session another name.",
    "archive": "Put a session away, or restore it.",
    "delete": "Erase a session, and record that it was deleted.",
    "import": "Bring conversations of other programs into the ledger.",
    "export": "Write a session into a file.",
    "verify": "Say what is not as it was recorded.",
    "repair": "Save what is whole into a new ledger.",
    "copy": "Copy everything into a new ledger, from a file to a server or back.",
}
"""The commands in the order of the help page, with the line that each has there."""


def _name(command: CommandInfo) -> str:
    return str(command.name or getattr(command.callback, "__name__", ""))


for _command in app.registered_commands:
    _command.short_help = LINES[_name(_command)]
app.registered_commands.sort(key=lambda command: [*LINES].index(_name(command)))
