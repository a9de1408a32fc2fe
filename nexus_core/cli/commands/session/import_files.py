"""`nexus session import`: transcripts and exports become sessions."""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import contextmanager
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nexus_core.cli.commands.session.overview import TOKEN_MARKS
from nexus_core.cli.context import get_exit_code
from nexus_core.cli.input import STANDARD_INPUT, decode_partial_text, get_input_size, read_transcript_bytes
from nexus_core.cli.menu import shorten_home
from nexus_core.cli.options import (
    DryRunOption,
    JsonOption,
)
from nexus_core.cli.session_lookup import LedgerOption, open_ledger_nexus
from nexus_core.errors import FileError, MessageError, SessionExistsError, UsageError
from nexus_core.history.repair.findings import UNREPAIRED_CODES
from nexus_core.history.repair.rules import apply_repair_rules
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line
from nexus_core.transcripts.base import LineReport
from nexus_core.transcripts.locations import PROGRAMS, find_transcripts, list_transcript_directories
from nexus_core.transcripts.read import load_formats, read_transcript, split_conversations
from nexus_core.transfer.exporter import import_export, is_export, read_export
from nexus_core.transfer.importer import TranscriptImporter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nexus_core.cli.context import CliContext
    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.errors import NexusError
    from nexus_core.nexus import Nexus
    from nexus_core.text.console import Console, ProgressBar
    from nexus_core.transcripts.base import LineOutcome as ReaderOutcome
    from nexus_core.transcripts.base import Transcript, TranscriptFormat
    from nexus_core.transcripts.locations import TranscriptFile
    from nexus_core.transfer.importer import SessionChange
    from nexus_core.types.ledger import Ledger

app = typer.Typer()

FilesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE]...", help="Transcripts, or exports of sessions; - is standard input."),
]
FromOption = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="PROGRAM",
        help="Sessions of this directory kept by claude, codex, copilot, …",
        autocompletion=lambda: [*PROGRAMS],
    ),
]
NewNameOption = Annotated[str, typer.Option("--name", metavar="NAME", help="Call the session NAME; for one FILE.")]
ListOption = Annotated[bool, typer.Option("--list", help="Only list them.")]
WatchOption = Annotated[bool, typer.Option("--watch", help="Go on importing what is added, until Ctrl-C.")]

EXAMPLES = """
\b
Examples:
  nexus session import --from claude --dry-run
  nexus session import rollout.jsonl --name auth-bug
"""


@app.command("import", epilog=EXAMPLES)
def import_sessions(
    ctx: typer.Context,
    files: FilesArgument = None,
    *,
    program: FromOption = "",
    label: NewNameOption = "",
    only_list: ListOption = False,
    watch: WatchOption = False,
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Import transcripts of other programs as sessions.

    FILE is a session of Claude Code, Codex, Gemini CLI, pi, NEXUS3 or one of the agents that `nexus plugin info
    transcripts` lists, an export of ChatGPT (a session per conversation), messages or a request of any API, or what
    `nexus session export` wrote. Without FILE, the sessions on this machine are listed by agent and directory, and at
    a terminal you choose. Importing a file again changes nothing; of one that has grown, only what is new is added. A
    report says what was read, merged, repaired and skipped.
    """
    cli: CliContext = ctx.obj
    _check_options(files, program, watch=watch, dry_run=dry_run)
    if not files and not program:
        from nexus_core.cli.commands.session.import_menu import choose_transcripts

        names = choose_transcripts(cli, only_list=only_list, json=json)
        if not names:
            return
    else:
        found = find_transcript_files(cli, program) if program else []
        if only_list:
            print_transcript_files(cli, program, found, json=json)
            return
        names = files or [str(each.path) for each in found]
    if label and len(names) > 1:
        raise UsageError(f"{len(names)} files cannot have one name", hint="leave out --name, or name one FILE")
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus:
        cwd = str(cli.cwd) if program else ""

        def import_names(given: Sequence[str]) -> None:
            import_files(cli, nexus, given, label=label, cwd=cwd, dry_run=dry_run, json=json)

        if watch:
            from nexus_core.cli.commands.session.import_menu import watch_files

            def list_names() -> list[str]:
                return [str(each.path) for each in find_transcripts(program, cli.cwd, cli.transcript_readers())]

            watch_files(cli, list_names if program else lambda: names, import_names, load_formats(nexus.host))
        else:
            import_names(names)


def _check_options(files: list[str] | None, program: str, *, watch: bool, dry_run: bool) -> None:
    if files and program:
        raise UsageError("FILE and --from name different things to import", hint="leave out one of them")
    if watch and dry_run:
        raise UsageError("--watch and --dry-run exclude each other", hint="leave out one of them")
    if watch and files and STANDARD_INPUT in files:
        raise UsageError("standard input cannot be watched", hint="name a FILE")


_MAX_CHECKED_MESSAGES = 500
"""Newest messages to check for repairs: a call rarely has more."""
_READ_SHARE, _WRITE_SHARE = 0.3, 0.7
"""Shares of reading and importing in the time that a file takes, for the bar; measured with a file of 10 MB."""


class _ImportTask(NamedTuple):
    """A file to import, or one of several conversations in it.

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


def find_transcript_files(cli: CliContext, program: str) -> list[TranscriptFile]:
    """Return a program's transcripts of this directory. Prints a message if there are none."""
    readers = cli.transcript_readers()
    found = find_transcripts(program, cli.cwd, readers)
    if not found:
        where = visible_line(", ".join(map(str, list_transcript_directories(program, readers))))
        cli.console.message(f"{program} keeps no session of this directory in {where}.")
    return found


def print_transcript_files(cli: CliContext, program: str, found: Sequence[TranscriptFile], *, json: bool) -> None:
    """Print which files there are."""
    from nexus_core.cli.output import format_time

    facts = [(str(each.path), each.size, int(each.changed * 1000)) for each in found]
    if json:
        files = [{"file": name, "bytes": size, "changed": changed} for name, size, changed in facts]
        cli.console.json({"schema": 1, "program": program, "files": files})
    elif facts:
        rows = [(f"{size:,}", format_time(changed), name) for name, size, changed in facts]
        cli.console.table([("BYTES", "CHANGED", "FILE"), *rows], styles=["bold"], right={0})


def import_files(
    cli: CliContext, nexus: Nexus, names: Sequence[str], *, label: str, cwd: str, dry_run: bool, json: bool
) -> None:
    """Import files one by one and print each outcome. An unreadable file does not stop the others.

    In a dry run the files go into a trial ledger, so that each finds what the ones before it would have added.
    """
    ledger = nexus.ledger
    target = _open_trial_ledger(ledger) if dry_run else ledger
    learn = (lambda _transcript: None) if dry_run else partial(_learn_counts, nexus)
    is_planned_only = dry_run and target is ledger
    formats = load_formats(nexus.host)
    outcomes: list[ImportOutcome] = []
    refused: list[dict[str, str]] = []
    codes: list[int] = []
    size = sum(get_input_size(cli.cwd, name) for name in names)
    with (
        cli.console.progress(size, "Importing", unit="bytes") as progress,
        pause_garbage_collection(),
    ):

        def refuse(name: str, error: NexusError, *, is_only: bool) -> None:
            if is_only and not json:
                raise error
            cli.console.error(str(error))
            refused.append({"file": name, "reason": error.what, "code": getattr(error, "code", "")})
            codes.append(get_exit_code(error))

        def import_file(name: str) -> None:
            # A function of its own, so that its bytes and text are freed before the next file is read.
            try:
                tasks = _build_tasks(cli, name, formats, label=label, cwd=cwd, dry_run=is_planned_only)
            except (FileError, MessageError, UsageError) as error:
                refuse(name, error, is_only=len(names) == 1)
                return
            for task in tasks:
                try:
                    outcomes.append(_import_task(cli, target, task, formats, progress, learn=learn))
                except (FileError, MessageError, SessionExistsError) as error:
                    refuse(task.name, error, is_only=len(names) == len(tasks) == 1)

        for name in names:
            import_file(name)
    if json:
        print_outcomes_json(cli.console, outcomes, refused, dry_run=dry_run)
    else:
        print_outcomes(cli, outcomes, dry_run=dry_run)
    if codes:
        raise typer.Exit(max(codes))


def _learn_counts(nexus: Nexus, transcript: Transcript) -> None:
    """Learn from imported usage how providers count, for models about which nothing is known yet."""
    from nexus_core.thread.calibration import learn_from_messages
    from nexus_core.tokens.counters import open_counter

    if any(entry.usage for entry in transcript.context):
        model = transcript.model
        messages = [
            (entry.message, entry.usage if entry.model in ("", model) else None) for entry in transcript.context
        ]
        learn_from_messages(messages, model, open_counter(model, host=nexus.host))


def _open_trial_ledger(ledger: Ledger) -> Ledger:
    """Return a ledger for a dry run: in memory, or the given one if it has its own storage."""
    from nexus_core.ledger.in_memory import DryRunLedger
    from nexus_core.ledger.ledger import StoreLedger

    return DryRunLedger(ledger) if isinstance(ledger, StoreLedger) else ledger


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Pause garbage collection, which would find nothing among the values of a transcript."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _build_tasks(
    cli: CliContext, name: str, formats: Sequence[TranscriptFormat], *, label: str, cwd: str, dry_run: bool
) -> list[_ImportTask]:
    """Read a file and return a task for each conversation in it."""
    data = read_transcript_bytes(cli.cwd, name, formats, instead="name the files in it")
    text = decode_partial_text(cli, name, data, fate="kept")
    source = "" if name == STANDARD_INPUT else name
    found = split_conversations(text)
    if not found:
        return [_ImportTask(name, data, text, source, label, cwd, dry_run)]
    if label:
        raise UsageError(f"{len(found)} conversations cannot have one name", where=name, hint="leave out --name")
    stem, dot, suffix = source.rpartition(".")
    return [
        _ImportTask(
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


def _import_task(
    cli: CliContext,
    ledger: Ledger,
    task: _ImportTask,
    formats: Sequence[TranscriptFormat],
    progress: ProgressBar,
    *,
    learn: Callable[[Transcript], object],
) -> ImportOutcome:
    """Import a file. The outcome keeps no message, so that the memory of one file is free for the next."""
    if is_export(task.text):
        return _import_export(ledger, task, progress)
    importer = TranscriptImporter(ledger)
    known = importer.find_imported(task.data)
    if known:
        progress.advance(len(task.data))
        label = known[0].label
        return ImportOutcome(task.name, label, known, unused_label=_find_unused_name(ledger, task.label, label))
    dialects = cli.dialects()
    size = len(task.data)
    with _report_share(progress, size * _READ_SHARE) as advance:
        transcript = read_transcript(task.text, task.name, dialects, formats=formats, advance=advance)
    with _report_share(progress, size * _WRITE_SHARE) as advance:
        report = importer.import_transcript(
            transcript,
            task.data,
            file_name=task.source,
            label=task.label,
            cwd=task.cwd,
            dry_run=task.dry_run,
            advance=advance,
        )
    learn(transcript)
    return ImportOutcome(
        task.name,
        report.label if report.sessions else "",
        [change.without_steps() for change in report.sessions],
        transcript.format,
        transcript.id,
        transcript.report,
        repaired=count_repairs(transcript, dialects),
        left_out=report.left_out,
        unused_label=_find_unused_name(ledger, task.label, report.label) if report.sessions else "",
    )


@contextmanager
def _report_share(progress: ProgressBar, size: float) -> Iterator[Callable[[float], None]]:
    """Yield an `advance` for shares of a part of the work. Afterwards, all of that part is reported."""
    done = 0.0

    def advance(share: float) -> None:
        nonlocal done
        share = min(share, 1 - done)
        done += share
        progress.advance(share * size)

    yield advance
    advance(1)


def _find_unused_name(ledger: Ledger, wanted: str, label: str) -> str:
    """Return the name that was wanted, where a session has another that was there before."""
    if not wanted or wanted == label:
        return ""
    named = ledger.session(wanted)
    return "" if named is not None and named.label == label else wanted


def _import_export(ledger: Ledger, task: _ImportTask, progress: ProgressBar) -> ImportOutcome:
    export = read_export(task.text, task.name)
    progress.advance(len(task.data) * _READ_SHARE)
    changes = import_export(ledger, export, label=task.label, dry_run=task.dry_run)
    progress.advance(len(task.data) * _WRITE_SHARE)
    lines = LineReport(lines=task.text.count("\n"), outcomes={})
    sessions = [change.without_steps() for change in changes]
    return ImportOutcome(task.name, changes[0].label, sessions, "nexus", report=lines, is_export=True)


def count_repairs(transcript: Transcript, dialects: DialectRegistry) -> dict[str, int]:
    """Count by code what is repaired in each request. The ledger is not changed.

    That the model has the last word is not counted: the next request ends with what the user asks.
    """
    context = transcript.context
    begin = max(len(context) - _MAX_CHECKED_MESSAGES, 0)
    while 0 < begin < len(context) and (context[begin].kind != "said" or context[begin].message.role != "user"):
        begin += 1  # only a user message can be the start
    mended = apply_repair_rules(
        [entry.message for entry in context[begin:]], dialects.get(transcript.api or "neutral").rules
    )
    ignored = {*UNREPAIRED_CODES, "wrong-last-role"}
    return dict(sorted(Counter(finding.code for finding in mended.findings if finding.code not in ignored).items()))


_MAX_DETAILED_FILES = 3
"""Files that are described one by one; of more, their sums are printed."""
_MAX_NOTES = 5
"""Notes on a file to print, and lines of one note; --json has all of them."""
_MAX_LISTED_SESSIONS = 5
"""Sessions with an open turn to name."""
_OUTCOME_NOUNS: dict[ReaderOutcome, tuple[str, str]] = {
    "message": ("message", "messages"),
    "merged": ("entry merged into another", "entries merged into others"),
    "branch": ("message on a branch", "messages on branches"),
    "compaction": ("entry of a compaction", "entries of compactions"),
    "mirror": ("copy of another entry", "copies of other entries"),
    "metadata": ("entry kept as it is", "entries kept as they are"),
    "skipped": ("entry skipped", "entries skipped"),
    "blank": ("blank line", "blank lines"),
}


class ImportOutcome(NamedTuple):
    """The outcome of an import for one file.

    Attributes:
        file: Its name.
        label: The main session; "" if it has no messages.
        sessions: Every session, without its steps.
        form: The format; "" where it was known already.
        id: The program's id of the conversation; None for an export, and where it was known already.
        report: The outcomes of its lines; None where it was known already. Of an export, only their number.
        is_export: True for an export of Nexus, whose tokens are counted. Those of a transcript are estimated.
        repaired: What is put right whenever it is sent, by its code.
        left_out: How many branches are no sessions, because there are too many.
        unused_label: The name that it was to get, where it was imported before under another.
    """

    file: str
    label: str
    sessions: Sequence[SessionChange]
    form: str = ""
    id: str | None = None
    report: LineReport | None = None
    is_export: bool = False
    repaired: Mapping[str, int] = {}
    left_out: int = 0
    unused_label: str = ""


def print_outcomes(cli: CliContext, outcomes: Sequence[ImportOutcome], *, dry_run: bool) -> None:
    """Print the sessions as a table, and beside it what a person should know."""
    is_long = len(outcomes) > _MAX_DETAILED_FILES
    heading = ("SESSION", "WHAT", "TURNS", "STEPS", "MESSAGES", "TOKENS", "FILE")
    rows = [
        (
            change.label,
            _describe_change(change, dry_run=dry_run),
            *(f"{number:,}" for number in change.totals[:-1]),
            f"{'~' * (not outcome.is_export)}{change.totals.tokens:,}",
            shorten_home(outcome.file),
        )
        for outcome in outcomes
        for change in outcome.sessions
        if change.what != "same" or not is_long
    ]
    if rows:
        cli.console.table([heading, *rows], styles=["bold"], right={2, 3, 4, 5})
    if rows and any(outcome.sessions and not outcome.is_export for outcome in outcomes):
        cli.console.message(visible_line(cli.complete_commands(f"~ {TOKEN_MARKS['~']}")), style="dim")
    for outcome in outcomes:
        for line in () if is_long else _describe_outcome(outcome):
            cli.console.message(visible_line(line))
        for warning in _list_warnings(outcome):
            cli.console.warning(visible_line(warning))
    lines = [*(_sum_outcomes(outcomes) if is_long else ()), *_describe_open_turns(outcomes)]
    if any(change.what == "new" for outcome in outcomes for change in outcome.sessions) and not dry_run:
        lines.append(
            cli.complete_commands("`nexus session list` lists all sessions, `nexus context --session NAME` shows one")
        )
    for line in lines:
        cli.console.message(visible_line(line))


def _describe_change(change: SessionChange, *, dry_run: bool) -> str:
    if change.what == "more":
        return f"{'would get ' * dry_run}{format_count(change.added, 'more step')}"
    return f"would be {change.what}" if dry_run and change.what == "new" else change.what


def print_outcomes_json(
    console: Console, outcomes: Iterable[ImportOutcome], refused: list[dict[str, str]], *, dry_run: bool
) -> None:
    """Print the same for programs, with every note."""
    files = [_outcome_to_json(outcome) for outcome in outcomes]
    console.json({"schema": 1, "dry_run": dry_run, "files": files, "refused": refused})


def _describe_outcome(outcome: ImportOutcome) -> Iterator[str]:
    file, report = shorten_home(outcome.file), outcome.report
    if report is None:
        yield f"{file}: imported before, as it is"
    elif outcome.is_export:
        yield f"{file}: {outcome.form}, {format_count(report.lines, 'line')}"
    else:
        yield f"{file}: {outcome.form}, {_describe_entries([report])}"
    if outcome.repaired:
        yield f"{file}: {_describe_repairs(outcome.repaired)}"


def _sum_outcomes(outcomes: Sequence[ImportOutcome]) -> Iterator[str]:
    """Yield what many files have and need, all of them together."""
    if known := sum(outcome.report is None for outcome in outcomes):
        yield f"{format_count(known, 'file')} imported before, as {'it is' if known == 1 else 'they are'}"
    reports = [outcome.report for outcome in outcomes if outcome.report is not None and not outcome.is_export]
    if reports:
        yield f"{format_count(len(reports), 'file')}, {_describe_entries(reports)} (--json has each file)"
    repaired: Counter[str] = Counter()
    for outcome in outcomes:
        repaired.update(outcome.repaired)
    if repaired:
        yield _describe_repairs(dict(sorted(repaired.items())))


def _describe_entries(reports: Sequence[LineReport]) -> str:
    lines = sum(report.lines for report in reports)
    counts = [(sum(report.count(each) for report in reports), words) for each, words in _OUTCOME_NOUNS.items()]
    found = [f"{count:,} {words[count != 1]}" for count, words in counts if count]
    entries = f"{lines:,} {'entry' if lines == 1 else 'entries'}"  # a file may be one line
    return f"{entries}: {', '.join(found)}"


def _describe_repairs(repaired: Mapping[str, int]) -> str:
    listed = ", ".join(f"{number:,} {code}" for code, number in repaired.items())
    return f"repaired in each request, unchanged in the ledger: {listed}"


def _describe_open_turns(outcomes: Iterable[ImportOutcome]) -> Iterator[str]:
    """Yield a line about the sessions whose last turn is open, all of them together."""
    changes = (change for outcome in outcomes for change in outcome.sessions)
    labels = [change.label for change in changes if change.is_open and change.what != "same"]
    give_up = "--discard-open-turn gives it up"
    if len(labels) == 1:
        record = f"nexus session record {quote(labels[0])}"
        yield f"{labels[0]}: its last turn is open: `{record}` says what it waits for, {give_up}"
    elif labels:
        listed = ", ".join(labels[:_MAX_LISTED_SESSIONS]) + ", …" * (len(labels) > _MAX_LISTED_SESSIONS)
        record = f"`nexus session record NAME` says what it waits for, {give_up}"
        yield f"the last turn of {len(labels):,} sessions is open ({listed}): {record}"


def _list_warnings(outcome: ImportOutcome) -> Iterator[str]:
    file = shorten_home(outcome.file)
    if not outcome.label:
        yield f"{file}: it has no messages, so there is no session"
    if outcome.unused_label:
        rename = f"nexus session rename {quote(outcome.label)} {quote(outcome.unused_label)}"
        yield f"{file}: imported before as {outcome.label!r}, and still called so; `{rename}` renames it"
    for change in outcome.sessions:
        if change.note:
            yield f"{change.note}; what is new is in {change.label!r}"
    if outcome.left_out:
        yield f"{file}: {outcome.left_out:,} of its branches became no sessions: there are too many"
    lines: dict[str, list[int]] = {}
    for note in outcome.report.notes if outcome.report else ():
        lines.setdefault(note.text, []).append(note.line)
    for text, numbers in [*lines.items()][:_MAX_NOTES]:
        listed = ", ".join(map(str, numbers[:_MAX_NOTES])) + ", …" * (len(numbers) > _MAX_NOTES)
        yield f"{file}:{listed}: {text}"
    if left_out := sum(map(len, [*lines.values()][_MAX_NOTES:])):
        yield f"{file}: {format_count(left_out, 'more note')}; --json has all of them"


def _outcome_to_json(outcome: ImportOutcome) -> dict[str, object]:
    report = outcome.report
    return {
        "file": outcome.file,
        "label": outcome.label or None,
        "format": outcome.form or None,
        "id": outcome.id,
        "lines": report.lines if report else None,
        "outcomes": {name: len(numbers) for name, numbers in report.outcomes.items()} if report else {},
        "notes": [note._asdict() for note in report.notes] if report else [],
        "repaired": dict(outcome.repaired),
        "left_out": outcome.left_out,
        "unused_label": outcome.unused_label or None,
        "sessions": [_change_to_json(change) for change in outcome.sessions],
    }


def _change_to_json(change: SessionChange) -> dict[str, object]:
    return {
        "label": change.label,
        "kind": change.kind,
        "what": change.what,
        **change.totals._asdict(),
        "added": change.added,
        "is_open": change.is_open,
        "note": change.note,
    }
