"""Reader for Copilot CLI: `~/.copilot/session-state/<id>/events.jsonl`, formerly one document.

A line is an event with `type`, `data`, `id`, `parentId` and `timestamp`. Messages are `user.message` and
`assistant.message`; the results of tool calls are `tool.execution_complete`, and events with a `parentToolCallId`
belong to a subagent. The older document has the messages in `chatMessages`, in the format of OpenAI.

Not in the log: the contents of attached files, which it only names; the tools that the model was offered; input tokens
of a single call. Encrypted reasoning can be read by its provider only. `session.truncation` says that messages were
left out of a request, but not which ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core import Message, Usage, get_dialect
from nexus_core.plugin import Reasoning, Text
from nexus_core.plugin.transcripts import (
    SCORE_NONE,
    SCORE_OWN,
    EntryCollector,
    JsonLine,
    TranscriptFormat,
    build_opaque_message,
    build_tool_call,
    build_tool_result,
    find_object,
    find_text,
    list_objects,
    read_count,
    read_document_records,
    try_read,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.plugin import Part
    from nexus_core.plugin.transcripts import LineAccount, LocatedValue, Transcript

NAME = "copilot"
_SILENT_PREFIXES = ("session.", "hook.", "subagent.", "permission.", "skill.")
_SILENT_EVENTS = (
    *("abort", "assistant.intent", "assistant.message_delta", "assistant.reasoning_delta", "assistant.turn_end"),
    *("assistant.turn_start", "assistant.usage", "tool.execution_partial_result", "tool.execution_progress"),
    "tool.user_requested",
)
"""Of the prefixes of messages, the events that are none. What is new below them may be one."""


def score_line(value: dict[str, Any]) -> int:
    """Score an event, or the document of the older format."""
    if "chatMessages" in value and "timeline" in value:
        return SCORE_OWN
    kind = find_text(value, "type")
    is_event = isinstance(value.get("data"), dict) and {"id", "timestamp"} <= value.keys()
    return SCORE_OWN if is_event and ("." in kind or kind == "abort") else SCORE_NONE


def read_events(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse an event log."""
    return _CopilotReader(account).read(records)


class _CopilotReader:
    def __init__(self, account: LineAccount) -> None:
        self._found = EntryCollector(NAME, account)
        self._session: dict[str, Any] = {}
        self._system: list[Message] = []
        self._agents: dict[str, str] = {}  # by the call that started it
        self._agent_names: set[str] = set()
        self._calls: set[str] = set()
        self._reasoning: dict[str, list[tuple[JsonLine, str]]] = {}  # by agent, of the message that follows

    def read(self, records: Sequence[JsonLine]) -> Transcript:
        readers = {
            "session.start": self._read_start,
            "session.resume": self._read_start,
            "system.message": self._read_system,
            "system.notification": self._read_notification,
            "user.message": self._read_user,
            "assistant.message": self._read_reply,
            "assistant.reasoning": self._read_reasoning,
            "tool.execution_start": self._read_call,
            "tool.execution_complete": self._read_result,
            "subagent.started": self._read_subagent,
            "session.compaction_complete": self._read_compaction,
        }
        for record in records:
            kind, data = find_text(record.value, "type"), find_object(record.value, "data")
            read = readers.get(kind)
            if read is not None:
                read(record, data)
            elif kind.startswith(_SILENT_PREFIXES) or kind in _SILENT_EVENTS:
                self._found.keep(record, kind)
            else:
                self._found.keep_unknown(record, kind)
        for agent in list(self._reasoning):
            self._flush_reasoning(agent)
        context = find_object(self._session, "context")
        return self._found.build(
            id=find_text(self._session, "sessionId"),
            cwd=find_text(context, "cwd"),
            asked=find_text(self._session, "selectedModel"),
            system=tuple(self._system[-1:]),
        )

    def _read_start(self, record: JsonLine, data: dict[str, Any]) -> None:
        self._session = {**data, **self._session}
        self._found.keep(record)

    def _read_system(self, record: JsonLine, data: dict[str, Any]) -> None:
        if text := find_text(data, "content"):
            self._system.append(Message("system", text))
        self._found.keep(record)

    def _read_notification(self, record: JsonLine, data: dict[str, Any]) -> None:
        self._found.add("user", find_text(data, "content"), record, kind="injected", time=_get_time(record))

    def _read_user(self, record: JsonLine, data: dict[str, Any]) -> None:
        typed, sent = find_text(data, "content"), find_text(data, "transformedContent")
        # The program adds the time and other facts to the text; both are shown if it replaced it.
        parts = [Text(each) for each in ([sent] if typed in sent else [typed, sent]) if each]
        self._found.add(
            "user",
            parts,
            record,
            agent=self._find_agent(data),
            id=_get_id(record),
            time=_get_time(record),
        )

    def _read_reply(self, record: JsonLine, data: dict[str, Any]) -> None:
        agent = self._find_agent(data)
        parts: list[Part] = []
        text = find_text(data, "reasoningText")
        hidden = find_text(data, "reasoningOpaque") or find_text(data, "encryptedContent")
        noted = self._reasoning.pop(agent, [])
        if any(each == text for _, each in noted):
            text = ""
        parts += [Reasoning(text=each, api=NAME) for _, each in noted]
        if text or hidden:
            parts.append(Reasoning(text=text, encrypted=hidden, api=NAME))
        if content := find_text(data, "content"):
            parts.append(Text(content))
        for request in list_objects(data.get("toolRequests")):
            self._calls.add(find_text(request, "toolCallId"))
            parts.append(build_tool_call(request.get("toolCallId"), request.get("name"), request.get("arguments")))
        tokens = read_count(data.get("outputTokens"))
        self._found.add(
            "assistant",
            parts,
            record,
            agent=agent,
            id=_get_id(record),
            time=_get_time(record),
            model=find_text(data, "model"),
            stop="tools" if data.get("toolRequests") else "",
            usage=Usage(output_tokens=tokens) if tokens else None,
            also=[each for each, _ in noted],
        )

    def _read_reasoning(self, record: JsonLine, data: dict[str, Any]) -> None:
        text = find_text(data, "content")
        if text:
            self._reasoning.setdefault(self._find_agent(data), []).append((record, text))
        else:
            self._found.keep(record)

    def _flush_reasoning(self, agent: str) -> None:
        for record, text in self._reasoning.pop(agent, []):
            self._found.add("assistant", [Reasoning(text=text, api=NAME)], record, agent=agent, time=_get_time(record))

    def _read_call(self, record: JsonLine, data: dict[str, Any]) -> None:
        """Read the start of a tool: a copy of a call, except where no message has the call."""
        name = find_text(data, "toolCallId")
        if name in self._calls:
            self._found.mirror(record)
            return
        self._calls.add(name)
        agent = self._find_agent(data)
        self._flush_reasoning(agent)
        call = build_tool_call(name, data.get("toolName"), data.get("arguments"))
        self._found.add(
            "assistant", [call], record, agent=agent, id=_get_id(record), time=_get_time(record), stop="tools"
        )

    def _read_result(self, record: JsonLine, data: dict[str, Any]) -> None:
        result, failure = data.get("result"), find_object(data, "error")
        content = result.get("content") if isinstance(result, dict) and "content" in result else result
        result_part = build_tool_result(
            data.get("toolCallId"),
            content if content is not None else find_text(failure, "message"),
            NAME,
            name=find_text(data, "toolName"),
            is_error=data.get("success") is False,
        )
        self._found.add(
            "tool", [result_part], record, agent=self._find_agent(data), id=_get_id(record), time=_get_time(record)
        )

    def _read_subagent(self, record: JsonLine, data: dict[str, Any]) -> None:
        call, name = find_text(data, "toolCallId"), find_text(data, "agentName")
        self._agents[call] = f"{name}-{call}" if name in self._agent_names else name
        self._agent_names.add(name)
        self._found.keep(record)

    def _read_compaction(self, record: JsonLine, data: dict[str, Any]) -> None:
        summary = find_text(data, "summaryContent")
        if not summary:
            self._found.keep(record)
            return
        before = data.get("preCompactionTokens")
        self._found.add_compaction(
            record, summary, time=_get_time(record), tokens_before=before if type(before) is int else None
        )

    def _find_agent(self, data: dict[str, Any]) -> str:
        parent = find_text(data, "parentToolCallId")
        return self._agents.get(parent, parent)


def _get_id(record: JsonLine) -> str:
    return find_text(record.value, "id")


def _get_time(record: JsonLine) -> str:
    return find_text(record.value, "timestamp")


def read_document(text: str, found: Mapping[str, LocatedValue], account: LineAccount) -> Transcript:
    """Parse a session of the older format."""
    header, records = read_document_records(text, found, "chatMessages", account)
    collector = EntryCollector(NAME, account)
    collector.keep(header, "header")
    dialect = get_dialect("openai")
    for record in records:
        message = try_read(dialect.read, record.value, account, record.number) or build_opaque_message(
            "user", NAME, record.value
        )
        collector.add(message.role, message.parts, record)
    return collector.build(id=find_text(header.value, "sessionId"))


FORMAT = TranscriptFormat(
    NAME, "a session of Copilot CLI", score_line, read_lines=read_events, read_document=read_document
)
