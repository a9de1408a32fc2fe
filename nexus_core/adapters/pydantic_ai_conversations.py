"""pydantic-ai: a store of conversations over a ledger, in which each conversation is a session.

Each save is one transaction. Messages are stored once, as pydantic-ai serializes them, beside the messages that all of
Nexus reads. A fork shares the steps of its origin; a branch takes back what it leaves, and keeps it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse

from nexus_core.adapters.framework_sessions import FrameworkSessions, build_state_step, read_exact_label
from nexus_core.adapters.pydantic_ai import read_model_message, read_model_usage
from nexus_core.adapters.synced_messages import SyncedMessages, build_turn_step
from nexus_core.errors import ConflictError
from nexus_core.ledger.ledger import walk_back
from nexus_core.nexus import Nexus
from nexus_core.runner import run_to_completion
from nexus_core.types.payloads import ExternalTurnPayload, StatePayload

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic_ai.conversation import Conversation

    from nexus_core.types.ledger import NewStep, Step

FRAMEWORK = "pydantic-ai"
"""Marks the sessions of this adapter."""
STEPS_PER_READ = 4
"""The newest step nearly always has the record of the conversation."""
_RECORDS: TypeAdapter[ConversationRecord] = TypeAdapter(ConversationRecord)


class StoredEntry(NamedTuple):
    """An entry as it is stored: the id of the one before it, and its message in JSON."""

    parent: str | None
    message: str


class ConversationLog:
    """The entries of a conversation, read from the steps of its session.

    Attributes:
        tip: The newest step that was read; None before the first.
        record: The newest record; None before the first.
        entries: The entries by id.
        shown: The ids of the entries that the session shows.
    """

    def __init__(self) -> None:
        self.tip: Step | None = None
        self.record: ConversationRecord | None = None
        self.entries: dict[str, StoredEntry] = {}
        self.shown: SyncedMessages[str] = SyncedMessages()

    def read(self, steps: Iterable[Step]) -> None:
        """Add the next steps of the session."""
        for step in steps:
            state = _get_state(step)
            self.shown.read_step(step, None if state is None else state.get("shows") or ())
            for name, parent, message in (state or {}).get("entries") or ():
                self.entries[name] = StoredEntry(parent, message)
            if state is not None:
                self.record = _read_record(state) or self.record
            self.tip = step

    def list_history(self, head: str | None, limit: int | None = None) -> list[str]:
        """Return the ids of the entries up to one, oldest first, or the newest `limit` of them.

        Raises:
            KeyError: There is no such entry.
        """
        found: list[str] = []
        while head is not None and (limit is None or len(found) < limit):
            found.append(head)
            head = self.entries[head].parent
        return found[::-1]


class NexusConversationStore(ConversationStore):
    """A store of conversations over a ledger: `await NexusConversationStore().save(result)`.

    A conversation is the session of the same name. Safe under concurrent writers, in this process and in others.
    `delete` erases what no other conversation shares.

    Args:
        nexus: The Nexus whose ledger is used; None creates one, which `close()` closes.
    """

    def __init__(self, nexus: Nexus | None = None) -> None:
        self._nexus = nexus or Nexus()
        self._own = None if nexus else self._nexus
        self._sessions = FrameworkSessions(self._nexus, FRAMEWORK, ConversationLog)

    def close(self) -> None:
        """Close the ledger, unless a Nexus was given. A second call does nothing."""
        if self._own is not None:
            self._own.close()

    async def load(
        self, conversation_id: str, *, limit: int | None = None, scope: str | None = None
    ) -> Conversation | None:
        """Return a conversation, or None, as pydantic-ai's stores do.

        Raises:
            ConflictError: The session also has messages that pydantic-ai did not save.
            SessionExistsError: The session of that name was not created by pydantic-ai.
        """
        loaded = await super().load(conversation_id, limit=limit, scope=scope)
        if loaded is not None:
            await asyncio.to_thread(self._ensure_whole, conversation_id)
        return loaded

    async def load_entries(
        self, conversation_id: str, *, limit: int | None = None, scope: str | None = None
    ) -> list[ConversationEntry] | None:
        """Return the entries of a conversation, or None, as pydantic-ai's stores do.

        Raises:
            ConflictError, SessionExistsError: As for `load`.
        """
        loaded = await super().load_entries(conversation_id, limit=limit, scope=scope)
        if loaded is not None:
            await asyncio.to_thread(self._ensure_whole, conversation_id)
        return loaded

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation, or None.

        Raises:
            SessionExistsError: The session of that name was not created by pydantic-ai.
        """
        return await asyncio.to_thread(self._load_record, conversation_id)

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """Return the records with a scope, or all, those saved last first."""
        return await asyncio.to_thread(self._list_records, scope, limit)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and new entries in one transaction.

        Raises:
            ConversationConflict: The conversation was saved or deleted since it was loaded, or another program has
                added messages.
            SessionExistsError: The session of that name was not created by pydantic-ai.
            TurnError: A turn of Nexus's own is open in the session, or it is archived.
        """
        await run_to_completion(partial(self._write_record, record, tuple(new_entries), expected_revision))

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Erase a conversation, but for what other conversations share.

        Raises:
            ConversationConflict: The conversation was saved or deleted since it was read.
        """
        await run_to_completion(partial(self._delete_record, conversation_id, expected_revision))

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return the entry with an id.

        Raises:
            LookupError: There is none.
        """
        return (await self.read_history(entry_id, limit=1))[0]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Return the entries up to one, oldest first, or the newest `limit` of them.

        Raises:
            LookupError: There is no such entry.
        """
        return [] if head_id is None else await asyncio.to_thread(self._load_history, head_id, limit)

    # ---- blocking ---------------------------------------------------------------------------------------------

    def _load_record(self, conversation: str) -> ConversationRecord | None:
        label = read_exact_label(conversation, "conversation_id")
        with self._sessions.lock:
            return _copy_own_record(self._sessions.load(label), label)

    def _ensure_whole(self, conversation: str) -> None:
        label = read_exact_label(conversation, "conversation_id")
        with self._sessions.lock:
            if self._sessions.load(label).shown.has_other_messages:
                raise ConflictError(
                    f"session {label!r} also has messages that pydantic-ai did not save",
                    hint=f"continue it with nexus.session({label!r}), or choose another conversation_id",
                )

    def _list_records(self, scope: str | None, limit: int | None) -> list[ConversationRecord]:
        found = [record for label in self._sessions.list_labels() if (record := self._find_newest_record(label))]
        found.sort(key=lambda record: record.updated_at, reverse=True)
        return [record for record in found if scope is None or record.scope == scope][:limit]

    def _find_newest_record(self, label: str) -> ConversationRecord | None:
        """Return the record of a session, reading only its newest steps."""
        session = self._sessions.find(label)
        for step in walk_back(self._sessions.ledger, session.tip if session else None, batch_size=STEPS_PER_READ):
            if (record := _read_record(_get_state(step) or {})) is not None:
                return record if record.conversation_id == label else None
        return None

    def _write_record(
        self, record: ConversationRecord, new: Sequence[ConversationEntry], expected_revision: str | None
    ) -> None:
        label = read_exact_label(record.conversation_id, "conversation_id")
        messages = {entry.id: entry.message for entry in new}
        added = {entry.id: StoredEntry(entry.parent_id, _write_message(entry.message)) for entry in new}
        written = _RECORDS.dump_json(record).decode()

        def plan(log: ConversationLog) -> list[NewStep]:
            stored = _copy_own_record(log, label)
            if (stored.revision if stored else None) != expected_revision or log.shown.has_other_messages:
                raise ConversationConflict(record.conversation_id)
            try:
                history = _list_entries(record.head_id, log.entries | added)
            except KeyError:
                raise ConversationConflict(record.conversation_id) from None
            state: dict[str, Any] = {"record": written}
            if added:
                state["entries"] = [[name, *entry] for name, entry in added.items()]
            kept, steps = log.shown.plan_change(history, log.tip)
            shown = [(name, messages.get(name) or _read_message(log.entries[name].message)) for name in history[kept:]]
            if not shown:
                return [*steps, build_state_step(state)]
            read = [(name, read_model_message(message)) for name, message in shown]
            state["shows"] = [[name, len(each)] for name, each in read]
            models = [each.model_name for _, each in shown if isinstance(each, ModelResponse) and each.model_name]
            step = build_turn_step(
                self._nexus.host,
                state,
                [message for _, each in read for message in each],
                model=models[-1] if models else "",
                usages=[usage for name, each in shown if (usage := _find_usage(name in messages, each)) is not None],
                is_continued=kept > 0,
            )
            return [*steps, step]

        origin = record.forked_from if expected_revision is None and record.forked_from else ""
        self._sessions.append(label, plan, origin=origin)

    def _delete_record(self, conversation: str, expected_revision: str) -> None:
        label = read_exact_label(conversation, "conversation_id")
        with self._sessions.lock:
            stored = _copy_own_record(self._sessions.load(label), label)
            if stored is None or stored.revision != expected_revision:
                raise ConversationConflict(conversation)
            self._sessions.delete(label, reason="deleted by pydantic-ai")

    def _load_history(self, head: str, limit: int | None) -> list[ConversationEntry]:
        with self._sessions.lock:
            log = self._find_log(head)
            history = [(name, log.entries[name]) for name in log.list_history(head, limit)]
        return [
            ConversationEntry(id=name, parent_id=entry.parent, message=_read_message(entry.message))
            for name, entry in history
        ]

    def _find_log(self, entry: str) -> ConversationLog:
        """Return the log with an entry. It is usually that of the conversation read last."""
        for label in (*self._sessions.list_cached(), *self._sessions.list_labels()):
            if self._sessions.find(label) is not None and entry in (log := self._sessions.load(label)).entries:
                return log
        raise LookupError(f"there is no entry {entry!r}")


def _list_entries(head: str | None, entries: dict[str, StoredEntry]) -> list[str]:
    log = ConversationLog()
    log.entries = entries
    return log.list_history(head)


def _find_usage(is_new: bool, message: Any) -> Any:  # noqa: ANN401 - a message, and a Usage or None
    """Return the usage of a new response. What is shown again was paid once."""
    return read_model_usage(message) if is_new else None


def _get_state(step: Step) -> Any:  # noqa: ANN401 - JSON, or None
    payload = step.payload
    return payload.state if isinstance(payload, ExternalTurnPayload | StatePayload) else None


def _read_record(state: Any) -> ConversationRecord | None:  # noqa: ANN401 - JSON
    text = state.get("record")
    return None if text is None else _RECORDS.validate_json(text)


def _copy_own_record(log: ConversationLog, label: str) -> ConversationRecord | None:
    """Return a copy of the record; None for the record of the conversation that a new fork shares its steps with."""
    record = log.record
    return (
        None
        if record is None or record.conversation_id != label
        else _RECORDS.validate_json(_RECORDS.dump_json(record))
    )


def _write_message(message: Any) -> str:  # noqa: ANN401 - a ModelMessage
    return ModelMessagesTypeAdapter.dump_json([message]).decode()


def _read_message(text: str) -> Any:  # noqa: ANN401 - a ModelMessage
    return ModelMessagesTypeAdapter.validate_json(text)[0]
