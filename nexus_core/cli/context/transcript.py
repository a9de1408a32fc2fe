"""`nexus context FILE`: where the tokens of a transcript go."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import typer

from nexus_core.cli.bars import Row, limit_rows, print_bars
from nexus_core.cli.context.excerpts import excerpt
from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.given_file import decode_with_gaps, read_given
from nexus_core.cli.measure import is_all_text, open_measure
from nexus_core.dialects.transcripts.reading import read_transcript
from nexus_core.history.breakdown import Share, break_down
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.cli.measure import Measure
    from nexus_core.cli.shell import CommandShell
    from nexus_core.dialects.transcripts.transcript import Entry, Transcript
    from nexus_core.history.breakdown import Breakdown
    from nexus_core.text.progress import Progress
    from nexus_core.values.conversation import Usage
    from nexus_core.values.message import Message

_NOTES = 5
"""How many notes are printed; --json has all of them."""
NOT_IN_FILE = "not in the file"
"""What the provider counted beyond the messages: a program's own instructions and tools, and where it counts more."""


class Counted(NamedTuple):
    """A transcript and where its tokens go.

    Attributes:
        file: Its name.
        transcript: What was read.
        entries: What was counted of it.
        breakdown: Where the tokens go.
        measure: Who counted, and for whom.
    """

    file: str
    transcript: Transcript
    entries: Sequence[Entry]
    breakdown: Breakdown
    measure: Measure

    @property
    def left_out(self) -> int:
        """How many messages of the main path were not counted."""
        counted_lines = {entry.lines for entry in self.entries}
        return sum(entry.lines not in counted_lines for entry in self.transcript.entries)

    @property
    def is_exact(self) -> bool:
        """True if everything in it is text, which can be counted."""
        return is_all_text((*self.transcript.system, *(entry.message for entry in self.entries)))

    @property
    def usage(self) -> Usage | None:
        """What the last answer cost, as the provider counted."""
        return next((entry.usage for entry in reversed(self.entries) if entry.usage), None)

    @property
    def difference(self) -> int:
        """The provider's count of the last call's input minus ours; 0 where the two are not of the same messages.

        They are not with --all, for another model, and where the last answer came before a compaction.
        """
        transcript = self.transcript
        first = 0
        if transcript.compactions:
            last = transcript.compactions[-1]
            first = len(last.context) + last.at - last.kept_from
        is_compared = self.entries == transcript.context and self.measure.model == transcript.model
        if not is_compared:
            return 0
        for share in reversed(self.breakdown.messages[first:]):
            usage = self.entries[share.place].usage
            if usage is not None:
                return usage.input_tokens - (share.cumulative - share.tokens) if usage.input_tokens else 0
        return 0

    @property
    def not_in_file(self) -> int:
        """Tokens that only the provider counted."""
        return max(self.difference, 0)

    @property
    def total(self) -> int:
        """All tokens, those among them that only the provider counted."""
        return self.breakdown.total + self.not_in_file

    @property
    def roles(self) -> list[Share]:
        """Tokens by role, and those that only the provider counted; together the total."""
        return [*self.breakdown.roles, *self._unread()]

    @property
    def kinds(self) -> list[Share]:
        """Tokens by kind, and those that only the provider counted; together the total."""
        return [*self.breakdown.kinds, *self._unread()]

    def _unread(self) -> list[Share]:
        return [Share(NOT_IN_FILE, self.not_in_file, 0)] if self.not_in_file else []


def show_file(shell: CommandShell, file: str, model: str, *, top: int, everything: bool, json: bool) -> None:
    """Print where the tokens of a transcript go."""
    transcript = read_transcript(_text(shell, file), file, shell.dialects())
    entries = transcript.entries if everything else transcript.context
    with shell.nexus() as nexus, shell.console.progress(len(entries)) as progress:
        measure = open_measure(nexus, nexus.load().settings, model, transcript.model)
        breakdown = break_down(
            _watched(entries, progress), measure.counter, system=transcript.system, tools=transcript.tools
        )
    found = Counted(file, transcript, entries, breakdown, measure)
    if json:
        from nexus_core.cli.context.transcript_facts import facts_of  # noqa: PLC0415 - only with --json

        shell.console.json(facts_of(found, top))
    else:
        _print(shell, found, top)
    if measure.is_exceeded_by(found.total) and not everything:
        raise typer.Exit(FINDINGS)


def _print(shell: CommandShell, found: Counted, top: int) -> None:
    console, breakdown, total = shell.console, found.breakdown, found.total
    console.text(visible_line(_about(found)))
    console.text(found.measure.sentence(total, exact=found.is_exact))
    if found.usage:
        console.text(_about_usage(found, found.usage))
    print_bars(console, ("ROLE",), [Row(each.name, each.tokens) for each in found.roles], total)
    print_bars(console, ("KIND",), [Row(each.name, each.tokens) for each in found.kinds], total)
    tools = [
        Row(tool.name, tool.tokens, (f"{tool.calls:,}", f"{tool.results:,}", f"{tool.times:,}"))
        for tool in breakdown.tools
    ]
    listed = limit_rows(tools, top, "tool")
    print_bars(console, ("TOOL", "CALLS", "RESULTS", "TIMES"), listed, total, sum_name="all tools")
    rows = []
    for each in breakdown.messages:
        entry = found.entries[each.place]
        remark = f"{each.role}: {excerpt(entry.said or entry.message)}"
        rows.append(Row(f"message {each.place}", each.tokens, (str(entry.lines[0]),), remark))
    listed = limit_rows(rows, top, "message")
    print_bars(console, ("LARGEST", "LINE", "SAYS"), listed, total, sum_name="all messages")
    _print_notes(shell, found)


def _about(found: Counted) -> str:
    """The file in a sentence."""
    transcript = found.transcript
    facts = [f"{transcript.format} ({transcript.api})" if transcript.format == "messages" else transcript.format]
    facts.append(counted(len(found.entries), "message"))
    if found.left_out:
        facts.append(f"{found.left_out:,} compacted away (--all counts them)")
    for kind, noun in (("fork", "fork"), ("rolled-back", "rollback"), ("subagent", "subagent")):
        number = sum(branch.kind == kind for branch in transcript.branches)
        if number:
            facts.append(f"{counted(number, noun)} not counted")
    return f"{found.file}: {', '.join(facts)}"


def _about_usage(found: Counted, usage: Usage) -> str:
    """Return what the provider counted, and how that differs from our count."""
    counted_by = f"At the last answer the provider counted {usage.input_tokens:,} tokens of input"
    if not found.difference:
        return f"{counted_by}."
    more = "more" if found.difference > 0 else "fewer"
    return f"{counted_by}, {abs(found.difference):,} {more} than the file has up to there by our count."


def _print_notes(shell: CommandShell, found: Counted) -> None:
    notes = found.transcript.report.notes
    for note in notes[:_NOTES]:
        shell.console.warning(visible_line(f"{found.file}:{note.line}: {note.text}"))
    if len(notes) > _NOTES:
        shell.console.warning(f"{len(notes) - _NOTES:,} more notes; --json has all of them")


def _watched(entries: Sequence[Entry], progress: Progress) -> Iterator[Message]:
    for entry in entries:
        yield entry.message
        progress.advance(1)


def _text(shell: CommandShell, name: str) -> str:
    data = read_given(shell.cwd, name, instead="name a file in it; -C DIR is for the prompt of a directory")
    return decode_with_gaps(shell, name, data, fate="shown")
