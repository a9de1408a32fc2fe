"""Reader for ShareGPT: `{"conversations": [{"from": "human", "value": "…"}]}`, as data sets for training have it.

Calls are `function_call` with JSON text, results are `observation` or `tool`; a result answers the call before it.

Not in the format: ids of calls, times, models, tokens, directories. Data sets that write calls into the text of `gpt`,
in tags of their own, keep them there. The tools are text, and not read as tools.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nexus_core import Message
from nexus_core.plugin.transcripts import (
    SCORE_NONE,
    SCORE_OWN,
    EntryCollector,
    JsonLine,
    TranscriptError,
    TranscriptFormat,
    build_tool_call,
    build_tool_result,
    find_text,
    list_objects,
    locate_elements,
    split_records,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.plugin import Role, ToolCall
    from nexus_core.plugin.transcripts import LineAccount, LocatedValue, Transcript

NAME = "sharegpt"
_SPEAKERS: dict[str, Role] = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "system": "system",
}
_RESULTS = ("observation", "tool", "function_response", "tool_response")
_CALLS = ("function_call", "tool_call")


def score_line(value: dict[str, Any]) -> int:
    """Score a conversation."""
    listed = value.get("conversations")
    has_turns = isinstance(listed, list) and any(
        isinstance(each, dict) and {"from", "value"} <= each.keys() for each in listed
    )
    return SCORE_OWN if has_turns else SCORE_NONE


def read_document(text: str, found: Mapping[str, LocatedValue], account: LineAccount) -> Transcript:
    """Parse a conversation."""
    values = [piece.value for piece in locate_elements(text, found["conversations"])]
    header = {name: piece.value for name, piece in found.items() if name != "conversations"}
    return _read_turns(header, values, account)


def read_lines(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse a file of JSON Lines with one conversation.

    Raises:
        TranscriptError: It has several.
    """
    if len(records) > 1:
        raise TranscriptError(
            f"there are {len(records):,} conversations in it",
            code="several-conversations",
            path=account.name,
            hint="`nexus session import FILE` imports each as a session; for one: head -n 1 FILE | nexus context -",
            nearest=NAME,
        )
    header = {name: value for name, value in records[0].value.items() if name != "conversations"}
    return _read_turns(header, records[0].value["conversations"], account)


def _read_turns(header: dict[str, Any], values: list[Any], account: LineAccount) -> Transcript:
    account.lines = max(account.lines, len(values) + 1)
    collector = EntryCollector(NAME, account)
    collector.keep(JsonLine(1, header), "header")
    system = [Message("system", find_text(header, "system"))] if find_text(header, "system") else []
    pending: list[ToolCall] = []
    for record in split_records(values, account, start=2):
        speaker, text = find_text(record.value, "from"), find_text(record.value, "value")
        if speaker in _CALLS:
            pending = _read_calls(record, text)
            collector.add("assistant", pending, record, stop="tools")
        elif speaker in _RESULTS:
            call = pending.pop(0) if pending else None
            if call is None:
                collector.add("user", text, record, kind="injected")
                collector.note(record, "a result without a call, shown as a message")
            else:
                collector.add("tool", [build_tool_result(call.id, text, NAME, name=call.name)], record)
        elif speaker in _SPEAKERS:
            role = _SPEAKERS[speaker]
            if role == "system" and not collector.last_role:
                system += [Message("system", text)] if text else []
                collector.keep(record, "system")
            else:
                collector.add(role, text, record)
        else:
            collector.keep_unknown(record, speaker or "untyped")
    return collector.build(id=find_text(header, "id"), system=tuple(system))


def _read_calls(record: JsonLine, text: str) -> list[ToolCall]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    listed = list_objects(value if isinstance(value, list) else [value])
    if not listed:
        return [build_tool_call(f"turn-{record.number}", "function", text)]
    return [
        build_tool_call(f"turn-{record.number}-{index}", each.get("name"), each.get("arguments"))
        for index, each in enumerate(listed, 1)
    ]


FORMAT = TranscriptFormat(
    NAME, "a conversation of ShareGPT", score_line, read_lines=read_lines, read_document=read_document
)
