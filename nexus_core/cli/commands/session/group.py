"""The group `nexus session`, with its table of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from nexus_core.cli.lazy_group import LazyGroup
from nexus_core.errors import UsageError
from nexus_core.types.plugins import Command

if TYPE_CHECKING:
    from typer._click import Context  # private, but it is what the method we override is typed with

_DELETE_SYNONYMS = ("clear", "drop", "erase", "forget", "purge", "remove", "rm")


class SessionGroup(LazyGroup):
    """The commands of `nexus session`, in the order of the help page."""

    path = "session"
    core = {  # noqa: RUF012 - a table, never changed
        command.name: command
        for command in (
            Command("list", "List sessions with their workers.", "nexus_core.cli.commands.session.list:app"),
            Command(
                "show", "Show the messages and tool calls of a session.", "nexus_core.cli.commands.session.show:app"
            ),
            Command("search", "Search the messages of all sessions.", "nexus_core.cli.commands.session.search:app"),
            Command(
                "tree", "Draw the turns and forks of sessions as a tree.", "nexus_core.cli.commands.session.tree:app"
            ),
            Command(
                "stats",
                "Add up turns, messages, tokens and cost of sessions.",
                "nexus_core.cli.commands.session.stats:app",
            ),
            Command(
                "record",
                "Append messages, replies and tool results to a session.",
                "nexus_core.cli.commands.session.record:app",
            ),
            Command("replay", "Print the request that led to a reply.", "nexus_core.cli.commands.session.replay:app"),
            Command(
                "compact", "Summarize the earlier turns of a session.", "nexus_core.cli.commands.session.compact:app"
            ),
            Command("pin", "Keep a step as it is in compactions.", "nexus_core.cli.commands.session.compact:app"),
            Command("unpin", "Let compactions summarize a pinned step.", "nexus_core.cli.commands.session.compact:app"),
            Command(
                "fork",
                "Start a new session at a turn of another.",
                "nexus_core.cli.commands.session.lifecycle:app",
            ),
            Command("rename", "Rename a session.", "nexus_core.cli.commands.session.lifecycle:app"),
            Command("archive", "Archive a session.", "nexus_core.cli.commands.session.lifecycle:app"),
            Command("unarchive", "Restore an archived session.", "nexus_core.cli.commands.session.lifecycle:app"),
            Command(
                "delete",
                "Delete a session and erase its content.",
                "nexus_core.cli.commands.session.lifecycle:app",
            ),
            Command(
                "import",
                "Import transcripts of other programs as sessions.",
                "nexus_core.cli.commands.session.import_files:app",
            ),
            Command("export", "Export a session to a file.", "nexus_core.cli.commands.session.export:app"),
        )
    }

    def unknown_command(self, ctx: Context, name: str) -> UsageError:
        """Return the error for an unknown command. For a synonym of `delete`, its hint names that."""
        if name not in _DELETE_SYNONYMS:
            return super().unknown_command(ctx, name)
        hint = "`nexus session delete NAME` erases a session; `nexus session archive NAME` only puts it away"
        return UsageError(f"unknown command {name!r}", hint=hint)


app = typer.Typer(
    cls=SessionGroup,
    help="Show, record, change and move sessions.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus session list\n  nexus session show auth-bug",
)


@app.callback()
def session() -> None:
    """Do nothing: Typer needs a callback to make a group of an application without commands."""
