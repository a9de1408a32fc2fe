"""What `nexus context FILE --json` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.dialects.neutral.json_form import encode

if TYPE_CHECKING:
    from nexus_core.cli.context.transcript import Counted
    from nexus_core.dialects.transcripts.transcript import Branch, Compaction, Report
    from nexus_core.history.breakdown import MessageShare


def facts_of(found: Counted, top: int) -> dict[str, object]:
    """All that is known about a transcript and its tokens, without what it says."""
    transcript, breakdown = found.transcript, found.breakdown
    return {
        "schema": 1,
        "file": found.file,
        "format": transcript.format,
        "api": transcript.api,
        "id": transcript.id,
        **found.measure.facts(found.total, exact=found.is_exact),
        "not_in_file": found.not_in_file,
        "roles": [share._asdict() for share in found.roles],
        "kinds": [share._asdict() for share in found.kinds],
        "tools": [share._asdict() | {"tokens": share.tokens} for share in breakdown.tools],
        "messages": [_message(found, share) for share in breakdown.messages],
        "largest": [share.place for share in breakdown.largest(top)],
        "compacted_messages": found.left_out,
        "last_usage": encode(found.usage) if found.usage else None,
        "compactions": [_compaction(each) for each in transcript.compactions],
        "branches": [_branch(each) for each in transcript.branches],
        "report": _report(transcript.report),
    }


def _message(found: Counted, share: MessageShare) -> dict[str, object]:
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


def _compaction(compaction: Compaction) -> dict[str, object]:
    return {
        "line": compaction.line,
        "messages_before": compaction.at,
        "messages_kept": compaction.at - compaction.kept_from,
        "messages_added": len(compaction.context),
        "tokens_before": compaction.tokens_before,
    }


def _branch(branch: Branch) -> dict[str, object]:
    lines = [line for entry in branch.entries for line in entry.lines]
    return {
        "kind": branch.kind,
        "name": branch.name,
        "parent": branch.parent,
        "messages": len(branch.entries),
        "first_line": min(lines),
        "last_line": max(lines),
    }


def _report(report: Report) -> dict[str, object]:
    return {
        "lines": report.lines,
        "outcomes": {outcome: len(numbers) for outcome, numbers in report.outcomes.items()},
        "notes": [note._asdict() for note in report.notes],
    }
