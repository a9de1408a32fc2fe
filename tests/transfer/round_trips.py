"""Comparison of a conversation with what another agent's file has of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from nexus_core.dialects.calls import get_call_arguments
from nexus_core.host.manager import get_installed_host
from nexus_core.transcripts.base import Transcript, TranscriptFormat
from nexus_core.transcripts.read import load_formats, read_transcript
from nexus_core.transcripts.writer import TranscriptWriter
from nexus_core.transfer.agent_export import export_transcript
from nexus_core.types.messages import Message, Text, ToolCall, ToolResult

FORMATS: tuple[TranscriptFormat, ...] = load_formats(get_installed_host())
WRITERS: dict[str, TranscriptWriter] = {form.name: form.writer for form in FORMATS if form.writer is not None}


def write(transcript: Transcript, form: str) -> Transcript:
    """The conversation as it is read back from the file of another agent."""
    written = export_transcript(transcript, WRITERS[form], name="s", cwd="/srv/bakery").text
    return read_transcript(written, form, formats=FORMATS)


def find_lost_on_the_way(transcript: Transcript) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Write each path through every pair of formats: its own, or each one that has no loss yet, and back.

    Yields the formats of a way, and what it has lost.
    """
    for path in split_paths(transcript):
        expected = replace(path, system=())  # the other agent has its own
        for first in WRITERS:
            there = write(path, first)
            assert there.format == first
            skipped = [f"skipped {number}" for number in there.report.outcomes.get("skipped", ())]
            yield (transcript.format, first), skipped + find_lost(expected, there)
            for second in WRITERS:
                yield (first, second), find_lost(expected, write(write(there, second), first))


def split_paths(transcript: Transcript) -> list[Transcript]:
    """The main path and each branch, as conversations of their own."""
    branches = [
        replace(transcript, entries=branch.entries, compactions=(), branches=()) for branch in transcript.branches
    ]
    return [replace(transcript, branches=()), *branches]


def find_lost(before: Transcript, after: Transcript) -> list[str]:
    """The texts, calls and results of a conversation that another lacks."""
    have = _list_content(_list_messages(after))
    said = "\n".join(text for kind, text in have if kind != "call")
    lost = []
    for (kind, text), number in _list_content(_list_messages(before)).items():
        is_there = have[kind, text] >= number or (kind != "call" and text in said)
        lost += [] if is_there else [f"{kind}: {text}"]
    for kind in ("call", "result"):
        if _count_kind(before, kind) > _count_kind(after, kind):
            lost.append(f"fewer of kind {kind}")
    return lost


def _list_messages(transcript: Transcript) -> list[Message]:
    summaries = [Message("user", each.summary) for each in transcript.compactions]
    # A leading instruction may be a field of a format, and a message of another.
    return [*transcript.system, *(entry.message for entry in transcript.entries), *summaries]


def _count_kind(transcript: Transcript, kind: str) -> int:
    """The calls of a conversation, or its results that have a call."""
    messages = [entry.message for entry in transcript.entries]
    calls = {call.id for message in messages for call in message.tool_calls}
    if kind == "call":
        return sum(len(message.tool_calls) for message in messages)
    return len({result.call_id for message in messages for result in message.tool_results} & calls)


def _list_content(messages: Iterable[Message]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for message in messages:
        for part in message.parts:
            if isinstance(part, Text) and part.text.strip():
                found["text", part.text] += 1
            elif isinstance(part, ToolCall):
                name = re.sub(r"[^A-Za-z0-9_-]", "_", part.name) or "unknown"
                found["call", f"{name} {json.dumps(get_call_arguments(part), sort_keys=True)}"] += 1
            elif isinstance(part, ToolResult):
                found.update(
                    ("result", each.text) for each in part.parts if isinstance(each, Text) and each.text.strip()
                )
    return found
