"""A session, line by line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.dialects.responses.dialect import DIALECT
from nexus_core.dialects.transcripts.codex.events import SHOWN, Events
from nexus_core.dialects.transcripts.codex.items import FORMAT, Item, open_envelope, read_item, read_usage
from nexus_core.dialects.transcripts.codex.prompts import Prompts
from nexus_core.dialects.transcripts.lines import mapping_under, objects_in, word_in
from nexus_core.dialects.transcripts.transcript import Branch, Compaction, Entry, Transcript
from nexus_core.dialects.transcripts.unreadable import attempt
from nexus_core.values.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.lines import Record
    from nexus_core.dialects.transcripts.transcript import Outcome
    from nexus_core.values.conversation import Tool

_UNSENT = frozenset({"ghost_snapshot"})
"""Items that the model never saw."""
_MOST_KEPT = 100
"""How much of what the user typed is kept by a compaction that does not say what it keeps."""


class Rollout:
    """Reads a session; `transcript` has what was read.

    Args:
        records: Its lines.
        account: Where to say what becomes of them.
    """

    def __init__(self, records: Sequence[Record], account: Account) -> None:
        self._account = account
        self._entries: list[Entry] = []
        self._branches: list[Branch] = []
        self._compactions: list[Compaction] = []
        self._system: tuple[Message, ...] = ()
        self._tools: tuple[Tool, ...] = ()
        self._id = self._cwd = self._model = ""
        self._unpaid: int | None = None
        items = [open_envelope(record) for record in records]
        self._events = Events(items)
        shown = {item.inner_kind for item in items if item.kind == "event_msg"}
        self._unsent = {event for event, role in SHOWN.items() if not self._events.is_sent(role)}
        is_mirrored = "user_message" in shown and "user_message" not in self._unsent
        self._prompts = Prompts(self._entries, are_shown=is_mirrored)
        for item in items:
            self._read(item)
        if items and self._entries and self._entries[-1].lines[-1] == items[-1].record.number:
            self._prompts.expect_event()

    def transcript(self) -> Transcript:
        """The session as it was read."""
        for entry in self._entries:
            self._account.use("message", *entry.lines)
        for branch in self._branches:
            self._account.use("branch", *(line for entry in branch.entries for line in entry.lines))
        return Transcript(
            format=FORMAT,
            api="responses",
            entries=tuple(self._entries),
            report=self._account.report(),
            id=self._id,
            cwd=self._cwd,
            system=self._system,
            tools=self._tools,
            branches=tuple(self._branches),
            compactions=tuple(self._compactions),
            metadata=self._account.metadata,
        )

    def _read(self, item: Item) -> None:
        if item.kind == "response_item" and item.inner_kind not in _UNSENT:
            self._add(read_item(item, item.body, self._account, model=self._model))
        elif item.kind == "compacted":
            self._compact(item)
        elif item.kind == "event_msg":
            self._hear(item)
        else:
            self._account.keep(item.record.number, item.full_kind, item.record.value)
            self._learn(item)

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        if entry.message.role == "assistant":
            self._unpaid = len(self._entries) - 1
        elif entry.message.role == "user":
            self._prompts.sent()

    def _learn(self, item: Item) -> None:
        if item.kind == "turn_context":
            self._model = word_in(item.body, "model") or self._model
        if item.kind in ("session_meta", "turn_context"):
            self._cwd = self._cwd or word_in(item.body, "cwd")
        if item.kind != "session_meta" or self._id:
            return
        self._id = word_in(item.body, "id")
        instructions = word_in(mapping_under(item.body, "base_instructions"), "text")
        if instructions:
            self._system = (Message("system", instructions),)
        definitions = item.body.get("dynamic_tools")
        if isinstance(definitions, list):
            tools = attempt(DIALECT.read_tools, definitions, self._account, item.record.number)
            self._tools = tools or ()

    def _hear(self, item: Item) -> None:
        kind, number = item.inner_kind, item.record.number
        if kind in self._unsent:
            self._account.note(number, "taken from what was shown; what was sent is not in the file")
            entry = read_item(item, {"role": SHOWN[kind], "content": word_in(item.body, "message")}, self._account)
            self._add(entry)
            return
        outcome: Outcome = "mirror" if self._events.is_copy(item) else "metadata"
        self._account.keep(number, item.full_kind, item.record.value, outcome)
        if remark := self._events.remark(item):
            self._account.note(number, remark)
        if kind == "user_message":
            self._prompts.shown(word_in(item.body, "message"))
        elif kind == "thread_rolled_back":
            self._roll_back(item)
        elif kind == "token_count" and self._unpaid is not None and (usage := read_usage(item.body)):
            self._entries[self._unpaid] = self._entries[self._unpaid]._replace(usage=usage)
            self._unpaid = None

    def _roll_back(self, item: Item) -> None:
        turns = item.body.get("num_turns")
        if type(turns) is not int or turns < 1:
            return
        begun = self._prompts.last(turns, self._compactions[-1].at if self._compactions else 0)
        if len(begun) < turns:
            self._account.note(item.record.number, "more turns were taken back than there are since the compaction")
        if begun:
            self._cut(begun[0])

    def _cut(self, place: int) -> None:
        """Take back everything from a place on; what had left it after that place leaves it there, too."""
        number = len(self._branches)
        self._branches = [
            replace(branch, leaves=number, at=branch.at - place)
            if branch.leaves is None and branch.at > place
            else branch
            for branch in self._branches
        ]
        self._branches.append(Branch(kind="rolled-back", entries=tuple(self._entries[place:]), at=place))
        del self._entries[place:]
        self._prompts.cut(place)
        self._unpaid = None

    def _compact(self, item: Item) -> None:
        number, summary = item.record.number, word_in(item.body, "message")
        history = item.body.get("replacement_history")
        if isinstance(history, list):
            context = [read_item(item, body, self._account) for body in objects_in(history)]
            context = [_marked(entry, summary) for entry in context]
        else:
            self._account.note(number, "a compaction that does not say what it kept; taken to be what the user typed")
            said = read_item(item, {"role": "user", "content": summary}, self._account)
            prompts = [entry for entry in self._current() if _is_prompt(entry)]
            context = [*prompts[-_MOST_KEPT:], said._replace(kind="summary")]
        self._account.use("compaction", number)
        self._compactions.append(
            Compaction(
                line=number,
                at=len(self._entries),
                kept_from=len(self._entries),
                summary=summary,
                context=tuple(context),
                time=word_in(item.record.value, "timestamp"),
                raw=item.record.value,
            )
        )
        self._unpaid = None

    def _current(self) -> list[Entry]:
        last = self._compactions[-1] if self._compactions else None
        return [*last.context, *self._entries[last.at :]] if last else self._entries


def _is_prompt(entry: Entry) -> bool:
    return entry.message.role == "user" and entry.kind == "said"


def _marked(entry: Entry, summary: str) -> Entry:
    is_summary = bool(summary) and summary in entry.message.content
    return entry._replace(kind="summary") if is_summary else entry
