"""`nexus context FILE`: where the tokens of a transcript go."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import typer

from nexus_core.cli.bars import Row, print_bars
from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.given_file import decode_with_gaps, read_given
from nexus_core.cli.measure import open_measure
from nexus_core.dialects.transcripts.reading import read_transcript
from nexus_core.history.breakdown import break_down
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line
from nexus_core.values.parts import Reasoning

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
_EXCERPT = 200


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
        """Whether everything in it is text, which can be counted."""
        return not any(share.name in ("media", "other") for share in self.breakdown.kinds)

    @property
    def usage(self) -> Usage | None:
        """What the last answer cost, as the provider counted."""
        return next((entry.usage for entry in reversed(self.entries) if entry.usage), None)


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
    if measure.is_exceeded_by(breakdown.total) and not everything:
        raise typer.Exit(FINDINGS)


def excerpt(message: Message) -> str:
    """The beginning of what a message says: its words, else its calls, its results, its thoughts."""
    calls = (f"{call.name}({', '.join(map(str, call.arguments))})" for call in message.tool_calls)
    results = (result.text[:_EXCERPT] for result in message.tool_results)
    thoughts = (part.text[:_EXCERPT] for part in message.parts if isinstance(part, Reasoning))
    said = message.content[:_EXCERPT] or "; ".join(calls) or " ".join(results) or " ".join(thoughts)
    return " ".join(said.split())


def _print(shell: CommandShell, found: Counted, top: int) -> None:
    console, breakdown = shell.console, found.breakdown
    total = breakdown.total
    console.text(visible_line(_about(found)))
    console.text(found.measure.sentence(total, exact=found.is_exact))
    if found.usage:
        console.text(f"At the last answer the provider counted {found.usage.input_tokens:,} tokens of input.")
    print_bars(console, ("ROLE",), [Row(each.name, each.tokens) for each in breakdown.roles], total)
    print_bars(console, ("KIND",), [Row(each.name, each.tokens) for each in breakdown.kinds], total)
    tools = [
        Row(tool.name, tool.tokens, (f"{tool.calls:,}", f"{tool.results:,}", f"{tool.times:,}"))
        for tool in breakdown.tools[:top]
    ]
    print_bars(console, ("TOOL", "CALLS", "RESULTS", "TIMES"), tools, total)
    rows = []
    for each in breakdown.largest(top):
        entry = found.entries[each.place]
        remark = f"{each.role}: {excerpt(entry.message)}"
        rows.append(Row(f"message {each.place}", each.tokens, (str(entry.lines[0]),), remark))
    print_bars(console, ("LARGEST", "LINE", "SAYS"), rows, total)
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
