"""Conversations of the Agent Client Protocol, read from the messages between an editor and an agent."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from nexus_core.transcripts.base import LineReport, Transcript, TranscriptEntry
from nexus_core.types.messages import File, Image, Message, Reasoning, Text, ToolCall, ToolResult, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nexus_core.types.messages import JSON, Part, ResultPart, Stop

FORMAT_NAME = "acp"
MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is passed on, but not read."""
MAX_PENDING_REQUESTS = 10_000
"""Requests without a response; the oldest are forgotten."""
_MAX_DEPTH_ERROR = (ValueError, RecursionError)
_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "max_tokens": "length",
    "max_turn_requests": "length",
    "refusal": "refusal",
    "cancelled": "broken",
}
_USAGE_FIELDS = (
    "totalTokens",
    "inputTokens",
    "outputTokens",
    "thoughtTokens",
    "cachedReadTokens",
    "cachedWriteTokens",
)
_OPENING_METHODS = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
_NO_RESULT = "(the agent reported no result)"

Sender = Literal["editor", "agent"]


@dataclass(slots=True)
class _Call:
    """A tool call of an agent, as its updates describe it."""

    id: str
    name: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    parts: tuple[ResultPart, ...] = ()
    status: str = ""

    @property
    def is_done(self) -> bool:
        return self.status in {"completed", "failed"}


@dataclass(slots=True)
class _Segment:
    """A reply of the model as far as updates show one: reasoning, text, then tool calls."""

    reasoning: str = ""
    text: str = ""
    calls: dict[str, _Call] = field(default_factory=dict)


@dataclass(slots=True)
class AcpSession:
    """One session of an agent.

    Attributes:
        id: The agent's id of it.
        cwd: Its working directory; "" if the editor did not name one.
        model: Its model, as the agent names it; "" if it does not.
        entries: The messages of finished turns.
        is_changed: True if there are messages that `to_transcript` has not returned yet.
    """

    id: str
    cwd: str = ""
    model: str = ""
    entries: list[TranscriptEntry] = field(default_factory=list)
    is_changed: bool = False
    _user: list[Part] = field(default_factory=list)
    _segments: list[_Segment] = field(default_factory=list)
    _lines: int = 0

    def to_transcript(self) -> Transcript:
        """Return the conversation so far, finished turns only."""
        self.is_changed = False
        report = LineReport(lines=len(self.entries), outcomes={"message": tuple(range(1, len(self.entries) + 1))})
        return Transcript(
            format=FORMAT_NAME,
            api="",
            entries=tuple(self.entries),
            report=report,
            id=self.id,
            cwd=self.cwd,
            asked=self.model,
        )

    def start_turn(self, prompt: object) -> None:
        """Begin a turn with the blocks of a user message. A turn before it that was not ended is ended."""
        self.end_turn("", None)
        self._user = [part for block in _list(prompt) if (part := read_block(block)) is not None]

    def update(self, update: JSON) -> None:
        """Add an update of the agent to the turn."""
        kind = update.get("sessionUpdate")
        content = update.get("content")
        if kind == "user_message_chunk":  # a session that is loaded repeats its messages
            if self._segments:
                self.end_turn("end_turn", None)
            part = read_block(content)
            self._user += [] if part is None else [part]
        elif kind in {"agent_message_chunk", "agent_thought_chunk"}:
            text = _text(content)
            segment = self._get_segment()
            if kind == "agent_message_chunk":
                segment.text += text
            else:
                segment.reasoning += text
        elif kind in {"tool_call", "tool_call_update"}:
            self._update_call(update)
        elif kind == "current_model_update":
            self.model = str(update.get("currentModelId") or self.model)

    def end_turn(self, stop: str, usage: Usage | None) -> None:
        """Move the turn to the entries. Usage and stop reason belong to its last reply."""
        if not self._user and not self._segments:
            return
        if self._user:
            self._add(Message("user", self._user))
        replies = [segment for segment in self._segments if segment.text or segment.reasoning or segment.calls]
        for segment in replies:
            is_last = segment is replies[-1]
            parts: list[Part] = [Reasoning(text=segment.reasoning)] if segment.reasoning else []
            parts += [Text(segment.text)] if segment.text else []
            parts += [ToolCall(call.id, call.name or "tool", call.arguments) for call in segment.calls.values()]
            read: Stop = _STOPS.get(stop, "") if is_last else "tools"
            self._add(Message("assistant", parts), stop=read, usage=usage if is_last else None)
            if segment.calls:
                results = [_read_result(call) for call in segment.calls.values()]
                self._add(Message("tool", results))
        self._user, self._segments = [], []

    def _add(self, message: Message, *, stop: Stop = "", usage: Usage | None = None) -> None:
        self._lines += 1
        is_reply = message.role == "assistant"
        entry = TranscriptEntry(
            message,
            (self._lines,),
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            model=self.model if is_reply else "",
            stop=stop,
            usage=usage,
        )
        self.entries.append(entry)
        self.is_changed = True

    def _get_segment(self) -> _Segment:
        """Return the reply that text belongs to: a new one behind tool calls."""
        if not self._segments or self._segments[-1].calls:
            self._segments.append(_Segment())
        return self._segments[-1]

    def _update_call(self, update: JSON) -> None:
        name = update.get("toolCallId")
        if not isinstance(name, str):
            return
        call = next((each.calls[name] for each in self._segments if name in each.calls), None)
        if call is None:
            if not self._segments or any(each.is_done for each in self._segments[-1].calls.values()):
                self._segments.append(_Segment())
            call = self._segments[-1].calls[name] = _Call(name)
        call.name = str(update.get("title") or call.name or update.get("kind") or "")
        call.status = str(update.get("status") or call.status)
        given, output = update.get("rawInput"), update.get("rawOutput")
        if isinstance(given, dict):
            call.arguments = given
        elif given is not None:
            call.arguments = {"input": given}
        parts = tuple(part for block in _list(update.get("content")) if (part := _read_result_block(block)) is not None)
        if parts:
            call.parts = parts
        elif output is not None and not call.parts:
            text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
            call.parts = (Text(text),)


class AcpTraffic:
    """Reads the messages between an editor and an agent, and keeps the conversations in them.

    What is not a message of the protocol is ignored: it was passed on, and the two sides know what it means.

    Args:
        on_change: Called with a session when a turn of it has ended.
    """

    def __init__(self, on_change: Callable[[AcpSession], None]) -> None:
        self.sessions: dict[str, AcpSession] = {}
        self._on_change = on_change
        self._requests: dict[str, tuple[str, JSON]] = {}

    def read_line(self, sender: Sender, line: bytes) -> None:
        """Read one line of either side."""
        if len(line) > MAX_LINE_BYTES or not line.strip():
            return
        try:
            value = json.loads(line)
        except _MAX_DEPTH_ERROR:
            return
        for message in value if isinstance(value, list) else [value]:
            if isinstance(message, dict):
                self._read_message(sender, message)

    def end(self) -> None:
        """End the turns that are open, because one side is gone."""
        for session in self.sessions.values():
            session.end_turn("", None)
            self._report(session)

    def _read_message(self, sender: Sender, message: JSON) -> None:
        method, params = message.get("method"), message.get("params")
        if isinstance(method, str):
            given = params if isinstance(params, dict) else {}
            if sender == "editor":
                self._read_request(method, given, message.get("id"))
            elif method == "session/update" and (session := self._find(given)) is not None:
                update = given.get("update")
                if isinstance(update, dict):
                    session.update(update)
        elif sender == "agent" and "id" in message:
            asked = self._requests.pop(_key(message["id"]), None)
            result = message.get("result")
            if asked is not None:
                self._read_response(*asked, result if isinstance(result, dict) else {})

    def _read_request(self, method: str, params: JSON, name: object) -> None:
        if method in _OPENING_METHODS or method == "session/prompt":
            if len(self._requests) >= MAX_PENDING_REQUESTS:
                del self._requests[next(iter(self._requests))]
            self._requests[_key(name)] = method, params
        session_id = params.get("sessionId")
        if not isinstance(session_id, str):
            return
        if method in {"session/load", "session/resume"}:
            self._open(session_id, params)
        elif method == "session/prompt":
            self._open(session_id, {}).start_turn(params.get("prompt"))
        elif method == "session/set_model" and session_id in self.sessions:
            session = self.sessions[session_id]
            session.model = str(params.get("modelId") or session.model)

    def _read_response(self, method: str, params: JSON, result: JSON) -> None:
        if method in _OPENING_METHODS:
            name = result.get("sessionId", params.get("sessionId"))
            if isinstance(name, str):
                opened = self._open(name, params)
                models = result.get("models")
                if isinstance(models, dict):
                    opened.model = str(models.get("currentModelId") or opened.model)
                if method == "session/load":
                    opened.end_turn("end_turn", None)  # what was loaded is history
                    self._report(opened)
        elif (session := self._find(params)) is not None:
            stop = result.get("stopReason")
            session.end_turn(stop if isinstance(stop, str) else "", read_usage(result.get("usage")))
            self._report(session)

    def _open(self, name: str, params: JSON) -> AcpSession:
        session = self.sessions.setdefault(name, AcpSession(name))
        cwd = params.get("cwd")
        if isinstance(cwd, str):
            session.cwd = cwd
        return session

    def _find(self, params: JSON) -> AcpSession | None:
        name = params.get("sessionId")
        return self.sessions.get(name) if isinstance(name, str) else None

    def _report(self, session: AcpSession) -> None:
        if session.is_changed:
            self._on_change(session)


def read_usage(value: object) -> Usage | None:
    """Return the usage that an agent reports for a turn; None if it reports none."""
    if not isinstance(value, dict):
        return None
    counts = {name: number if type(number := value.get(name)) is int and number >= 0 else 0 for name in _USAGE_FIELDS}
    if not any(counts.values()):
        return None
    cached, written = counts["cachedReadTokens"], counts["cachedWriteTokens"]
    inputs, outputs = counts["inputTokens"], counts["outputTokens"]
    if cached + written and inputs + cached + written + outputs <= counts["totalTokens"]:
        inputs += cached + written  # some agents count what the cache has beside the input, and some in it
    return Usage(
        input_tokens=max(inputs, cached + written),
        output_tokens=outputs,
        cached_input_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=min(counts["thoughtTokens"], outputs),
    )


def read_block(block: object) -> Text | Image | File | None:
    """Return a content block as a part of a message; None if it has no content."""
    if not isinstance(block, dict):
        return None
    kind, mime, data = block.get("type"), _string(block, "mimeType"), _string(block, "data")
    part: Text | Image | File | None = None
    if kind == "text" and _string(block, "text"):
        part = Text(_string(block, "text"))
    elif kind == "image":
        part = Image(mime=mime, data=data, url=_string(block, "uri"))
    elif kind == "audio":
        part = File(name="audio", mime=mime, data=data)
    elif kind == "resource_link":
        part = Text(f"[{_string(block, 'name') or 'file'}]({_string(block, 'uri')})")
    elif kind == "resource" and isinstance(resource := block.get("resource"), dict):
        uri, text = _string(resource, "uri"), resource.get("text")
        if isinstance(text, str):
            part = Text(f"{uri}\n{text}" if uri else text)
        else:
            part = File(name=uri, mime=_string(resource, "mimeType"), data=_string(resource, "blob"))
    return part


def _read_result_block(block: object) -> Text | Image | File | None:
    """Return a block of a tool call's content: content, a change of a file, or a terminal."""
    if not isinstance(block, dict):
        return None
    if block.get("type") == "content":
        return read_block(block.get("content"))
    if block.get("type") == "diff":
        path, old, new = _string(block, "path"), block.get("oldText"), _string(block, "newText")
        before = [f"--- {path}", old] if isinstance(old, str) else []
        return Text("\n".join([*before, f"+++ {path}", new]))
    return Text(f"[terminal {_string(block, 'terminalId')}]") if block.get("type") == "terminal" else None


def _read_result(call: _Call) -> ToolResult:
    is_missing = not call.parts and not call.is_done
    parts = (Text(_NO_RESULT),) if is_missing else call.parts
    return ToolResult(call.id, parts, call.name or "tool", is_error=call.status == "failed" or is_missing)


def _text(content: object) -> str:
    return str(content.get("text") or "") if isinstance(content, dict) else ""


def _string(value: JSON, name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def _list(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()


def _key(name: object) -> str:
    return json.dumps(name)
