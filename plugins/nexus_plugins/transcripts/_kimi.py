"""Reader for Kimi: `agents/<agent>/wire.jsonl` of Kimi Code, `context.jsonl` and `wire.jsonl` of Kimi CLI.

In Kimi Code a line is a record: a message of the context, or an event of the loop. The events of a step
(`content.part`, `tool.call`) become one reply. Kimi CLI has the messages in `context.jsonl`, in the format of OpenAI,
and a log of what was shown in `wire.jsonl`.

Id and agent are the names of folders only; the directory is in another file. Outputs of tools that are longer than
50,000 characters are in files beside, and not read. `context.undo` says that turns were taken back, but not which ones:
they stay, with a note.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nexus_core import Message, Tool, Usage, get_dialect
from nexus_core.plugin import Text
from nexus_core.plugin.transcripts import (
    SCORE_NONE,
    SCORE_OWN,
    SCORE_SHARED,
    EntryCollector,
    TranscriptFormat,
    build_opaque_message,
    build_tool_call,
    build_tool_result,
    find_folder,
    find_object,
    find_text,
    is_shallow,
    list_objects,
    read_blocks,
    read_count,
    read_time,
    try_read,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.plugin import Part, Role
    from nexus_core.plugin.transcripts import JsonLine, LineAccount, Transcript

NAME = "kimi"
_EVENTS = ("config.", "context.", "llm.", "permission.", "tools.", "turn.", "usage.")
_KNOWN_PREFIXES = (
    *("config.", "llm.", "permission.", "tools.", "turn.", "usage."),  # what is new below `context.` may be a message
    *("cron.", "file_history.", "full_compaction.", "goal.", "micro_compaction.", "plan_mode.", "plugin.", "profile."),
    *("runtime.", "skill.", "subagent.", "swarm.", "task.", "todo.", "token_counting.", "forked", "metadata"),
)
_SILENT_LOG_TYPES = (
    *("ApprovalRequest", "ApprovalRequestResolved", "ApprovalResponse", "CompactionBegin", "CompactionEnd"),
    *("MCPLoadingBegin", "MCPLoadingEnd", "StatusUpdate", "StepBegin", "StepInterrupted", "TurnEnd", "metadata"),
)
_CONTEXT_ROLES = ("_checkpoint", "_system_prompt", "_usage")
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}
_MAIN_AGENT = "main"
_SESSION_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


def score_line(value: dict[str, Any]) -> int:
    """Score a record, or a line of the older formats."""
    kind, role = find_text(value, "type"), find_text(value, "role")
    if kind == "metadata" and "protocol_version" in value:
        return SCORE_OWN
    if kind:
        if "data" in value or "time" not in value:
            return SCORE_NONE
        return (
            SCORE_OWN if kind.startswith(_EVENTS) else SCORE_SHARED if kind.startswith(_KNOWN_PREFIXES) else SCORE_NONE
        )
    if role:
        return SCORE_OWN if role in _CONTEXT_ROLES else SCORE_SHARED
    inner = find_object(value, "message")
    is_logged = "timestamp" in value and "payload" in inner and isinstance(inner.get("type"), str)
    return SCORE_OWN if is_logged else SCORE_NONE


def read_session(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse a file of any of the three formats."""
    if any("role" in record.value and "type" not in record.value for record in records):
        return _read_context(records, account)
    if any("payload" in find_object(record.value, "message") for record in records):
        return _read_log(records, account)
    return _KimiReader(account).read(records)


class _KimiReader:
    """Parses a log of Kimi Code."""

    def __init__(self, account: LineAccount) -> None:
        self._account = account
        self._found = EntryCollector(NAME, account)
        self._system = self._model = self._cwd = ""
        self._tools: tuple[Tool, ...] = ()
        self._names: dict[str, str] = {}  # of tools, by call
        self._step = ""
        self._own_agent = find_folder(account.name, "wire.jsonl") or _MAIN_AGENT

    def read(self, records: Sequence[JsonLine]) -> Transcript:
        readers = {
            "config.update": self._read_config,
            "profile.bind": self._read_config,
            "llm.request": self._read_config,
            "llm.tools_snapshot": self._read_tools,
            "context.append_message": self._read_message,
            "context.append_loop_event": self._read_event,
            "context.apply_compaction": self._read_compaction,
            "context.clear": self._read_clear,
            "context.undo": self._read_undo,
        }
        for record in records:
            kind = find_text(record.value, "type")
            read = readers.get(kind)
            if read is not None:
                read(record)
            elif kind.startswith(_KNOWN_PREFIXES):
                self._found.keep(record)
            else:
                self._found.keep_unknown(record, kind or "untyped")
        session = find_folder(self._account.name, "wire.jsonl", 3)
        is_own_folder = session.startswith("session_")
        agent = find_folder(self._account.name, "wire.jsonl") if is_own_folder else ""
        return self._found.build(
            id=session.removeprefix("session_") if is_own_folder else "",
            agent="" if agent == _MAIN_AGENT else agent,
            cwd=self._cwd,
            asked=self._model,
            system=(Message("system", self._system),) if self._system else (),
            tools=self._tools,
        )

    def _read_config(self, record: JsonLine) -> None:
        value = record.value
        self._system = find_text(value, "systemPrompt") or self._system
        self._model = find_text(value, "model") or find_text(value, "modelAlias") or self._model
        self._cwd = find_text(find_object(value, "environmentDisclosure"), "cwd") or self._cwd
        self._found.keep(record)

    def _read_tools(self, record: JsonLine) -> None:
        self._tools = tuple(
            Tool(
                name=find_text(each, "name"),
                description=find_text(each, "description"),
                parameters=find_object(each, "parameters") if is_shallow(find_object(each, "parameters")) else {},
            )
            for each in list_objects(record.value.get("tools"))
            if find_text(each, "name")
        )
        self._found.keep(record)

    def _read_message(self, record: JsonLine) -> None:
        body = find_object(record.value, "message")
        role = self._found.find_role(record, find_text(body, "role"))
        origin = find_text(find_object(body, "origin"), "kind")
        time = read_time(record.value.get("time"))
        if role == "tool":
            result = build_tool_result(body.get("toolCallId"), body.get("content"), NAME)
            self._found.add("tool", [result], record, agent=self._find_agent(record), time=time)
            return
        parts = read_blocks(body.get("content"), NAME)
        for call in list_objects(body.get("toolCalls")):
            function = find_object(call, "function") or call
            parts.append(
                build_tool_call(call.get("id"), function.get("name"), function.get("arguments") or function.get("args"))
            )
        is_injected = role == "user" and origin not in ("", "user")
        self._found.add(
            role,
            parts,
            record,
            agent=self._find_agent(record),
            kind="injected" if is_injected else "said",
            time=time,
            model=self._model if role == "assistant" else "",
        )

    def _read_event(self, record: JsonLine) -> None:
        event = find_object(record.value, "event")
        kind, agent = find_text(event, "type"), self._find_agent(record)
        time = read_time(record.value.get("time"))
        if kind in ("content.part", "tool.call"):
            parts: list[Part]
            if kind == "tool.call":
                call = build_tool_call(
                    event.get("toolCallId") or event.get("uuid"), event.get("name"), event.get("args")
                )
                self._names[call.id] = call.name
                parts = [call]
            else:
                parts = read_blocks(event.get("part"), NAME)
            step = find_text(event, "stepUuid") or self._step
            is_new, self._step = step != self._step, step
            self._found.add(
                "assistant",
                parts,
                record,
                agent=agent,
                time=time,
                model=self._model,
                stop="tools" if kind == "tool.call" else "",
                merge=not is_new,
            )
        elif kind == "tool.result":
            result = event.get("result")
            output = result.get("output") if isinstance(result, dict) and "output" in result else result
            call_id = find_text(event, "toolCallId")
            failed = isinstance(result, dict) and result.get("isError") is True
            part = build_tool_result(call_id, output, NAME, name=self._names.get(call_id, ""), is_error=failed)
            self._found.add("tool", [part], record, agent=agent, time=time)
        elif kind == "step.begin":
            self._step = ""  # the next part begins a reply, even if steps have no ids
            self._found.keep(record, kind)
        elif kind == "step.end":
            usage = _read_usage(find_object(event, "usage"))
            if usage is not None and not agent and self._found.last_role == "assistant":
                self._found.add("assistant", [], record, usage=usage, merge=True)
            else:  # after the results of tools, or of a subagent
                self._found.keep(record, kind)
        else:
            self._found.keep_unknown(record, f"context.append_loop_event/{kind}")

    def _read_compaction(self, record: JsonLine) -> None:
        value = record.value
        kept = value.get("keptCount")
        before = value.get("tokensBefore")
        self._found.add_compaction(
            record,
            find_text(value, "summary"),
            kept=kept if type(kept) is int and kept > 0 else 0,
            time=read_time(value.get("time")),
            tokens_before=before if type(before) is int else None,
        )

    def _read_clear(self, record: JsonLine) -> None:
        self._found.add_compaction(record, "", time=read_time(record.value.get("time")))

    def _read_undo(self, record: JsonLine) -> None:
        self._found.note(record, "turns were taken back; they are still shown")
        self._found.keep(record)

    def _find_agent(self, record: JsonLine) -> str:
        """Return the agent of a record, "" for the one whose file it is."""
        agent = find_text(record.value, "agentId")
        return "" if agent in ("", self._own_agent) else agent


def _read_usage(given: dict[str, Any]) -> Usage | None:
    if not given:
        return None
    cached, written = read_count(given.get("inputCacheRead")), read_count(given.get("inputCacheCreation"))
    return Usage(
        input_tokens=read_count(given.get("inputOther")) + cached + written,
        output_tokens=read_count(given.get("output")),
        cached_input_tokens=cached,
        cache_write_tokens=written,
    )


def _read_context(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse `context.jsonl` of Kimi CLI."""
    found = EntryCollector(NAME, account)
    system: list[Message] = []
    dialect = get_dialect("openai")
    for record in records:
        value, role = record.value, find_text(record.value, "role")
        if role == "_system_prompt":
            if text := find_text(value, "content"):
                system.append(Message("system", text))
            found.keep(record, role)
        elif role in _CONTEXT_ROLES or role not in _ROLES:
            found.keep(record, role) if role in _CONTEXT_ROLES else found.keep_unknown(record, role or "untyped")
        elif role in ("user", "tool") or isinstance(value.get("content"), list):
            _add_context_message(record, found)
        else:
            read = try_read(dialect.read, value, account, record.number) if is_shallow(value) else None
            message = read or build_opaque_message(_ROLES[role], NAME, value)
            parts = [part for part in message.parts if not isinstance(part, Text) or part.text]
            found.add(message.role, parts, record)
    return found.build(id=_find_session(account.name, "context.jsonl"), system=tuple(system[-1:]))


def _add_context_message(record: JsonLine, found: EntryCollector) -> None:
    value, role = record.value, _ROLES[find_text(record.value, "role")]
    if role == "tool":
        found.add("tool", [build_tool_result(value.get("tool_call_id"), value.get("content"), NAME)], record)
        return
    parts = read_blocks(value.get("content"), NAME)
    for call in list_objects(value.get("tool_calls")):
        function = find_object(call, "function")
        parts.append(build_tool_call(call.get("id"), function.get("name"), function.get("arguments")))
    found.add(role, parts, record, stop="tools" if value.get("tool_calls") else "")


def _read_log(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse `wire.jsonl` of Kimi CLI: what was shown while the agent ran."""
    found = EntryCollector(NAME, account)
    begins = True
    for record in records:
        body = find_object(record.value, "message")
        kind, payload = find_text(body, "type"), find_object(body, "payload")
        time = read_time(record.value.get("timestamp"))
        if kind == "TurnBegin":
            found.add("user", read_blocks(payload.get("user_input"), NAME), record, time=time)
        elif kind in ("ContentPart", "ToolCall"):
            if kind == "ToolCall":
                function = find_object(payload, "function")
                parts: list[Part] = [
                    build_tool_call(payload.get("id"), function.get("name"), function.get("arguments"))
                ]
            else:
                parts = read_blocks(payload, NAME)
            found.add("assistant", parts, record, time=time, merge=not begins)
            begins = False
            continue
        elif kind == "ToolResult":
            value = find_object(payload, "return_value") or find_object(payload, "result")
            output = value.get("output") or value.get("message")
            result = build_tool_result(
                payload.get("tool_call_id"), output, NAME, is_error=value.get("is_error") is True
            )
            found.add("tool", [result], record, time=time)
        elif (kind or find_text(record.value, "type")) in _SILENT_LOG_TYPES:
            found.keep(record, kind or find_text(record.value, "type"))
        else:
            found.keep_unknown(record, kind or find_text(record.value, "type") or "untyped")
        begins = begins or kind in ("TurnBegin", "StepBegin", "ToolResult")
    return found.build(id=_find_session(account.name, "wire.jsonl"))


def _find_session(name: str, file: str) -> str:
    """Return the session of Kimi CLI that a file belongs to, "" if it is not in the session's folder."""
    folder = find_folder(name, file)
    return folder if _SESSION_ID.fullmatch(folder) else ""


FORMAT = TranscriptFormat(NAME, "a session of Kimi", score_line, read_lines=read_session)
