"""Sessions of Nexus itself: what `nexus session export` writes.

They are read here as any other program's, to see what is in them; `nexus session import` takes them over step by step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.neutral import from_json
from nexus_core.dialects.neutral.json_form import decode
from nexus_core.dialects.transcripts.lines import mapping_under, objects_in, word_in
from nexus_core.dialects.transcripts.recognition import NONE, OWN, SHARED
from nexus_core.dialects.transcripts.transcript import Compaction, Entry, Transcript
from nexus_core.dialects.transcripts.tree import climb, read_branches
from nexus_core.dialects.transcripts.unreadable import attempt, kept
from nexus_core.values.conversation import Usage
from nexus_core.values.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.lines import Record
    from nexus_core.dialects.transcripts.transcript import Outcome
    from nexus_core.dialects.transcripts.tree import Place

FORMAT = "nexus"
MARK = "nexus_session"
"""The first key of the first line."""


def score_line(value: dict[str, Any]) -> int:
    """Score a line: the first of an export, or a step."""
    if _is_header(value):
        return OWN
    return SHARED if isinstance(value.get("step"), str) else NONE


def _is_header(value: dict[str, Any]) -> bool:
    return MARK in value and isinstance(value.get("sessions"), list)


def read_session(records: Sequence[Record], account: Account) -> Transcript:
    """A session, and those that were forked from it."""
    return _Reading(records, account).transcript()


class _Reading:
    def __init__(self, records: Sequence[Record], account: Account) -> None:
        self._account = account
        self._steps: dict[str, Record] = {}
        self._sessions: list[dict[str, Any]] = []
        self._places: dict[str, Place] = {}
        for record in records:
            name = word_in(record.value, "step")
            if name and name not in self._steps:
                self._steps[name] = record
                continue
            if _is_header(record.value) and not self._sessions:
                self._sessions = objects_in(record.value["sessions"])
            account.keep(record.number, next(iter(record.value), "empty"), record.value)
        self._parents = {name: self._parent(record) for name, record in self._steps.items()}

    def transcript(self) -> Transcript:
        """What was said in the first session, and beside it in the others."""
        main_session = self._sessions[0] if self._sessions else {}
        main = climb(self._tip(0), self._parents)
        entries: list[Entry] = []
        compactions: list[Compaction] = []
        for name in main:
            record = self._steps[name]
            if record.value.get("kind") == "compaction":
                compactions.append(self._compaction(name, record, len(entries)))
            else:
                self._add(entries, name, record, "message")
            self._places[name] = (None, len(entries))
        return Transcript(
            format=FORMAT,
            api="neutral",
            entries=tuple(entries),
            branches=read_branches(reversed(list(self._steps)), self._parents, self._places, self._branch),
            compactions=tuple(compactions),
            report=self._account.report(),
            id=word_in(main_session, "label"),
            cwd=word_in(mapping_under(main_session, "data"), "cwd"),
            metadata=self._account.metadata,
        )

    def _parent(self, record: Record) -> str:
        """Return the parent of a step; "" if the file does not have it, with a note."""
        parent = word_in(record.value, "parent")
        if parent and parent not in self._steps:
            self._account.note(record.number, "the step before it is missing")
            return ""
        return parent

    def _tip(self, session: int) -> str:
        tip = word_in(self._sessions[session], "tip") if session < len(self._sessions) else ""
        return tip if tip in self._steps else next(reversed(self._steps), "")

    def _branch(self, path: Sequence[str]) -> tuple[list[Entry], list[int]]:
        """What is said on a path, and how much of it up to each step."""
        entries: list[Entry] = []
        counts = []
        for name in path:
            self._add(entries, name, self._steps[name], "branch")
            counts.append(len(entries))
        return entries, counts

    def _add(self, entries: list[Entry], name: str, record: Record, outcome: Outcome) -> None:
        """The messages of a step; an input that was sealed stands as it was sent."""
        found = [self._entry(name, record, body) for body in objects_in(record.value.get("messages"))]
        if not found:
            self._account.keep(record.number, word_in(record.value, "kind") or "step", record.value)
            return
        if record.value.get("kind") == "sealed" and entries and entries[-1].message.role == "user":
            said = entries.pop().message
            found = [each._replace(said=said) for each in found]
        entries += found
        self._account.use(outcome, record.number)

    def _entry(self, name: str, record: Record, body: dict[str, Any]) -> Entry:
        message = attempt(from_json, body, self._account, record.number) or kept("user", FORMAT, body)
        data = mapping_under(record.value, "data")
        is_reply = message.role == "assistant"
        usage = data.get("usage") if is_reply else None
        return Entry(
            message=message,
            lines=(record.number,),
            ids=(name,),
            parent=word_in(record.value, "parent"),
            time=word_in(data, "time"),
            model=word_in(data, "model") if is_reply else "",
            reply=word_in(data, "id") if is_reply else "",
            usage=attempt(_usage, usage, self._account, record.number) if isinstance(usage, dict) else None,
            raw=(record.value,),
        )

    def _compaction(self, name: str, record: Record, at: int) -> Compaction:
        data = mapping_under(record.value, "data")
        summary, first = word_in(data, "summary"), word_in(data, "first_kept")
        context = [self._entry(name, record, body) for body in objects_in(record.value.get("messages"))]
        if not context and summary:
            marker = data.get("marker", "[Previous conversation summary]")
            said = Message("user", f"{marker}\n{summary}" if marker else summary)
            context = [Entry(message=said, lines=(record.number,), ids=(name,), kind="summary", raw=(record.value,))]
        before = self._places.get(self._parents.get(first, ""), (None, 0))[1] if first in self._places else at
        self._account.use("compaction", record.number)
        return Compaction(
            line=record.number,
            at=at,
            kept_from=before,
            summary=summary,
            context=tuple(context),
            id=name,
            time=word_in(data, "time"),
            raw=record.value,
        )


def _usage(given: dict[str, Any]) -> Usage:
    return decode(Usage, given)
