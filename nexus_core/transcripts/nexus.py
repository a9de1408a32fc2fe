"""Reader for exports of Nexus sessions, written by `nexus session export`.

For display only: `nexus session import` restores such a file step by step, without this reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.neutral import decode_value, message_from_json
from nexus_core.transcripts.base import (
    SCORE_NONE,
    SCORE_OWN,
    SCORE_SHARED,
    Transcript,
    TranscriptCompaction,
    TranscriptEntry,
    TranscriptFormat,
    build_opaque_message,
    find_object,
    find_text,
    list_objects,
    read_branches,
    trace_path,
    try_read,
)
from nexus_core.types.messages import Message, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.transcripts.base import JsonLine, LineAccount, LineOutcome, PathPosition

FORMAT_NAME = "nexus"
EXPORT_KEY = "nexus_session"
"""First key of the header line."""


def score_line(value: dict[str, Any]) -> int:
    """Score a line: the header of an export, or a step."""
    if _is_header(value):
        return SCORE_OWN
    return SCORE_SHARED if isinstance(value.get("step"), str) else SCORE_NONE


def _is_header(value: dict[str, Any]) -> bool:
    return EXPORT_KEY in value and isinstance(value.get("sessions"), list)


def read_session(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse a session and its forks."""
    return _ExportReader(records, account).read()


class _ExportReader:
    def __init__(self, records: Sequence[JsonLine], account: LineAccount) -> None:
        self._account = account
        self._steps: dict[str, JsonLine] = {}
        self._sessions: list[dict[str, Any]] = []
        self._positions: dict[str, PathPosition] = {}
        for record in records:
            name = find_text(record.value, "step")
            if name and name not in self._steps:
                self._steps[name] = record
                continue
            if _is_header(record.value) and not self._sessions:
                self._sessions = list_objects(record.value["sessions"])
            account.keep(record.number, next(iter(record.value), "empty"), record.value)
        self._parents = {name: self._find_parent(record) for name, record in self._steps.items()}

    def read(self) -> Transcript:
        """Return the first session, with the others as branches."""
        main_session = self._sessions[0] if self._sessions else {}
        main = trace_path(self._find_tip(main_session), self._parents)
        entries: list[TranscriptEntry] = []
        compactions: list[TranscriptCompaction] = []
        for name in main:
            record = self._steps[name]
            if record.value.get("kind") == "compaction":
                compactions.append(self._read_compaction(name, record, len(entries)))
            else:
                self._add(entries, name, record, "message")
            self._positions[name] = (None, len(entries))
        return Transcript(
            format=FORMAT_NAME,
            api="neutral",
            entries=tuple(entries),
            branches=read_branches(reversed(list(self._steps)), self._parents, self._positions, self._read_branch),
            compactions=tuple(compactions),
            report=self._account.report(),
            id=find_text(main_session, "label"),
            cwd=find_text(find_object(main_session, "data"), "cwd"),
            metadata=self._account.metadata,
        )

    def _find_parent(self, record: JsonLine) -> str:
        """Return the parent of a step, or "" and add a note if it is not in the file."""
        parent = find_text(record.value, "parent")
        if parent and parent not in self._steps:
            self._account.note(record.number, "the step before it is missing")
            return ""
        return parent

    def _find_tip(self, session: dict[str, Any]) -> str:
        tip = find_text(session, "tip")
        return tip if tip in self._steps else next(reversed(self._steps), "")

    def _read_branch(self, path: Sequence[str]) -> tuple[list[TranscriptEntry], list[int]]:
        """Return the entries of a path, and for each step the number of entries up to it."""
        entries: list[TranscriptEntry] = []
        counts = []
        for name in path:
            self._add(entries, name, self._steps[name], "branch")
            counts.append(len(entries))
        return entries, counts

    def _add(self, entries: list[TranscriptEntry], name: str, record: JsonLine, outcome: LineOutcome) -> None:
        """Add the messages of a step.

        A rendered (`sealed`) user message replaces the original before it.
        """
        found = [self._read_entry(name, record, body) for body in list_objects(record.value.get("messages"))]
        if not found:
            self._account.keep(record.number, find_text(record.value, "kind") or "step", record.value)
            return
        if record.value.get("kind") == "sealed" and entries and entries[-1].message.role == "user":
            original = entries.pop().message
            found = [each._replace(said=original) for each in found]
        entries += found
        self._account.use(outcome, record.number)

    def _read_entry(self, name: str, record: JsonLine, body: dict[str, Any]) -> TranscriptEntry:
        message = try_read(message_from_json, body, self._account, record.number) or build_opaque_message(
            "user", FORMAT_NAME, body
        )
        data = find_object(record.value, "data")
        is_reply = message.role == "assistant"
        usage = data.get("usage") if is_reply else None
        return TranscriptEntry(
            message=message,
            lines=(record.number,),
            ids=(name,),
            parent=find_text(record.value, "parent"),
            time=find_text(data, "time"),
            model=find_text(data, "model") if is_reply else "",
            reply=find_text(data, "id") if is_reply else "",
            usage=try_read(_decode_usage, usage, self._account, record.number) if isinstance(usage, dict) else None,
            raw=(record.value,),
        )

    def _read_compaction(self, name: str, record: JsonLine, at: int) -> TranscriptCompaction:
        data = find_object(record.value, "data")
        summary, first = find_text(data, "summary"), find_text(data, "first_kept")
        context = [self._read_entry(name, record, body) for body in list_objects(record.value.get("messages"))]
        if not context and summary:
            marker = data.get("marker", "[Previous conversation summary]")
            message = Message("user", f"{marker}\n{summary}" if marker else summary)
            context = [
                TranscriptEntry(
                    message=message, lines=(record.number,), ids=(name,), kind="summary", raw=(record.value,)
                )
            ]
        is_on_path = first in self._positions
        kept_from = self._positions.get(self._parents.get(first, ""), (None, 0))[1] if is_on_path else at
        self._account.use("compaction", record.number)
        return TranscriptCompaction(
            line=record.number,
            at=at,
            kept_from=kept_from,
            summary=summary,
            context=tuple(context),
            id=name,
            time=find_text(data, "time"),
            raw=record.value,
        )


def _decode_usage(given: dict[str, Any]) -> Usage:
    return decode_value(Usage, given)


FORMAT = TranscriptFormat(FORMAT_NAME, "an export of Nexus", score_line, read_lines=read_session)
