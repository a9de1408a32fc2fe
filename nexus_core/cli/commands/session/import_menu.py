"""`nexus session import` without a file: the sessions on this machine, and `--watch`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, NamedTuple

import typer

from nexus_core.cli.menu import describe_refused_answer, is_menu_number, shorten_home
from nexus_core.cli.output import format_time
from nexus_core.errors import NexusError, UsageError
from nexus_core.text.console import format_bytes, format_count
from nexus_core.text.safety import visible_line
from nexus_core.transcripts.locations import PROGRAM_NAMES, find_all_transcripts
from nexus_core.transcripts.read import list_transcript_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from nexus_core.cli.context import CliContext
    from nexus_core.transcripts.base import TranscriptFormat
    from nexus_core.transcripts.locations import TranscriptFile

    _FileStates = tuple[tuple[str, int, int], ...]

_MAX_QUESTIONS = 3
_SECONDS_BETWEEN_LOOKS = 1.0


class TranscriptGroup(NamedTuple):
    """The transcripts of one agent in one directory.

    Attributes:
        program: The program, as `--from` names it.
        directory: The working directory; "" if the files name none.
        files: The files, oldest first, so that a session comes before its subagents.
    """

    program: str
    directory: str
    files: tuple[TranscriptFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(each.size for each in self.files)

    @property
    def changed(self) -> float:
        """Time of the last change, in seconds since 1970."""
        return max(each.changed for each in self.files)


def choose_transcripts(cli: CliContext, *, only_list: bool, json: bool) -> list[str]:
    """List the transcripts on this machine by agent and directory, and return those that the user chooses.

    Without a terminal, or with `--list` or `--json`, they are listed only.
    """
    readers = cli.transcript_readers()
    found, more = find_all_transcripts(readers)
    groups = group_transcripts(found)
    names = PROGRAM_NAMES | {reader.name: reader.program for reader in readers}
    if json:
        cli.console.json({"schema": 1, "groups": [_group_to_json(group) for group in groups], "more": more})
        return []
    if not groups:
        cli.console.message("No sessions of other agents were found. `nexus session import FILE` imports a file.")
        return []
    _print_groups(cli, groups, names, more)
    if only_list or not (cli.can_ask and cli.console.is_terminal):
        cli.console.message("`nexus session import --from AGENT` imports those of this directory, FILE any other.")
        return []
    return [str(file.path) for group in _ask(cli, groups) for file in group.files]


def group_transcripts(found: Iterable[TranscriptFile]) -> list[TranscriptGroup]:
    """Return transcripts by program and directory, those that changed last first."""
    grouped: dict[tuple[str, str], list[TranscriptFile]] = {}
    for each in found:
        grouped.setdefault((each.program, each.directory), []).append(each)
    groups = [
        TranscriptGroup(program, directory, tuple(sorted(files, key=lambda each: (len(each.path.parts), each.changed))))
        for (program, directory), files in grouped.items()
    ]
    return sorted(groups, key=lambda group: (-group.changed, group.program, group.directory))


def _print_groups(cli: CliContext, groups: Sequence[TranscriptGroup], names: dict[str, str], more: int) -> None:
    rows = [
        (
            str(number),
            names.get(group.program, group.program),
            f"{len(group.files):,}",
            format_bytes(group.size),
            format_time(int(group.changed * 1000)),
            visible_line(shorten_home(group.directory) or "-"),
        )
        for number, group in enumerate(groups, 1)
    ]
    heading = ("", "AGENT", "FILES", "SIZE", "CHANGED", "DIRECTORY")
    cli.console.table([heading, *rows], styles=["bold"], right={0, 2, 3})
    if more:
        cli.console.message(f"{format_count(more, 'older file')} not looked at")


def _ask(cli: CliContext, groups: Sequence[TranscriptGroup]) -> list[TranscriptGroup]:
    """Return the chosen groups.

    Raises:
        typer.Exit: The user wants nothing.
        typer.Abort: The input has ended.
        UsageError: No answer was understood.
    """
    line = ""
    for _ in range(_MAX_QUESTIONS):
        cli.console.message("Which ones? Numbers such as 1 3 or 1,3, a for all, q to quit:")
        line = sys.stdin.readline()
        if not line:
            raise typer.Abort
        answer = line.replace(",", " ").split()
        if answer in ([], ["q"]):
            raise typer.Exit
        if answer == ["a"]:
            return list(groups)
        refused = next((each for each in answer if not is_menu_number(each, len(groups))), None)
        if refused is None:
            return [groups[number] for number in sorted({int(each) - 1 for each in answer})]
        cli.console.message(describe_refused_answer(refused, len(groups)))
    raise UsageError(f"{line.strip()!r} is not one of them", hint="nexus session import FILE")


def watch_files(
    cli: CliContext,
    list_names: Callable[[], Sequence[str]],
    import_names: Callable[[Sequence[str]], None],
    formats: Sequence[TranscriptFormat] = (),
    wait: Callable[[], None] = lambda: time.sleep(_SECONDS_BETWEEN_LOOKS),
) -> None:
    """Import files, and import them again whenever they change, until Ctrl-C.

    A file that cannot be read, as one that is just being written, is reported and tried again after its next change.

    Args:
        cli: The command.
        list_names: Returns the files; called before each look, because new ones may appear.
        import_names: Imports files.
        formats: Formats that know the other files of a conversation in several files; growth in any of them counts.
        wait: Waits for the next look.
    """
    seen: dict[str, _FileStates] = {}
    try:
        while True:
            states = {name: _get_states(cli.cwd / name, formats) for name in list_names()}
            changed = [name for name, state in states.items() if state and seen.get(name) != state]
            seen |= {name: state for name, state in states.items() if state}
            if changed:
                try:
                    import_names(changed)
                except NexusError as error:
                    cli.console.error(str(error))
                except typer.Exit:  # reported already
                    pass
            wait()
    except KeyboardInterrupt:
        cli.console.message("Stopped watching.")


def _get_states(path: Path, formats: Sequence[TranscriptFormat]) -> _FileStates:
    """Return path, size and time of each file of a conversation, () if its first file is not there."""
    try:
        paths = list_transcript_files(path, formats)
    except NexusError:  # the import reports it
        paths = [path]
    found: list[tuple[str, int, int]] = []
    for each in paths:
        try:
            stat = each.stat()
        except OSError:
            if each == path:
                return ()
            continue  # it was just deleted
        found.append((str(each), stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def _group_to_json(group: TranscriptGroup) -> dict[str, object]:
    return {
        "program": group.program,
        "directory": group.directory or None,
        "files": [str(each.path) for each in group.files],
        "bytes": group.size,
        "changed": int(group.changed * 1000),
    }
