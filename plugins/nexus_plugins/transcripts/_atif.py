"""Reader for the Agent Trajectory Interchange Format, ATIF 1.0 to 1.7, as Harbor writes it.

A trajectory is a document with `steps`. A step of the agent has its reasoning, its calls and, in `observation`, their
results, so it becomes two entries. Trajectories of subagents inside (`subagent_trajectories`) become branches.

Not in the format: the directory, ids of replies, stop reasons. Images are named by a path and not included; the
trajectories of subagents and continuations in other files (`trajectory_path`, `continued_trajectory_ref`) are not read.
Steps that repeat the context of an earlier trajectory (`is_copied_context`) are kept as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core import Message, Tool, Usage
from nexus_core.plugin import File, Image, Opaque, Reasoning, Text, ToolResult
from nexus_core.plugin.transcripts import (
    SCORE_NONE,
    SCORE_OWN,
    EntryCollector,
    JsonLine,
    TranscriptFormat,
    build_tool_call,
    find_object,
    find_text,
    is_shallow,
    list_objects,
    locate_elements,
    read_blocks,
    read_count,
    split_records,
)
from nexus_plugins.transcripts._atif_writer import EXTRA_COUNTS, MESSAGE_KIND, WRITER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.plugin import Part
    from nexus_core.plugin.transcripts import LineAccount, LocatedValue, Transcript

NAME = "atif"


def score_line(value: dict[str, Any]) -> int:
    """Score a trajectory."""
    is_versioned = find_text(value, "schema_version").startswith("ATIF-v")
    return SCORE_OWN if is_versioned and isinstance(value.get("steps"), list) else SCORE_NONE


def read_document(text: str, found: Mapping[str, LocatedValue], account: LineAccount) -> Transcript:
    """Parse a trajectory."""
    steps = [piece.value for piece in locate_elements(text, found["steps"])]
    header = {name: piece.value for name, piece in found.items() if name not in ("steps", "subagent_trajectories")}
    subagents = list_objects(found["subagent_trajectories"].value) if "subagent_trajectories" in found else []
    account.lines = len(steps) + 1 + sum(len(list_objects(each.get("steps"))) for each in subagents)
    collector = EntryCollector(NAME, account)
    collector.keep(JsonLine(1, header), "header")
    version = find_text(header, "schema_version")
    if version.removeprefix("ATIF-v1.") not in "01234567":
        collector.note(JsonLine(1, header), f"{version} is newer than 1.7, which this reader knows")
    agent = find_object(header, "agent")
    system = _add_steps(split_records(steps, account, start=2), collector, find_text(agent, "model_name"), "")
    number = len(steps) + 2
    for each in subagents:
        inner = list_objects(each.get("steps"))
        inner_agent = find_object(each, "agent")
        name = find_text(each, "trajectory_id") or find_text(inner_agent, "name") or f"subagent-{number}"
        _add_steps(
            [JsonLine(number + index, step) for index, step in enumerate(inner)],
            collector,
            find_text(inner_agent, "model_name"),
            name,
        )
        number += len(inner)
    return collector.build(
        id=find_text(header, "session_id") or find_text(header, "trajectory_id"),
        asked=find_text(agent, "model_name"),
        system=tuple(system),
        tools=_read_tools(agent),
    )


def _add_steps(records: list[JsonLine], found: EntryCollector, model: str, agent: str) -> list[Message]:
    """Add the steps of a trajectory. Returns the system messages at its beginning."""
    system: list[Message] = []
    for record in records:
        value = record.value
        source, time = find_text(value, "source"), find_text(value, "timestamp")
        parts = _read_message(value.get("message"))
        is_message = find_text(find_object(value, "extra"), "kind") == MESSAGE_KIND
        if source == "system" and not found.last_role and not agent and not is_message:
            system += [Message("system", parts)] if parts else []
            found.keep(record, source)
        elif source in ("system", "user"):
            found.add("user" if source == "user" else "system", parts, record, agent=agent, time=time)
            _add_results(record, found, agent, time)
        elif source == "agent":
            _add_reply(record, found, parts, model, agent)
        else:
            found.keep_unknown(record, source or "untyped")
    return system


def _add_reply(record: JsonLine, found: EntryCollector, spoken: list[Part], model: str, agent: str) -> None:
    value, time = record.value, find_text(record.value, "timestamp")
    parts: list[Part] = []
    if thought := find_text(value, "reasoning_content"):
        parts.append(Reasoning(text=thought, api=NAME))
    parts += spoken
    calls = list_objects(value.get("tool_calls"))
    parts += [
        build_tool_call(call.get("tool_call_id"), call.get("function_name"), call.get("arguments")) for call in calls
    ]
    found.add(
        "assistant",
        parts,
        record,
        agent=agent,
        time=time,
        model=find_text(value, "model_name") or model,
        stop="tools" if calls else "",
        usage=_read_usage(value),
    )
    _add_results(record, found, agent, time)


def _add_results(record: JsonLine, found: EntryCollector, agent: str, time: str) -> None:
    """Add the results of a step. A result that names no call is what the agent saw of its environment."""
    names = {
        find_text(call, "tool_call_id"): find_text(call, "function_name")
        for call in list_objects(record.value.get("tool_calls"))
    }
    results: list[Part] = []
    seen: list[Part] = []
    for each in list_objects(find_object(record.value, "observation").get("results")):
        call = find_text(each, "source_call_id")
        content = _read_message(each.get("content"))
        if call:
            shown = tuple(part for part in content if isinstance(part, Text | Image | File | Opaque))
            results.append(ToolResult(call, shown, names.get(call, "")))
        else:
            seen += content
    if results:
        found.add("tool", results, record, agent=agent, time=time)
    if seen:
        found.add("user", seen, record, agent=agent, kind="injected", time=time)


def _read_message(content: object) -> list[Part]:
    """Return the parts of a message: a text, or blocks with texts and images."""
    parts: list[Part] = []
    for block in content if isinstance(content, list) else [content]:
        source = find_object(block, "source") if isinstance(block, dict) and block.get("type") == "image" else {}
        if find_text(source, "path"):
            parts.append(File(name=find_text(source, "path"), mime=find_text(source, "media_type")))
        else:
            parts += read_blocks(block, NAME)
    return parts


def _read_usage(value: dict[str, Any]) -> Usage | None:
    given = find_object(value, "metrics")
    if not given:
        return None
    return Usage(
        input_tokens=read_count(given.get("prompt_tokens")),
        output_tokens=read_count(given.get("completion_tokens")),
        cached_input_tokens=read_count(given.get("cached_tokens")),
        **{name: read_count(find_object(given, "extra").get(name)) for name in EXTRA_COUNTS},
    )


def _read_tools(agent: dict[str, Any]) -> tuple[Tool, ...]:
    found = []
    for each in list_objects(agent.get("tool_definitions")):
        function = find_object(each, "function") or each
        parameters = find_object(function, "parameters")
        if find_text(function, "name") and is_shallow(parameters):
            found.append(
                Tool(
                    name=find_text(function, "name"),
                    description=find_text(function, "description"),
                    parameters=parameters,
                )
            )
    return tuple(found)


FORMAT = TranscriptFormat(NAME, "an ATIF trajectory", score_line, read_document=read_document, writer=WRITER)
