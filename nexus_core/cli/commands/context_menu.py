"""The transcripts that `nexus context` offers if it is called without an argument."""

from __future__ import annotations

import sys
from shlex import quote
from typing import TYPE_CHECKING

import typer

from nexus_core.cli.input import get_input_size
from nexus_core.cli.menu import describe_refused_answer, is_menu_number, shorten_home, shorten_path
from nexus_core.cli.output import excerpt_message, format_time
from nexus_core.errors import NexusError, UsageError
from nexus_core.memory.statements import strip_inserted_text
from nexus_core.text.console import format_bytes
from nexus_core.text.layout import shorten_to_width
from nexus_core.text.safety import visible_line
from nexus_core.transcripts.locations import (
    MAX_BEGINNING_BYTES,
    PROGRAM_NAMES,
    find_newest_transcripts,
    is_about_directory,
    read_beginning,
)
from nexus_core.transcripts.read import gather_transcript, list_transcript_files, read_transcript

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.cli.context import CliContext
    from nexus_core.transcripts.base import TranscriptFormat
    from nexus_core.transcripts.locations import TranscriptFile

_MAX_OFFERED = 8
"""Transcripts that are offered: with two lines each, they and the question fit a terminal of 24 lines."""
_OTHER_CELLS = 52
"""Terminal cells of a row beside its directory, of which the end is shown where it does not fit."""
_MAX_QUESTIONS = 3
_MAX_MESSAGE_CELLS = 60
"""Terminal cells of a first message in the menu: enough to tell one conversation from another."""
_MAX_TREE_BYTES = 1 << 23
"""Bytes of a conversation in several files that is read for its first message: a tenth of a second."""
_THIS_DIRECTORY = "."


def choose_transcript(cli: CliContext) -> str | None:
    """Return the transcript that the user chooses at the terminal, or None for the request of this directory.

    Without a terminal nothing is chosen: the newest transcript is named on standard error with the command that shows
    it. Where there are none, a person at a terminal is told what to do about that.
    """
    readers = cli.transcript_readers()
    names = PROGRAM_NAMES | {reader.name: reader.program for reader in readers}
    if not (cli.can_ask and cli.console.is_terminal):
        newest, _ = find_newest_transcripts(1, readers, cli.cwd)
        for each in newest:
            described = _describe(each, names)
            where = "of this directory" if is_about_directory(each, cli.cwd) else "on this machine"
            cli.console.message(f"(the newest transcript {where} is {described}: {_format_command(each)})")
        return None
    found, more = find_newest_transcripts(_MAX_OFFERED, readers, cli.cwd)
    if not found:
        *agents, last = dict.fromkeys(names.values())
        what = f"No transcripts of {', '.join(agents)} or {last} were found."
        here = "This is what a request from here would send."
        cli.console.message(
            visible_line(f"{what} {here} `nexus context FILE` shows a conversation of any agent or API.")
        )
        return None
    with cli.console.unpaged():
        _print_menu(cli, found, more, names)
        chosen = _ask(cli, len(found))
    if chosen is None:
        return None
    cli.console.message(visible_line(_format_command(found[chosen]).strip("`")), style="dim")
    return str(found[chosen].path)


def _print_menu(cli: CliContext, found: list[TranscriptFile], more: int, names: Mapping[str, str]) -> None:
    formats = cli.transcript_formats()
    rows = [
        (
            str(number),
            names.get(each.program, each.program),
            format_time(int(each.changed * 1000)),
            format_bytes(each.size),
            _format_directory(cli, each),
            _read_first_message(each, formats),
        )
        for number, each in enumerate(found, 1)
    ]
    here = f"what a request from {shorten_home(str(cli.cwd))} would send"
    cli.console.text("Where do the tokens go? The newest conversations on this machine:", style="bold", wrap=True)
    cli.console.text("")
    heading = ("", "AGENT", "CHANGED", "SIZE", "DIRECTORY", "FIRST MESSAGE")
    cli.console.table([heading, *rows], styles=["bold"], right={0, 3})
    if more:
        cli.console.text(f"   and {more:,} more: nexus context FILE", style="dim")
    cli.console.text(f"{_THIS_DIRECTORY}  {visible_line(here)}", wrap=True)
    cli.console.text("")


def _format_directory(cli: CliContext, each: TranscriptFile) -> str:
    """Return the end of the directory of a transcript, marked if it is the working directory."""
    path = shorten_path(shorten_home(each.directory), max(cli.console.width - _OTHER_CELLS, 1))
    return f"{path} (here)" if is_about_directory(each, cli.cwd) else path or "-"


def _read_first_message(each: TranscriptFile, formats: Sequence[TranscriptFormat]) -> str:
    """Return the beginning of the first message that the user wrote, `-` if it cannot be found.

    A bare command such as `/clear` is taken only if there is nothing else: many conversations begin with one.
    Only the beginning of the file is read; a conversation in several files is read if it is small.
    """
    try:
        transcript = read_transcript(_read_beginning_text(each, formats), formats=formats)
    except NexusError:
        return "-"
    said = [entry.message for entry in transcript.entries if entry.kind == "said" and entry.message.role == "user"]
    typed = [message for message in said if strip_inserted_text(message.content)]
    first = next((text for message in typed or said if (text := excerpt_message(message))), "")
    return shorten_to_width(visible_line(first), _MAX_MESSAGE_CELLS) or "-"


def _read_beginning_text(each: TranscriptFile, formats: Sequence[TranscriptFormat]) -> str:
    files = list_transcript_files(each.path, formats)
    if len(files) > 1 and sum(get_input_size(each.path.parent, str(file)) for file in files) <= _MAX_TREE_BYTES:
        gathered = gather_transcript(each.path, formats)
        if gathered is not None:
            return gathered
    found = read_beginning(each.path)
    beginning = found[1] if found else b""
    if len(beginning) == MAX_BEGINNING_BYTES:
        beginning = beginning[: beginning.rfind(b"\n") + 1]  # without the line that is cut off
    return beginning.decode("utf-8", "replace")


def _ask(cli: CliContext, number: int) -> int | None:
    """Return the index of the chosen transcript, or None for this directory.

    Raises:
        typer.Exit: The user wants nothing.
        typer.Abort: The input has ended.
        UsageError: No answer was understood.
    """
    line = ""
    for _ in range(_MAX_QUESTIONS):
        cli.console.message(f"Which one? Enter for 1, a number, {_THIS_DIRECTORY} for this directory, q to quit:")
        line = sys.stdin.readline()
        if not line:
            raise typer.Abort
        answer = line.strip()
        if answer == "q":
            raise typer.Exit
        if answer == _THIS_DIRECTORY:
            return None
        if not answer:
            return 0
        if is_menu_number(answer, number):
            return int(answer) - 1
        cli.console.message(describe_refused_answer(answer, number))
    hint = "nexus context FILE, or nexus context -C . for this directory"
    raise UsageError(f"{line.strip()!r} is not one of them", hint=hint)


def _describe(each: TranscriptFile, names: Mapping[str, str]) -> str:
    where = f" in {shorten_home(each.directory)}" if each.directory else ""
    name, changed = names.get(each.program, each.program), format_time(int(each.changed * 1000))
    return visible_line(f"{name}{where}, {changed}, {format_bytes(each.size)}")


def _format_command(each: TranscriptFile) -> str:
    return visible_line(f"`nexus context {quote(str(each.path))}`")
