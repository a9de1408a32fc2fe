"""Files become sessions, and the report of it."""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import typer

from nexus_core.cli.exits import CONFIGURATION
from nexus_core.cli.given_file import STANDARD_INPUT, decode_with_gaps, read_given, size_of_given
from nexus_core.cli.session.import_report import Outcome, SessionRow, print_outcomes, print_outcomes_json
from nexus_core.cli.tables import right_aligned
from nexus_core.dialects.transcripts.reading import read_transcript, split_conversations
from nexus_core.errors import ExistsError, FileError, MessageError, UsageError
from nexus_core.history.findings import UNREPAIRED
from nexus_core.history.mending.steps import mend
from nexus_core.session.exporting.reading import is_export, read_export
from nexus_core.session.exporting.restoring import restore
from nexus_core.session.importing.finding import find_transcripts, transcripts_directory
from nexus_core.session.importing.tallies import tally_until
from nexus_core.session.importing.transcripts import (
    Given,
    about_import,
    digest_of,
    find_imported,
    import_transcript,
)
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.cli.shell import CommandShell
    from nexus_core.dialects.finding import Dialects
    from nexus_core.dialects.transcripts.transcript import Transcript
    from nexus_core.errors import NexusError
    from nexus_core.session.importing.finding import Found
    from nexus_core.session.importing.transcripts import Imported
    from nexus_core.text.progress import Progress
    from nexus_core.values.ledger import Ledger, NewStep, SessionRecord

_LOOKED_AT = 500
"""So many of the newest messages are looked through for what has to be put right: seldom more are sent."""
_READ, _WRITTEN = 0.6, 0.4
"""How the time that a file takes is divided, for the bar."""


class _Task(NamedTuple):
    """What is to be done with a file, or with one of several conversations in it.

    Attributes:
        name: The file, in the report.
        data: What is in it.
        text: The same, decoded.
        source: The name of the file, from which a session without an id gets its own; "" for standard input.
        label: What the session shall be called.
        cwd: The directory it is about, where that is known.
        dry_run: True to plan only, without adding anything to the ledger.
    """

    name: str
    data: bytes
    text: str
    source: str
    label: str
    cwd: str
    dry_run: bool


def find_files(shell: CommandShell, program: str) -> list[Found]:
    """The files of a program that are about this directory; says so when there are none."""
    found = find_transcripts(program, shell.cwd)
    if not found:
        where = visible_line(str(transcripts_directory(program)))
        shell.console.message(f"{program} keeps no session of this directory in {where}.")
    return found


def list_files(shell: CommandShell, program: str, found: Sequence[Found], *, json: bool) -> None:
    """Print which files there are."""
    from nexus_core.cli.session.overview import moment  # noqa: PLC0415 - only with --list

    facts = [(str(each.path), each.size, int(each.changed * 1000)) for each in found]
    if json:
        files = [{"file": name, "bytes": size, "changed": changed} for name, size, changed in facts]
        shell.console.json({"schema": 1, "program": program, "files": files})
    elif facts:
        rows = [(f"{size:,}", moment(changed), name) for name, size, changed in facts]
        shell.console.table(right_aligned([("BYTES", "CHANGED", "FILE"), *rows], {0}), styles=["bold"])


def import_files(
    shell: CommandShell, ledger: Ledger, names: Sequence[str], *, label: str, cwd: str, dry_run: bool, json: bool
) -> None:
    """Import files one by one, and print what became of each; one that cannot be read does not stop the others.

    In a dry run the files go into a trial ledger, so that each finds what the ones before it would have added.
    """
    target = _trial_of(ledger) if dry_run else ledger
    is_planned_only = dry_run and target is ledger
    outcomes: list[Outcome] = []
    refused: list[dict[str, str]] = []
    with (
        shell.console.progress(sum(size_of_given(shell.cwd, name) for name in names)) as progress,
        without_collecting(),
    ):

        def refuse(name: str, error: NexusError, *, is_only: bool) -> None:
            if is_only and not json:
                raise error
            progress.close()
            shell.console.error(str(error))
            refused.append({"file": name, "reason": error.what, "code": getattr(error, "code", "")})

        for name in names:
            try:
                tasks = _tasks(shell, name, label=label, cwd=cwd, dry_run=is_planned_only)
            except (FileError, UsageError) as error:
                refuse(name, error, is_only=len(names) == 1)
                continue
            for task in tasks:
                try:
                    outcomes.append(_import(shell, target, task, progress))
                except (FileError, MessageError, ExistsError) as error:
                    refuse(task.name, error, is_only=len(names) == len(tasks) == 1)
    if json:
        print_outcomes_json(shell.console, outcomes, refused, dry_run=dry_run)
    else:
        print_outcomes(shell.console, outcomes, dry_run=dry_run)
    if refused:
        raise typer.Exit(CONFIGURATION)


def _trial_of(ledger: Ledger) -> Ledger:
    """Return a ledger to try an import in; the given one, where it keeps conversations in a way of its own."""
    from nexus_core.history.ledger.ledger import StoreLedger  # noqa: PLC0415 - only in a dry run
    from nexus_core.history.ledger.memory import TrialLedger  # noqa: PLC0415 - as above

    return TrialLedger(ledger) if isinstance(ledger, StoreLedger) else ledger


@contextmanager
def without_collecting() -> Iterator[None]:
    """Do not look for garbage meanwhile: of the many values that a transcript becomes, none is."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _tasks(shell: CommandShell, name: str, *, label: str, cwd: str, dry_run: bool) -> list[_Task]:
    """Read a file: one task, or one for each of the conversations in it, which are imported independently."""
    data = read_given(shell.cwd, name, instead="name the files in it")
    text = decode_with_gaps(shell, name, data, fate="kept")
    source = "" if name == STANDARD_INPUT else name
    found = split_conversations(text)
    if not found:
        return [_Task(name, data, text, source, label, cwd, dry_run)]
    if label:
        raise UsageError(f"{len(found)} conversations cannot have one name", where=name, hint="leave out --label")
    stem, dot, suffix = source.rpartition(".")
    return [
        _Task(
            f"{name}:{each.line}",
            each.text.encode("utf-8", "replace"),
            each.text,
            f"{stem}-{number}{dot}{suffix}" if number > 1 else source,
            "",
            cwd,
            dry_run,
        )
        for number, each in enumerate(found, 1)
    ]


def _import(shell: CommandShell, ledger: Ledger, task: _Task, progress: Progress) -> Outcome:
    if is_export(task.text):
        return _restore(ledger, task, task.text, progress)
    digest = digest_of(task.data)
    known = find_imported(ledger, digest)
    if known:
        progress.advance(len(task.data))
        rows = [_same(ledger, record) for record in known]
        return Outcome(task.name, rows[0].label, rows, unused_label=_unused(ledger, task.label, rows[0].label))
    dialects = shell.dialects()
    transcript = read_transcript(task.text, task.name, dialects)
    progress.advance(len(task.data) * _READ)
    given = Given(transcript, task.data, task.source, task.label, task.cwd, digest)
    imported = import_transcript(ledger, given, dry_run=task.dry_run)
    progress.advance(len(task.data) * _WRITTEN)
    rows = _rows(ledger, imported)
    return Outcome(
        task.name,
        imported.label if rows else "",
        rows,
        transcript,
        find_repaired(transcript, dialects),
        left_out=imported.left_out,
        unused_label=_unused(ledger, task.label, imported.label) if rows else "",
    )


def _rows(ledger: Ledger, imported: Imported) -> list[SessionRow]:
    """A row for each session; what is there of a path already may be in one that another path has grown."""
    grown = {each.label for each in imported.growths if each.steps}
    return [
        SessionRow.of(
            each.label,
            each.path.kind,
            each.steps,
            each.tally,
            is_new=each.is_new,
            is_open=_is_open(each.steps, ledger.session(each.label)),
            note=each.note,
        )
        for each in imported.growths
        if each.path.items and (each.steps or each.label not in grown)
    ]


def _is_open(steps: Sequence[NewStep], record: SessionRecord | None) -> bool:
    """Whether the last turn of a session is open, with what is added to it."""
    return not steps[-1].closes if steps else record is not None and record.open_turn is not None


def _same(ledger: Ledger, record: SessionRecord) -> SessionRow:
    kind, is_open = str(about_import(record).get("kind")), record.open_turn is not None
    return SessionRow(record.label, kind, "same", tally_until(ledger, record.tip), is_open=is_open)


def _unused(ledger: Ledger, wanted: str, label: str) -> str:
    """The name that was wanted, where a session has another that was there before."""
    if not wanted or wanted == label:
        return ""
    named = ledger.session(wanted)
    return "" if named is not None and named.label == label else wanted


def _restore(ledger: Ledger, task: _Task, text: str, progress: Progress) -> Outcome:
    export = read_export(text, task.name)
    progress.advance(len(task.data) * _READ)
    restored = restore(ledger, export, label=task.label, dry_run=task.dry_run)
    progress.advance(len(task.data) * _WRITTEN)
    rows = [
        SessionRow.of(
            each.record.label,
            "fork" if place else "main",
            each.steps,
            each.tally,
            is_new=each.is_new,
            is_open=_is_open(each.steps, each.record),
        )
        for place, each in enumerate(restored)
    ]
    return Outcome(task.name, rows[0].label, rows, form="nexus", lines=text.count("\n"))


def find_repaired(transcript: Transcript, dialects: Dialects) -> dict[str, int]:
    """What is put right whenever it is sent, by its code; nothing of it is changed in the ledger."""
    context = transcript.context
    begin = max(len(context) - _LOOKED_AT, 0)
    while 0 < begin < len(context) and (context[begin].kind != "said" or context[begin].message.role != "user"):
        begin += 1  # only what the user said can be a beginning
    mended = mend([entry.message for entry in context[begin:]], dialects.get(transcript.api or "neutral").rules)
    return dict(sorted(Counter(finding.code for finding in mended.findings if finding.code not in UNREPAIRED).items()))
