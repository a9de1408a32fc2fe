"""What an import did: which sessions, how much of what, and what a person should know."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.cli.session.overview import TOKEN_MARKS
from nexus_core.cli.tables import right_aligned
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nexus_core.dialects.transcripts.transcript import Outcome as ReaderOutcome
    from nexus_core.dialects.transcripts.transcript import Transcript
    from nexus_core.session.importing.tallies import Tally
    from nexus_core.text.console import Console
    from nexus_core.values.ledger import NewStep

_NOTES = 5
"""How many notes on a file are printed; --json has all of them."""
_WORDS: dict[ReaderOutcome, tuple[str, str]] = {
    "message": ("message", "messages"),
    "merged": ("entry merged into another", "entries merged into others"),
    "branch": ("message on a branch", "messages on branches"),
    "compaction": ("entry of a compaction", "entries of compactions"),
    "mirror": ("copy of another entry", "copies of other entries"),
    "metadata": ("entry kept as it is", "entries kept as they are"),
    "skipped": ("entry skipped", "entries skipped"),
    "blank": ("blank line", "blank lines"),
}


class SessionRow(NamedTuple):
    """What became of a session.

    Attributes:
        label: Its name.
        kind: Which path of the transcript it has.
        what: `new`, `more` or `same`.
        tally: What it consists of now, as `stats` tells it.
        added: How many of its steps were added.
        is_open: Whether the last turn waits for an answer or for results.
        note: Why it is not the session that one would expect.
    """

    label: str
    kind: str
    what: str
    tally: Tally
    added: int = 0
    is_open: bool = False
    note: str = ""

    @classmethod
    def of(
        cls,
        label: str,
        kind: str,
        steps: Sequence[NewStep],
        tally: Tally,
        *,
        is_new: bool,
        is_open: bool,
        note: str = "",
    ) -> SessionRow:
        """A session to which steps were added, or none."""
        what = "new" if is_new else "more" if steps else "same"
        return cls(label, kind, what, tally, len(steps), is_open, note)

    def facts(self) -> dict[str, object]:
        """All of it, for JSON."""
        return {
            "label": self.label,
            "kind": self.kind,
            "what": self.what,
            **self.tally._asdict(),
            "added": self.added,
            "is_open": self.is_open,
            "note": self.note,
        }

    def told(self, *, dry_run: bool) -> str:
        """What became of it, or would, in a word or two."""
        if self.what == "more":
            return f"{'would get ' * dry_run}{counted(self.added, 'more step')}"
        return f"would be {self.what}" if dry_run and self.what == "new" else self.what


class Outcome(NamedTuple):
    """What became of a file.

    Attributes:
        file: Its name.
        label: The main session; "" where nothing was said in it.
        rows: Every session.
        transcript: What was read; None where it was known already, or is an export.
        repaired: What is put right whenever it is sent, by its code.
        form: What kind of file it is, where there is no transcript.
        lines: How many lines it has, as above.
        left_out: How many branches are no sessions, because there are too many.
        unused_label: The name that it was to get, where it was imported before under another.
    """

    file: str
    label: str
    rows: list[SessionRow]
    transcript: Transcript | None = None
    repaired: Mapping[str, int] = {}
    form: str = ""
    lines: int = 0
    left_out: int = 0
    unused_label: str = ""

    @property
    def is_estimated(self) -> bool:
        """True if its tokens are estimated; an export has those that were counted."""
        return self.form != "nexus"


def print_outcomes(console: Console, outcomes: Sequence[Outcome], *, dry_run: bool) -> None:
    """The sessions as a table, and beside it what a person should know."""
    heading = ("SESSION", "WHAT", "TURNS", "STEPS", "MESSAGES", "TOKENS", "FILE")
    rows = [
        (
            row.label,
            row.told(dry_run=dry_run),
            *(f"{number:,}" for number in row.tally[:-1]),
            f"{'~' * outcome.is_estimated}{row.tally.tokens:,}",
            outcome.file,
        )
        for outcome in outcomes
        for row in outcome.rows
    ]
    if rows:
        console.table(right_aligned([heading, *rows], {2, 3, 4, 5}), styles=["bold"])
    if any(outcome.rows and outcome.is_estimated for outcome in outcomes):
        console.message(f"~ {TOKEN_MARKS['~']}", style="dim")
    for outcome in outcomes:
        for line in _told(outcome):
            console.message(visible_line(line))
        for warning in _warnings(outcome):
            console.warning(visible_line(warning))


def print_outcomes_json(
    console: Console, outcomes: Iterable[Outcome], refused: list[dict[str, str]], *, dry_run: bool
) -> None:
    """The same for programs, with every note."""
    files = [_facts(outcome) for outcome in outcomes]
    console.json({"schema": 1, "dry_run": dry_run, "files": files, "refused": refused})


def _told(outcome: Outcome) -> Iterator[str]:
    transcript = outcome.transcript
    if transcript is None:
        form = f"{outcome.form}, {counted(outcome.lines, 'line')}" if outcome.form else "imported before, as it is"
        yield f"{outcome.file}: {form}"
    else:
        report = transcript.report
        counts = [(report.count(each), words) for each, words in _WORDS.items()]
        found = [f"{count:,} {words[count != 1]}" for count, words in counts if count]
        entries = f"{report.lines:,} {'entry' if report.lines == 1 else 'entries'}"  # a file may be one line
        yield f"{outcome.file}: {transcript.format}, {entries}: {', '.join(found)}"
    if outcome.repaired:
        listed = ", ".join(f"{number:,} {code}" for code, number in outcome.repaired.items())
        yield f"{outcome.file}: repaired each time it is sent: {listed}"
    for row in outcome.rows:
        if row.is_open and row.what != "same":
            record = f"nexus session record {quote(row.label)}"
            yield f"{row.label}: its last turn is open: `{record}` says what it waits for, --interrupted gives it up"


def _warnings(outcome: Outcome) -> Iterator[str]:
    if not outcome.label:
        yield f"{outcome.file}: nothing is said in it, so there is no session"
    if outcome.unused_label:
        rename = f"nexus session rename {quote(outcome.label)} {quote(outcome.unused_label)}"
        yield f"{outcome.file}: imported before as {outcome.label!r}, and still called so; `{rename}` renames it"
    for row in outcome.rows:
        if row.note:
            yield f"{row.note}; what is new is in {row.label!r}"
    if outcome.left_out:
        yield f"{outcome.file}: {outcome.left_out:,} of its branches became no sessions: there are too many"
    notes = outcome.transcript.report.notes if outcome.transcript else ()
    for note in notes[:_NOTES]:
        yield f"{outcome.file}:{note.line}: {note.text}"
    if len(notes) > _NOTES:
        yield f"{outcome.file}: {counted(len(notes) - _NOTES, 'more note')}; --json has all of them"


def _facts(outcome: Outcome) -> dict[str, object]:
    transcript = outcome.transcript
    report = transcript.report if transcript else None
    return {
        "file": outcome.file,
        "label": outcome.label or None,
        "format": transcript.format if transcript else outcome.form or None,
        "id": transcript.id if transcript else None,
        "lines": report.lines if report else outcome.lines or None,
        "outcomes": {name: len(numbers) for name, numbers in report.outcomes.items()} if report else {},
        "notes": [note._asdict() for note in report.notes] if report else [],
        "repaired": dict(outcome.repaired),
        "left_out": outcome.left_out,
        "unused_label": outcome.unused_label or None,
        "sessions": [row.facts() for row in outcome.rows],
    }
