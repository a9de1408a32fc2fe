"""A session: entries that form a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.transcripts.lines import Record, mapping_under, word_in
from nexus_core.dialects.transcripts.pi.messages import FORMAT, read_message, read_stop, read_usage
from nexus_core.dialects.transcripts.transcript import Compaction, Entry, Transcript
from nexus_core.dialects.transcripts.tree import climb, read_branches
from nexus_core.dialects.transcripts.unreadable import attempt, kept
from nexus_core.values.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.transcript import EntryKind, Outcome
    from nexus_core.dialects.transcripts.tree import Place
    from nexus_core.values.message import Role

_INJECTED = ("bashExecution", "custom", "hookMessage")


class _Spoken(NamedTuple):
    """What a line says to the model, as a message of pi's."""

    body: dict[str, Any]
    kind: EntryKind


class Session:
    """Reads a session; `transcript` has what was read.

    Args:
        records: Its lines.
        account: Where to say what becomes of them.
    """

    def __init__(self, records: Sequence[Record], account: Account) -> None:
        self._account = account
        self._records = records
        self._id = self._cwd = ""
        self._nodes: dict[str, Record] = {}
        self._parents: dict[str, str] = {}
        self._names: dict[int, str] = {}
        self._places: dict[str, Place] = {}
        last = ""
        for place, record in enumerate(records):
            if record.value.get("type") == "session":
                self._id = self._id or word_in(record.value, "id")
                self._cwd = self._cwd or word_in(record.value, "cwd")
                account.keep(record.number, "session", record.value)
            else:
                last = self._place(place, record, last)
        self._last = last

    def transcript(self) -> Transcript:
        """The session as it was read: the last entry, and what led to it."""
        entries, compactions = self._read_main(climb(self._last, self._parents))
        branches = read_branches(reversed(list(self._nodes)), self._parents, self._places, self._read_branch)
        return Transcript(
            format=FORMAT,
            api="",
            entries=tuple(entries),
            report=self._account.report(),
            id=self._id,
            cwd=self._cwd,
            branches=branches,
            compactions=tuple(compactions),
            metadata=self._account.metadata,
        )

    def _place(self, place: int, record: Record, last: str) -> str:
        """Give an entry its place in the tree; in old files each follows the one before."""
        value = record.value
        name = word_in(value, "id") or f"line {record.number}"
        if name in self._nodes:
            self._account.keep(record.number, "repeated", value, "skipped")
            self._account.note(record.number, f"the same id as in line {self._nodes[name].number}")
            return last
        parent = word_in(value, "parentId")
        if parent and parent not in self._nodes:
            self._account.note(record.number, "it follows something that is not in this file; taken in file order")
        is_first = value.get("parentId", "") is None
        self._nodes[name] = record
        self._names[place] = name
        self._parents[name] = parent if parent in self._nodes else "" if is_first else last
        return name

    def _read_main(self, path: Sequence[str]) -> tuple[list[Entry], list[Compaction]]:
        entries: list[Entry] = []
        compactions: list[Compaction] = []
        starts: dict[str, int] = {}
        for name in path:
            record = self._nodes[name]
            starts[name] = len(entries)
            if record.value.get("type") == "compaction":
                kept_from = starts.get(self._first_kept(record), len(entries))
                compactions.append(self._read_compaction(name, record, len(entries), kept_from))
            else:
                entries += self._read_entry(name, record, "message")
            self._places[name] = (None, len(entries))
        return entries, compactions

    def _read_branch(self, path: Sequence[str]) -> tuple[list[Entry], list[int]]:
        """What is said on a path, and how much of it up to each entry."""
        entries: list[Entry] = []
        counts = []
        for name in path:
            entries += self._read_entry(name, self._nodes[name], "branch")
            counts.append(len(entries))
        return entries, counts

    def _read_entry(self, name: str, record: Record, outcome: Outcome) -> Iterator[Entry]:
        """The message of an entry, or none: then it is kept as it is."""
        value, body = record.value, mapping_under(record.value, "message")
        spoken = _spoken(value, body)
        if spoken is None:
            self._account.keep(record.number, word_in(value, "type") or "untyped", value)
            return
        message = attempt(read_message, spoken.body, self._account, record.number) or kept(
            _speaker(spoken.body), FORMAT, spoken.body
        )
        self._account.use(outcome, record.number)
        yield Entry(
            message=message,
            lines=(record.number,),
            ids=(name,) if word_in(value, "id") else (),
            parent=word_in(value, "parentId"),
            kind=spoken.kind,
            time=word_in(value, "timestamp"),
            model=word_in(body, "model"),
            reply=word_in(body, "responseId"),
            stop=read_stop(body),
            usage=read_usage(body),
            raw=(value,),
        )

    def _read_compaction(self, name: str, record: Record, at: int, kept_from: int) -> Compaction:
        value, summary = record.value, word_in(record.value, "summary")
        self._account.use("compaction", record.number)
        before = value.get("tokensBefore")
        said = Entry(
            message=Message("user", summary),
            lines=(record.number,),
            ids=(name,) if word_in(value, "id") else (),
            parent=word_in(value, "parentId"),
            kind="summary",
            time=word_in(value, "timestamp"),
            raw=(value,),
        )
        return Compaction(
            line=record.number,
            at=at,
            kept_from=kept_from,
            summary=summary,
            context=(said,),
            id=name,
            time=said.time,
            tokens_before=before if type(before) is int else None,
            raw=value,
        )

    def _first_kept(self, record: Record) -> str:
        place = record.value.get("firstKeptEntryIndex")  # of files without ids
        return self._names.get(place, "") if type(place) is int else word_in(record.value, "firstKeptEntryId")


def _spoken(value: dict[str, Any], body: dict[str, Any]) -> _Spoken | None:
    kind = value.get("type")
    if kind == "custom_message":
        return _Spoken({"role": "custom", "content": value.get("content")}, "injected")
    if kind == "branch_summary" and word_in(value, "summary"):
        return _Spoken({"role": "branchSummary", "summary": value["summary"]}, "branch-summary")
    if kind != "message" or not body or body.get("excludeFromContext") is True:
        return None
    return _Spoken(body, "injected" if body.get("role") in _INJECTED else "said")


def _speaker(body: dict[str, Any]) -> Role:
    speakers: dict[str, Role] = {"assistant": "assistant", "toolResult": "tool"}
    return speakers.get(word_in(body, "role"), "user")
