"""Reader for Codex: `~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl`.

A rollout is two logs in one: `response_item` has the items that were sent to and received from the model, `event_msg`
what was displayed. Messages are read from the items; events show which user messages were typed, and token usage. Files
from before October 2025 have the items without an envelope.
"""

from __future__ import annotations

import json
from bisect import bisect, bisect_left, insort
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.responses import DIALECT
from nexus_core.transcripts.base import (
    SCORE_NONE,
    SCORE_OWN,
    SCORE_SHARED,
    Transcript,
    TranscriptBranch,
    TranscriptCompaction,
    TranscriptEntry,
    TranscriptFormat,
    build_opaque_message,
    find_object,
    find_text,
    list_objects,
    try_read,
)
from nexus_core.transcripts.codex_writer import WRITER
from nexus_core.transcripts.messages import is_known_responses_item, is_message
from nexus_core.types.messages import Message, Reasoning, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.transcripts.base import JsonLine, LineAccount, LineOutcome
    from nexus_core.types.messages import Role, Tool

FORMAT_NAME = "codex"
_MESSAGE_ROLES: dict[str, Role] = {"user": "user", "system": "system", "developer": "system"}
_METADATA_KINDS = frozenset({"response_item", "session_meta", "turn_context", "world_state"})
"""Lines that are metadata: an item is one if it was not sent."""
_ENVELOPES = frozenset({"compacted", "event_msg", *_METADATA_KINDS})
"""Types of lines that have a payload."""
_UNSENT_ITEMS = frozenset({"ghost_snapshot"})
"""Items that were not sent to the model."""


class RolloutItem(NamedTuple):
    """A line without its envelope: type and content."""

    kind: str
    body: dict[str, Any]
    record: JsonLine

    @property
    def inner_kind(self) -> str:
        """Type of the item or event."""
        return find_text(self.body, "type") or ("message" if "role" in self.body else "")

    @property
    def full_kind(self) -> str:
        """Both types, for metadata lines."""
        return "/".join(filter(None, (self.kind, find_text(self.body, "type"))))


def open_envelope(record: JsonLine) -> RolloutItem:
    """Return the item of a line.

    Without an envelope, its type is guessed from its fields. One that is not an item's type is unknown.
    """
    value = record.value
    if isinstance(value.get("payload"), dict):
        payload: dict[str, Any] = value["payload"]
        kind = find_text(value, "type") or ("session_meta" if "id" in payload and "type" not in payload else "untyped")
        return RolloutItem(kind, payload, record)
    if "record_type" in value:
        return RolloutItem(f"record_type/{value['record_type']}", value, record)
    name = find_text(value, "type")
    if "role" in value or name in _UNSENT_ITEMS or is_known_responses_item(value):
        return RolloutItem("response_item", value, record)
    if "type" in value:
        return RolloutItem(f"{name} without a payload" if name in _ENVELOPES else name or "untyped", {}, record)
    return RolloutItem("session_meta" if "id" in value else "untyped", value, record)


def read_item(item: RolloutItem, body: dict[str, Any], account: LineAccount, *, model: str = "") -> TranscriptEntry:
    """Parse an item as a message. An unknown or invalid one becomes opaque."""
    record = item.record
    message = try_read(DIALECT.read, body, account, record.number)
    if message is None:
        message = build_opaque_message(_guess_role(body), FORMAT_NAME, body)
    return _build_entry(item, message, model, find_text(body, "id"))


def _build_entry(item: RolloutItem, message: Message, model: str, name: str = "") -> TranscriptEntry:
    return TranscriptEntry(
        message=message,
        lines=(item.record.number,),
        ids=(name,) if name else (),
        time=find_text(item.record.value, "timestamp"),
        model=model if message.role == "assistant" else "",
        raw=(item.record.value,),
    )


def read_usage(event: dict[str, Any]) -> Usage | None:
    """Return the usage of the last call from a `token_count` event, or None."""
    given = find_object(find_object(event, "info"), "last_token_usage")
    if not given:
        return None
    return Usage(
        input_tokens=_read_count(given, "input_tokens"),
        output_tokens=_read_count(given, "output_tokens"),
        cached_input_tokens=_read_count(given, "cached_input_tokens"),
        reasoning_tokens=_read_count(given, "reasoning_output_tokens"),
    )


def _guess_role(body: dict[str, Any]) -> Role:
    if find_text(body, "type").endswith("_output"):
        return "tool"
    return _MESSAGE_ROLES.get(find_text(body, "role"), "assistant")


def _read_count(value: dict[str, Any], key: str) -> int:
    found = value.get(key)
    return found if type(found) is int and found >= 0 else 0


SHOWN_EVENTS: dict[str, Role] = {"user_message": "user", "agent_message": "assistant"}
"""Events that display a message, and its role."""
_REASONING_EVENTS = frozenset({"agent_reasoning", "agent_reasoning_raw_content"})
_EVENTS_WITHOUT_ID = frozenset({"web_search_begin", "web_search_end", "image_generation_begin", "image_generation_end"})
"""Events of tool calls whose items have no id."""
_MIRROR_EVENTS = frozenset(
    {
        *SHOWN_EVENTS,
        *_REASONING_EVENTS,
        *_EVENTS_WITHOUT_ID,
        "exec_command_begin",
        "exec_command_end",
        "item_completed",
        "item_started",
        "mcp_tool_call_begin",
        "mcp_tool_call_end",
        "patch_apply_begin",
        "patch_apply_end",
        "view_image_tool_call",
    }
)
"""Events that display the content of an item."""
_SHOWN_ARGUMENTS = ("input", "arguments", "command", "changes", "query", "path")
_SHOWN_OUTPUTS = ("output", "aggregated_output", "formatted_output", "stdout", "result")
"""Fields of the events of a call that no item has."""
_STATUS_EVENTS = frozenset(
    {
        "background_event",
        "context_compacted",
        "deprecation_notice",
        "entered_review_mode",
        "error",
        "exited_review_mode",
        "plan_update",
        "session_configured",
        "stream_error",
        "task_complete",
        "task_started",
        "thread_name_updated",
        "thread_rolled_back",
        "token_count",
        "turn_aborted",
        "turn_complete",
        "turn_diff",
        "turn_started",
        "undo_completed",
        "warning",
    }
)
"""Events about the program's state, which the model does not see."""
_MAX_EVENT_DISTANCE = 8
"""Maximum distance between an event and its item, in messages."""
_MAX_COMPARED_CHARACTERS = 80
"""Only the start of a text is compared, because the rest may be displayed differently than it was sent."""


class EventMatcher:
    """Finds the events that are copies of items.

    Args:
        items: All lines of the file.
    """

    def __init__(self, items: Iterable[RolloutItem]) -> None:
        self._calls: set[str] = set()
        self._has_reasoning = self._has_calls = False
        self._messages: dict[str, tuple[list[int], list[str]]] = {role: ([], []) for role in SHOWN_EVENTS.values()}
        self._noted: set[str] = set()
        for item in items:
            if item.kind == "response_item":
                self._add_item(item)

    def has_items(self, role: Role) -> bool:
        """Return True if the file has a message item of that role."""
        return bool(self._messages[role][0])

    def is_from_event_only(self, item: RolloutItem) -> bool:
        """Return True for the event of a call or of reasoning in a file that has no item of either kind."""
        if item.inner_kind in _REASONING_EVENTS:
            return not self._has_reasoning
        is_call = bool(find_text(item.body, "call_id")) and item.inner_kind not in _EVENTS_WITHOUT_ID | _STATUS_EVENTS
        return is_call and not self._has_calls

    def is_copy(self, item: RolloutItem) -> bool:
        """Return True if the event displays the content of an item."""
        return item.inner_kind in _MIRROR_EVENTS and not self._describe_unmatched(item)

    def build_note(self, item: RolloutItem) -> str:
        """Return a note for an event that looks like a message but has no item.

        Returns "" for other events, and for further events of the same call or type.
        """
        kind = item.inner_kind
        what = self._describe_unmatched(item) if kind not in _STATUS_EVENTS else ""
        if not what and kind not in _MIRROR_EVENTS | _STATUS_EVENTS:
            what = f"an event that is new ({kind or 'untyped'})"
        subject = find_text(item.body, "call_id") or (kind if kind not in SHOWN_EVENTS else str(item.record.number))
        if not what or subject in self._noted:
            return ""
        self._noted.add(subject)
        return f"{what}; it is kept as it is, and no part of the session"

    def _add_item(self, item: RolloutItem) -> None:
        self._calls.update(filter(None, (find_text(item.body, "call_id"), find_text(item.body, "id"))))
        self._has_reasoning |= item.inner_kind == "reasoning"
        self._has_calls |= "call_id" in item.body
        role = find_text(item.body, "role")
        if item.inner_kind == "message" and role in self._messages:
            content = item.body.get("content")
            text = (
                content
                if isinstance(content, str)
                else "\n".join(find_text(part, "text") for part in list_objects(content))
            )
            numbers, texts = self._messages[role]
            numbers.append(item.record.number)
            texts.append(text)

    def _describe_unmatched(self, item: RolloutItem) -> str:
        """Describe an event's content that no item has, "" if an item has it."""
        kind, call = item.inner_kind, find_text(item.body, "call_id")
        if kind in SHOWN_EVENTS:
            is_near = self._is_near(item, SHOWN_EVENTS[kind], find_text(item.body, "message"))
            return "" if is_near else "a message that is only shown, not among what was sent"
        if kind in _REASONING_EVENTS:
            return "" if self._has_reasoning else "reasoning that is only shown, not among what was sent"
        if call and kind not in _EVENTS_WITHOUT_ID and call not in self._calls:
            name = find_text(item.body, "name")
            return f"a call{f' of {name!r}' if name else ''} that is only shown, not among what was sent"
        return ""

    def _is_near(self, item: RolloutItem, role: Role, shown: str) -> bool:
        start = shown.strip().partition("\n")[0][:_MAX_COMPARED_CHARACTERS]
        numbers, texts = self._messages[role]
        index = bisect(numbers, item.record.number)
        return any(start in text for text in texts[max(index - _MAX_EVENT_DISTANCE, 0) : index + _MAX_EVENT_DISTANCE])


_MAX_PROMPT_DISTANCE = 8
"""Maximum distance between a user message and its event, in messages or events."""


class PromptMatcher:
    """Matches user messages with the events of typed prompts. Either may come first.

    Args:
        entries: The entries so far. Messages that the user did not type are marked as injected in it.
        are_shown: True if the file has such events. Otherwise all user messages count as typed.
    """

    def __init__(self, entries: list[TranscriptEntry], *, are_shown: bool) -> None:
        self._entries = entries
        self._are_shown = are_shown
        self._typed: list[int] = []
        self._unmatched: deque[int] = deque(maxlen=_MAX_PROMPT_DISTANCE)
        self._shown: deque[str] = deque(maxlen=_MAX_PROMPT_DISTANCE)

    def add_message(self) -> None:
        """Match the newest entry, which is a user message, with an earlier event."""
        index = len(self._entries) - 1
        content = self._entries[index].message.content
        shown = next((text for text in self._shown if text in content), None)
        if shown is not None:
            self._shown.remove(shown)
        if shown is not None or not self._are_shown:
            self._typed.append(index)
        else:
            self._entries[index] = self._entries[index]._replace(kind="injected")
            self._unmatched.append(index)

    def add_event(self, text: str) -> None:
        """Match a typed prompt with an earlier message."""
        for index in reversed(self._unmatched):
            if text.strip() in self._entries[index].message.content:
                self._entries[index] = self._entries[index]._replace(kind="said")
                insort(self._typed, index)
                self._unmatched.clear()
                return
        self._shown.append(text.strip())

    def expect_event(self) -> None:
        """Mark the newest message as typed.

        The file ends with it, so its event is not written yet.
        """
        index = len(self._entries) - 1
        if self._unmatched and self._unmatched[-1] == index:
            self._entries[index] = self._entries[index]._replace(kind="said")

    def find_last_turns(self, turns: int, first: int) -> list[int]:
        """Return the indices where the last turns start, none before `first`."""
        oldest = max(bisect_left(self._typed, first), len(self._typed) - turns)
        return self._typed[oldest:]

    def truncate(self, index: int) -> None:
        """Forget the messages from `index` on, and everything that is still unmatched."""
        del self._typed[bisect_left(self._typed, index) :]
        self._unmatched.clear()
        self._shown.clear()


_MAX_KEPT_PROMPTS = 100
"""Number of typed prompts that count as kept by a compaction without a `replacement_history`."""


class RolloutReader:
    """Parser of a session. It runs on creation, `build_transcript` returns the result.

    Args:
        records: The session's lines.
        account: Collects the outcome of each line.
    """

    def __init__(self, records: Sequence[JsonLine], account: LineAccount) -> None:
        self._account = account
        self._entries: list[TranscriptEntry] = []
        self._branches: list[TranscriptBranch] = []
        self._compactions: list[TranscriptCompaction] = []
        self._system: tuple[Message, ...] = ()
        self._tools: tuple[Tool, ...] = ()
        self._id = self._cwd = self._model = ""
        self._reply_without_usage: int | None = None
        self._shown_calls: set[str] = set()
        self._shown_results: set[str] = set()
        items = [open_envelope(record) for record in records]
        self._events = EventMatcher(items)
        shown = {item.inner_kind for item in items if item.kind == "event_msg"}
        self._events_without_items = {event for event, role in SHOWN_EVENTS.items() if not self._events.has_items(role)}
        is_mirrored = "user_message" in shown and "user_message" not in self._events_without_items
        self._prompts = PromptMatcher(self._entries, are_shown=is_mirrored)
        for item in items:
            self._read(item)
        if items and self._entries and self._entries[-1].lines[-1] == items[-1].record.number:
            self._prompts.expect_event()

    def build_transcript(self) -> Transcript:
        """Return the parsed session."""
        # The event of a call may have its result, too, which is another entry.
        self._account.use("message", *dict.fromkeys(line for entry in self._entries for line in entry.lines))
        for branch in self._branches:
            self._account.use("branch", *dict.fromkeys(line for entry in branch.entries for line in entry.lines))
        return Transcript(
            format=FORMAT_NAME,
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

    def _read(self, item: RolloutItem) -> None:
        if item.kind == "response_item" and item.inner_kind not in _UNSENT_ITEMS:
            self._add(read_item(item, item.body, self._account, model=self._model))
        elif item.kind == "compacted":
            self._compact(item)
        elif item.kind == "event_msg":
            self._read_event(item)
        else:
            is_known = item.kind in _METADATA_KINDS or item.kind.startswith("record_type/")
            keep = self._account.keep if is_known else self._account.keep_unknown
            keep(item.record.number, item.full_kind, item.record.value)
            self._read_metadata(item)

    def _add(self, entry: TranscriptEntry) -> None:
        self._entries.append(entry)
        if entry.message.role == "assistant":
            self._reply_without_usage = len(self._entries) - 1
        elif entry.message.role == "user":
            self._prompts.add_message()

    def _read_metadata(self, item: RolloutItem) -> None:
        if item.kind == "turn_context":
            self._model = find_text(item.body, "model") or self._model
        if item.kind in ("session_meta", "turn_context"):
            self._cwd = self._cwd or find_text(item.body, "cwd")
        if item.kind != "session_meta" or self._id:
            return
        self._id = find_text(item.body, "id")
        instructions = find_text(find_object(item.body, "base_instructions"), "text")
        if instructions:
            self._system = (Message("system", instructions),)
        definitions = item.body.get("dynamic_tools")
        if isinstance(definitions, list):
            tools = try_read(DIALECT.read_tools, definitions, self._account, item.record.number)
            self._tools = tools or ()

    def _read_event(self, item: RolloutItem) -> None:
        kind, number = item.inner_kind, item.record.number
        if kind in self._events_without_items:
            self._account.note(number, "taken from what was shown; what was sent is not in the file")
            entry = read_item(
                item, {"role": SHOWN_EVENTS[kind], "content": find_text(item.body, "message")}, self._account
            )
            self._add(entry)
            return
        if self._events.is_from_event_only(item) and (messages := self._read_shown(item)):
            self._account.note(number, "taken from what was shown; what was sent is not in the file")
            for message in messages:
                self._add(_build_entry(item, message, self._model))
            return
        outcome: LineOutcome = "mirror" if self._events.is_copy(item) else "metadata"
        self._account.keep(number, item.full_kind, item.record.value, outcome)
        if note := self._events.build_note(item):
            self._account.note(number, note)
        if kind == "user_message":
            self._prompts.add_event(find_text(item.body, "message"))
        elif kind == "thread_rolled_back":
            self._roll_back(item)
        elif kind == "token_count" and self._reply_without_usage is not None and (usage := read_usage(item.body)):
            self._entries[self._reply_without_usage] = self._entries[self._reply_without_usage]._replace(usage=usage)
            self._reply_without_usage = None

    def _read_shown(self, item: RolloutItem) -> list[Message]:
        """Return the reasoning, or the call and the result, that an event displays and no earlier one has."""
        body = item.body
        if item.inner_kind in _REASONING_EVENTS:
            text = find_text(body, "text")
            return [Message("assistant", (Reasoning(text=text, api=FORMAT_NAME),))] if text else []
        call, found = find_text(body, "call_id"), []
        if call not in self._shown_calls:
            made = find_object(body, "invocation") or body
            name = find_text(made, "name") or find_text(made, "tool") or item.inner_kind.removesuffix("_begin")
            given: object = next((made[key] for key in _SHOWN_ARGUMENTS if key in made), {})
            arguments = given if isinstance(given, dict) else {"command": given}
            found.append({"type": "function_call", "call_id": call, "name": name, "arguments": json.dumps(arguments)})
            self._shown_calls.add(call)
        output = next((body[key] for key in _SHOWN_OUTPUTS if key in body), None)
        if output is not None and call not in self._shown_results:
            text = output if isinstance(output, str) else json.dumps(output)
            found.append({"type": "function_call_output", "call_id": call, "output": text})
            self._shown_results.add(call)
        read = (try_read(DIALECT.read, each, self._account, item.record.number) for each in found)
        return [message for message in read if message]

    def _roll_back(self, item: RolloutItem) -> None:
        turns = item.body.get("num_turns")
        if type(turns) is not int or turns < 1:
            return
        starts = self._prompts.find_last_turns(turns, self._compactions[-1].at if self._compactions else 0)
        if len(starts) < turns:
            self._account.note(item.record.number, "more turns were taken back than there are since the compaction")
        if starts:
            self._move_to_branch(starts[0])

    def _move_to_branch(self, index: int) -> None:
        """Move the entries from `index` on to a branch.

        Branches that forked from them now fork from it.
        """
        number = len(self._branches)
        self._branches = [
            replace(branch, leaves=number, at=branch.at - index)
            if branch.leaves is None and branch.at > index
            else branch
            for branch in self._branches
        ]
        self._branches.append(TranscriptBranch(kind="rolled-back", entries=tuple(self._entries[index:]), at=index))
        del self._entries[index:]
        self._prompts.truncate(index)
        self._reply_without_usage = None

    def _compact(self, item: RolloutItem) -> None:
        number, summary = item.record.number, find_text(item.body, "message")
        history = item.body.get("replacement_history")
        if isinstance(history, list):
            context = [read_item(item, body, self._account) for body in list_objects(history)]
            context = [_mark_summary(entry, summary) for entry in context]
        else:
            self._account.note(number, "a compaction that does not say what it kept; taken to be what the user typed")
            summary_entry = read_item(item, {"role": "user", "content": summary}, self._account)
            prompts = [entry for entry in self._list_context() if _is_prompt(entry)]
            context = [*prompts[-_MAX_KEPT_PROMPTS:], summary_entry._replace(kind="summary")]
        self._account.use("compaction", number)
        self._compactions.append(
            TranscriptCompaction(
                line=number,
                at=len(self._entries),
                kept_from=len(self._entries),
                summary=summary,
                context=tuple(context),
                time=find_text(item.record.value, "timestamp"),
                raw=item.record.value,
            )
        )
        self._reply_without_usage = None

    def _list_context(self) -> list[TranscriptEntry]:
        last = self._compactions[-1] if self._compactions else None
        return [*last.context, *self._entries[last.at :]] if last else self._entries


def _is_prompt(entry: TranscriptEntry) -> bool:
    return entry.message.role == "user" and entry.kind == "said"


def _mark_summary(entry: TranscriptEntry, summary: str) -> TranscriptEntry:
    is_summary = bool(summary) and summary in entry.message.content
    return entry._replace(kind="summary") if is_summary else entry


_HEADER_FIELDS = ("instructions", "git", "cwd")


def score_line(value: dict[str, Any]) -> int:
    """Score a line.

    Older files have no envelopes, but a header, items and state lines.
    """
    if isinstance(value.get("payload"), dict):
        return SCORE_OWN if "timestamp" in value or isinstance(value.get("type"), str) else SCORE_NONE
    if "type" in value or "role" in value:
        return SCORE_SHARED if is_message(value) else SCORE_NONE
    is_header = {"id", "timestamp"} <= value.keys() and any(key in value for key in _HEADER_FIELDS)
    return SCORE_OWN if is_header or "record_type" in value else SCORE_NONE


def read_session(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse a session."""
    return RolloutReader(records, account).build_transcript()


FORMAT = TranscriptFormat(FORMAT_NAME, "a Codex rollout", score_line, read_lines=read_session, writer=WRITER)
