"""Greets the working directory: the section `## Hello`, and the command `nexus hello`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import Section, hookimpl
from nexus_core.plugin import Command
from nexus_core.plugin.text import visible_line

if TYPE_CHECKING:
    from pathlib import Path

    from nexus_core import Request


@hookimpl
def nexus_commands() -> list[Command]:
    """`nexus hello`; Typer is in `_cli` alone, so that other commands do not wait for it."""
    return [Command("hello", "Greet the working directory.", "nexus_hello._cli:app")]


@hookimpl
def nexus_static_sections(request: Request) -> list[Section]:
    """The section `## Hello`."""
    return [Section("hello", title="Hello", text=greeting(request.cwd))]


def greeting(directory: Path) -> str:
    """What is said to a directory, in one line."""
    # Directories may be called anything; a line break in a name must not start a heading of its own.
    return f"Hello, {visible_line(directory.name or str(directory))}!"
