"""Reader for OpenHands: trajectories, and `~/.openhands/conversations/<id>` of its command line.

A trajectory is a list of events. In version 0 an event has an `action` or an `observation` with the event that caused
it; in version 1 it has a `kind`: `MessageEvent`, `ActionEvent`, `ObservationEvent`. A conversation of the command line
has each event in a file of its own, beside `base_state.json`, which is the file to name.

Not in it: tokens of a call, and in version 0 the model. Actions that the agent takes without a tool call, such as
`recall`, are metadata. Condensed histories (`Condensation`) name the events that the model no longer read; they are
shown as a compaction without the events that were kept.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nexus_core import Message
from nexus_core.plugin import Reasoning, Text
from nexus_core.plugin.transcripts import (
    SCORE_NONE,
    SCORE_OWN,
    SCORE_SHARED,
    EntryCollector,
    JsonLine,
    TranscriptFormat,
    build_tool_call,
    build_tool_result,
    find_object,
    find_text,
    list_objects,
    read_blocks,
)
from nexus_plugins.transcripts._pieces import ConversationTree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nexus_core.plugin import Part
    from nexus_core.plugin.transcripts import LineAccount, LocatedValue, Transcript

NAME = "openhands"
_EVENT_KINDS = (
    "ActionEvent",
    "AgentErrorEvent",
    "Condensation",
    "CondensationSummaryEvent",
    "ConversationStateUpdateEvent",
    "MessageEvent",
    "ObservationEvent",
    "PauseEvent",
    "SystemPromptEvent",
    "UserRejectObservation",
)
_SILENT_ACTIONS = ("change_agent_state", "recall", "condensation_request", "start_hook_execution")
_SILENT_OBSERVATIONS = ("agent_state_changed", "null", "recall", "server_ready")
_HEADER = "openhands_state"
_STATE_FILE = "base_state.json"


def score_line(value: dict[str, Any]) -> int:
    """Score an event."""
    if _HEADER in value:
        return SCORE_OWN
    kind = find_text(value, "kind")
    if kind in _EVENT_KINDS:
        return SCORE_OWN if "source" in value else SCORE_SHARED
    is_event = "source" in value and "id" in value and "timestamp" in value
    has_event = isinstance(value.get("action"), str) or isinstance(value.get("observation"), str)
    return SCORE_OWN if is_event and has_event and "role" not in value else SCORE_NONE


def read_events(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse the events of a conversation."""
    return _OpenHandsReader(account).read(records)


class _OpenHandsReader:
    def __init__(self, account: LineAccount) -> None:
        self._found = EntryCollector(NAME, account)
        self._system: list[Message] = []
        self._state: dict[str, Any] = {}
        self._calls: dict[object, str] = {}  # id of the call, by event
        self._model = ""

    def read(self, records: Sequence[JsonLine]) -> Transcript:
        for record in records:
            value = record.value
            if _HEADER in value:
                self._state = find_object(value, _HEADER)
                self._model = find_text(find_object(find_object(self._state, "agent"), "llm"), "model")
                self._found.keep(record, "state")
            elif isinstance(value.get("action"), str):
                self._read_action(record)
            elif isinstance(value.get("observation"), str):
                self._read_observation(record)
            else:
                self._read_event(record)
        return self._found.build(
            id=find_text(self._state, "id"),
            cwd=find_text(find_object(self._state, "workspace"), "working_dir"),
            asked=self._model,
            system=tuple(self._system[:1]),
        )

    # ---- version 1 ------------------------------------------------------------------------------------------------

    def _read_event(self, record: JsonLine) -> None:
        value, kind = record.value, find_text(record.value, "kind")
        name, time = find_text(value, "id"), find_text(value, "timestamp")
        if kind == "MessageEvent":
            body = find_object(value, "llm_message")
            is_reply = body.get("role") == "assistant"
            parts = [*_read_thoughts(value), *_read_thoughts(body), *read_blocks(body.get("content"), NAME)]
            self._found.add(
                "assistant" if is_reply else "user",
                parts,
                record,
                id=name,
                time=time,
                model=self._model if is_reply else "",
                kind="said" if is_reply or find_text(value, "source") != "environment" else "injected",
            )
        elif kind == "ActionEvent":
            given = find_object(value, "tool_call")
            function = find_object(given, "function") or given
            call_id = find_text(value, "tool_call_id") or find_text(given, "id") or name
            arguments = function.get("arguments") if function.get("arguments") is not None else value.get("action")
            call = build_tool_call(call_id, find_text(value, "tool_name") or function.get("name"), arguments)
            parts = [*_read_thoughts(value), *read_blocks(value.get("thought"), NAME), call]
            self._found.add("assistant", parts, record, id=name, time=time, model=self._model, stop="tools")
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            self._read_result(record, kind, name, time)
        elif kind == "SystemPromptEvent":
            text = find_object(value, "system_prompt")
            self._add_system(find_text(text, "text"))
            self._found.keep(record, kind)
        elif kind == "Condensation" and find_text(value, "summary"):
            self._found.add_compaction(record, find_text(value, "summary"), time=time)
        elif kind in _EVENT_KINDS:
            self._found.keep(record, kind)
        else:
            self._found.keep_unknown(record, kind or "untyped")

    def _read_result(self, record: JsonLine, kind: str, name: str, time: str) -> None:
        value = record.value
        seen = find_object(value, "observation")
        content: object = seen.get("content") if "content" in seen else seen or None
        if content is None:
            content = find_text(value, "error") or find_text(value, "rejection_reason")
        failed = kind != "ObservationEvent" or seen.get("is_error") is True
        call_id = find_text(value, "tool_call_id")
        if call_id:
            tool = find_text(value, "tool_name")
            result = build_tool_result(call_id, content, NAME, name=tool, is_error=failed)
            self._found.add("tool", [result], record, id=name, time=time)
        else:
            self._found.add("user", read_blocks(content, NAME), record, id=name, time=time, kind="injected")

    # ---- version 0 ------------------------------------------------------------------------------------------------

    def _read_action(self, record: JsonLine) -> None:
        value, kind = record.value, find_text(record.value, "action")
        arguments, time = find_object(value, "args"), find_text(value, "timestamp")
        if kind == "system":
            self._add_system(find_text(arguments, "content"))
            self._found.keep(record, kind)
        elif kind in _SILENT_ACTIONS:
            self._found.keep(record, kind)
        elif kind == "message":
            is_reply = value.get("source") == "agent"
            text = find_text(arguments, "content") or find_text(value, "message")
            self._found.add("assistant" if is_reply else "user", text, record, time=time)
        elif kind == "condensation" and find_text(arguments, "summary"):
            self._found.add_compaction(record, find_text(arguments, "summary"), time=time)
        elif kind == "finish" and "tool_call_metadata" not in value:
            text = (
                find_text(arguments, "final_thought") or find_text(arguments, "thought") or find_text(value, "message")
            )
            self._found.add("assistant", text, record, time=time, stop="end")
        else:
            self._add_action(record, kind, arguments, time)

    def _add_action(self, record: JsonLine, kind: str, arguments: dict[str, Any], time: str) -> None:
        value = record.value
        known = find_object(value, "tool_call_metadata")
        call_id = find_text(known, "tool_call_id") or f"event-{value.get('id')}"
        if isinstance(value.get("id"), int | str):
            self._calls[value["id"]] = call_id
        parts: list[Part] = []
        if thought := find_text(arguments, "thought"):
            parts.append(Text(thought))
        given = {key: each for key, each in arguments.items() if key != "thought" and each not in (None, "")}
        parts.append(build_tool_call(call_id, find_text(known, "function_name") or kind, given))
        role = "user" if value.get("source") == "user" else "assistant"
        if role == "user":  # a command that the user ran; only a model can have calls
            self._found.note(record, "a command of the user, shown as a call")
        self._found.add("assistant", parts, record, time=time, stop="tools")

    def _read_observation(self, record: JsonLine) -> None:
        value, kind = record.value, find_text(record.value, "observation")
        time = find_text(value, "timestamp")
        known = find_object(value, "tool_call_metadata")
        cause = value.get("cause")
        call_id = find_text(known, "tool_call_id")
        if not call_id and isinstance(cause, int | str):
            call_id = self._calls.get(cause, "")
        content = value.get("content") or value.get("message")
        if kind in _SILENT_OBSERVATIONS and not call_id:
            self._found.keep(record, kind)
        elif call_id:
            failed = kind == "error" or value.get("success") is False
            result = build_tool_result(call_id, content, NAME, name=find_text(known, "function_name"), is_error=failed)
            self._found.add("tool", [result], record, time=time)
        else:
            self._found.add("user", read_blocks(content, NAME), record, time=time, kind="injected")

    def _add_system(self, text: str) -> None:
        if text:
            self._system.append(Message("system", text))


def _read_thoughts(value: dict[str, Any]) -> list[Part]:
    blocks = list_objects(value.get("thinking_blocks"))
    found: list[Part] = [
        Reasoning(text=find_text(each, "thinking"), signature=find_text(each, "signature"), api=NAME) for each in blocks
    ]
    if not found and (text := find_text(value, "reasoning_content")):
        found.append(Reasoning(text=text, api=NAME))
    return found


def read_document(_text: str, found: Mapping[str, LocatedValue], account: LineAccount) -> Transcript:
    """Parse a single event, as in a conversation that was just begun."""
    account.lines = 1
    return read_events([JsonLine(1, {name: piece.value for name, piece in found.items()})], account)


def gather_files(path: Path) -> str | None:
    """Return the events of a conversation as a list, after its state."""
    if path.name != _STATE_FILE or path.is_symlink():
        return None
    folder = path.parent / "events"
    tree = ConversationTree(path)
    state = tree.read(path)
    if not state or folder.is_symlink() or not folder.is_dir():
        return None
    about = {"id": state.get("id"), "workspace": state.get("workspace")}
    model = find_text(find_object(find_object(state, "agent"), "llm"), "model")
    # Other fields of the state have API keys.
    header = {_HEADER: {**about, "agent": {"llm": {"model": model}}}}
    events = [tree.read(each) for each in tree.list_files(folder)]
    return json.dumps([header, *(event for event in events if event)], ensure_ascii=False)


def list_conversation_files(path: Path) -> list[Path]:
    """Return the events of a conversation, [] for any other path.

    Raises:
        TranscriptError: There are too many.
    """
    is_state = path.name == _STATE_FILE and not path.is_symlink()
    return ConversationTree(path).list_files(path.parent / "events") if is_state else []


FORMAT = TranscriptFormat(
    NAME,
    "a conversation of OpenHands",
    score_line,
    read_lines=read_events,
    read_document=read_document,
    gather_files=gather_files,
    list_conversation_files=list_conversation_files,
)
