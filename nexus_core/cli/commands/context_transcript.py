"""`nexus context FILE`: the tokens of a transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import typer

from nexus_core.cli.context import EXIT_FINDINGS
from nexus_core.cli.input import decode_partial_text, read_transcript_bytes
from nexus_core.cli.model_window import contains_only_text, open_model_window
from nexus_core.cli.output import TokenRow, excerpt_message, limit_rows, print_token_bars
from nexus_core.dialects.neutral import encode_value
from nexus_core.history.breakdown import CategoryShare, break_down_tokens
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line
from nexus_core.tokens.prices import PriceList, add_costs, describe_prices
from nexus_core.transcripts.read import read_transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.cli.context import CliContext
    from nexus_core.cli.model_window import ModelWindow
    from nexus_core.history.breakdown import MessageShare, TokenBreakdown
    from nexus_core.text.console import ProgressBar
    from nexus_core.tokens.prices import Cost
    from nexus_core.transcripts.base import (
        LineReport,
        Transcript,
        TranscriptBranch,
        TranscriptCompaction,
        TranscriptEntry,
        TranscriptFormat,
    )
    from nexus_core.types.messages import Message, Usage

_MAX_NOTES = 5
"""Notes to print; --json has all of them."""
NOT_IN_FILE = "not in the file"
"""Tokens counted beyond the messages: a program's own instructions and tools, and where it counts more."""


class TranscriptBreakdown(NamedTuple):
    """A transcript and where its tokens go.

    Attributes:
        file: Its name.
        transcript: The parsed file.
        entries: The entries that were counted.
        breakdown: Where the tokens go.
        measure: The counter, the model and its window.
        cost: The cost of all calls on the main path whose usage is in the file, compacted or not.
    """

    file: str
    transcript: Transcript
    entries: Sequence[TranscriptEntry]
    breakdown: TokenBreakdown
    measure: ModelWindow
    cost: Cost

    @property
    def left_out(self) -> int:
        """The number of messages of the main path that were not counted."""
        counted_lines = {entry.lines for entry in self.entries}
        return sum(entry.lines not in counted_lines for entry in self.transcript.entries)

    @property
    def is_exact(self) -> bool:
        """True if everything in it is text, which can be counted."""
        return contains_only_text((*self.transcript.system, *(entry.message for entry in self.entries)))

    @property
    def usage(self) -> Usage | None:
        """The provider's token counts of the last reply that has any. All of them 0 means that nothing was counted."""
        counts = (entry.usage for entry in reversed(self.entries))
        return next((usage for usage in counts if usage and usage.total_tokens), None)

    @property
    def difference(self) -> int:
        """The provider's count of the last call's input minus ours. 0 if they cover different messages.

        They are not with --include-compacted, for another model, and where the last answer came before a compaction.
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
            if usage is not None and usage.total_tokens:
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
    def roles(self) -> list[CategoryShare]:
        """Tokens by role, and those that only the provider counted. Their sum is the total."""
        return [*self.breakdown.roles, *self._unread()]

    @property
    def kinds(self) -> list[CategoryShare]:
        """Tokens by kind, and those that only the provider counted. Their sum is the total."""
        return [*self.breakdown.kinds, *self._unread()]

    def _unread(self) -> list[CategoryShare]:
        return [CategoryShare(NOT_IN_FILE, self.not_in_file, 0)] if self.not_in_file else []


def show_transcript_tokens(cli: CliContext, file: str, model: str, *, top: int, everything: bool, json: bool) -> None:
    """Print where the tokens of a transcript go."""
    formats = cli.transcript_formats()
    text = _read_text(cli, file, formats)
    with cli.console.progress(len(text), "Reading", unit="bytes") as progress:
        transcript = read_transcript(
            text, file, cli.dialects(), formats=formats, advance=lambda share: progress.advance(share * len(text))
        )
    entries = transcript.entries if everything else transcript.context
    with cli.nexus() as nexus:
        settings = cli.load_readable(nexus).settings
        measure = open_model_window(nexus, settings, model, transcript.model)
        with cli.console.progress(len(entries), "Counting", unit="messages") as progress:
            counted = _iterate_with_progress(entries, progress)
            breakdown = break_down_tokens(counted, measure.counter, system=transcript.system, tools=transcript.tools)
        prices = PriceList(nexus.host, settings)
        cost = add_costs(
            prices.compute(entry.model or transcript.model, entry.usage)
            for entry in transcript.entries
            if entry.usage and entry.usage.total_tokens
        )
    found = TranscriptBreakdown(file, transcript, entries, breakdown, measure, cost)
    if json:
        cli.console.json(transcript_to_json(found, top))
    else:
        _print_breakdown(cli, found, top)
    if measure.is_exceeded_by(found.total) and not everything:
        raise typer.Exit(EXIT_FINDINGS)


def _print_breakdown(cli: CliContext, found: TranscriptBreakdown, top: int) -> None:
    console, breakdown, total = cli.console, found.breakdown, found.total
    console.text(visible_line(_describe_file(found)), wrap=True)
    console.text(found.measure.describe(total, exact=found.is_exact), wrap=True)
    if found.usage:
        if found.usage.input_tokens:  # some programs save only the output
            console.text(_describe_usage(found, found.usage), wrap=True)
        console.text(f"All calls in the file cost {found.cost}{_format_price_date(found.cost)}.", wrap=True)
    print_token_bars(console, ("ROLE",), [TokenRow(each.name, each.tokens) for each in found.roles], total)
    print_token_bars(console, ("KIND",), [TokenRow(each.name, each.tokens) for each in found.kinds], total)
    tools = [
        TokenRow(tool.name, tool.tokens, (f"{tool.calls:,}", f"{tool.results:,}", f"{tool.times:,}"))
        for tool in breakdown.tools
    ]
    listed = limit_rows(tools, top, "tool")
    print_token_bars(console, ("TOOL", "CALLS", "RESULTS", "TIMES"), listed, total, sum_name="all tools")
    rows = []
    for each in breakdown.messages:
        entry = found.entries[each.place]
        remark = f"{each.role}: {excerpt_message(entry.said or entry.message)}"
        rows.append(TokenRow(f"message {each.place}", each.tokens, (str(entry.lines[0]),), remark))
    listed = limit_rows(rows, top, "message")
    print_token_bars(console, ("LARGEST", "LINE", "SAYS"), listed, total, sum_name="all messages")
    _print_notes(cli, found)


def _describe_file(found: TranscriptBreakdown) -> str:
    """Return the file in a sentence."""
    transcript = found.transcript
    facts = [f"{transcript.format} ({transcript.api})" if transcript.format == "messages" else transcript.format]
    facts.append(format_count(len(found.entries), "message"))
    if found.left_out:
        facts.append(f"{found.left_out:,} compacted away (--include-compacted counts them)")
    for kind, noun in (("fork", "fork"), ("rolled-back", "rollback"), ("subagent", "subagent")):
        number = sum(branch.kind == kind for branch in transcript.branches)
        if number:
            facts.append(f"{format_count(number, noun)} not counted")
    return f"{found.file}: {', '.join(facts)}"


def _describe_usage(found: TranscriptBreakdown, usage: Usage) -> str:
    """Return what the provider counted, and how that differs from our count."""
    counted_by = f"At the last answer the provider counted {usage.input_tokens:,} tokens of input"
    if not found.difference:
        return f"{counted_by}."
    more = "more" if found.difference > 0 else "fewer"
    return f"{counted_by}, {abs(found.difference):,} {more} than the file has up to there by our count."


def _format_price_date(cost: Cost) -> str:
    return f", at {describe_prices(cost)}" if cost.date else ""


def _print_notes(cli: CliContext, found: TranscriptBreakdown) -> None:
    notes = found.transcript.report.notes
    for note in notes[:_MAX_NOTES]:
        cli.console.warning(visible_line(f"{found.file}:{note.line}: {note.text}"))
    if len(notes) > _MAX_NOTES:
        cli.console.warning(f"{len(notes) - _MAX_NOTES:,} more notes; --json has all of them")


def _iterate_with_progress(entries: Sequence[TranscriptEntry], progress: ProgressBar) -> Iterator[Message]:
    for entry in entries:
        yield entry.message
        progress.advance(1)


def _read_text(cli: CliContext, name: str, formats: Sequence[TranscriptFormat]) -> str:
    hint = "name a file in it; -C DIR is for the prompt of a directory"
    data = read_transcript_bytes(cli.cwd, name, formats, instead=hint)
    return decode_partial_text(cli, name, data, fate="shown")


def transcript_to_json(found: TranscriptBreakdown, top: int) -> dict[str, object]:
    """Return all that is known about a transcript and its tokens, without what it says."""
    transcript, breakdown = found.transcript, found.breakdown
    return {
        "schema": 1,
        "file": found.file,
        "format": transcript.format,
        "api": transcript.api,
        "id": transcript.id,
        **found.measure.to_json(found.total, exact=found.is_exact),
        "not_in_file": found.not_in_file,
        "roles": [share._asdict() for share in found.roles],
        "kinds": [share._asdict() for share in found.kinds],
        "tools": [share._asdict() | {"tokens": share.tokens} for share in breakdown.tools],
        "messages": [_message_to_json(found, share) for share in breakdown.messages],
        "largest": [share.place for share in breakdown.largest(top)],
        "compacted_messages": found.left_out,
        "last_usage": encode_value(found.usage) if found.usage else None,
        "cost": found.cost.to_json() if found.usage else None,
        "compactions": [_compaction_to_json(each) for each in transcript.compactions],
        "branches": [_branch_to_json(each) for each in transcript.branches],
        "report": _report_to_json(transcript.report),
    }


def _message_to_json(found: TranscriptBreakdown, share: MessageShare) -> dict[str, object]:
    entry = found.entries[share.place]
    return {
        "place": share.place,
        "lines": list(entry.lines),
        "role": share.role,
        "kind": entry.kind,
        "time": entry.time,
        "tokens": share.tokens,
        "cumulative": share.cumulative,
    }


def _compaction_to_json(compaction: TranscriptCompaction) -> dict[str, object]:
    return {
        "line": compaction.line,
        "messages_before": compaction.at,
        "messages_kept": compaction.at - compaction.kept_from,
        "messages_added": len(compaction.context),
        "tokens_before": compaction.tokens_before,
    }


def _branch_to_json(branch: TranscriptBranch) -> dict[str, object]:
    lines = [line for entry in branch.entries for line in entry.lines]
    return {
        "kind": branch.kind,
        "name": branch.name,
        "parent": branch.parent,
        "messages": len(branch.entries),
        "first_line": min(lines),
        "last_line": max(lines),
    }


def _report_to_json(report: LineReport) -> dict[str, object]:
    return {
        "lines": report.lines,
        "outcomes": {outcome: len(numbers) for outcome, numbers in report.outcomes.items()},
        "notes": [note._asdict() for note in report.notes],
    }
