"""Transcripts of Claude Code, line by line, and the sessions they become."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nexus_core.dialects.rules import RULES_BY_API
from nexus_core.history.repair.rules import apply_repair_rules
from nexus_core.ledger.ledger import StoreLedger, skip_reverted
from nexus_core.thread.cache import NullSizer, ThreadCache
from nexus_core.thread.projection import DEFAULT_MARKER as SUMMARY
from nexus_core.thread.projection import find_kept_steps, project_steps, project_summary
from nexus_core.transcripts.base import Transcript
from nexus_core.transcripts.read import read_transcript
from nexus_core.transfer.importer import ImportReport, TranscriptImporter
from nexus_core.types.ledger import Step
from nexus_core.types.messages import Message
from tests.transcripts.support import SAMPLES

Line = dict[str, Any]


def import_lines(
    ledger: StoreLedger, source: str | bytes | Sequence[Line | str], name: str = "file.jsonl", **given: Any
) -> ImportReport:
    """Import a text, or lines."""
    text = source if isinstance(source, str | bytes) else format_lines(*source)
    data = text.encode() if isinstance(text, str) else text
    transcript = read_transcript(data.decode(), name)
    return TranscriptImporter(ledger).import_transcript(transcript, data, file_name=name, **given)


def import_sample(ledger: StoreLedger, name: str, **given: Any) -> ImportReport:
    """Import one of the samples."""
    return import_lines(ledger, (SAMPLES / name).read_bytes(), name, **given)


def format_lines(*lines: Line | str) -> str:
    return "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)


def user(name: str, parent: str | None, text: str = "", **more: Any) -> Line:
    """A user message of Claude Code."""
    message = {"role": "user", "content": text or name}
    return {"type": "user", "uuid": name, "parentUuid": parent, "sessionId": "s-1", "message": message, **more}


def assistant(name: str, parent: str, *blocks: Line | str, **more: Any) -> Line:
    """A reply: texts and blocks."""
    content = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks or (name,)]
    body = {"id": f"msg-{name}", "role": "assistant", "model": "claude-opus-4-5", "content": content, **more}
    return {"type": "assistant", "uuid": name, "parentUuid": parent, "sessionId": "s-1", "message": body}


def calls(name: str, parent: str, *ids: str) -> Line:
    """A reply with one tool call for each id."""
    return assistant(name, parent, *({"type": "tool_use", "id": each, "name": "look", "input": {}} for each in ids))


def result(name: str, parent: str, *ids: str, text: str = "found") -> Line:
    """A message with one tool result for each id."""
    content = [{"type": "tool_result", "tool_use_id": each, "content": text} for each in ids]
    message = {"role": "user", "content": content}
    return {"type": "user", "uuid": name, "parentUuid": parent, "sessionId": "s-1", "message": message}


def compacted(name: str, parent: str, *kept: str) -> Line:
    """A compaction, with the entries that it keeps."""
    metadata: Line = {"trigger": "auto", "preTokens": 1000}
    if kept:
        metadata["preservedMessages"] = {"uuids": [*kept]}
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": name,
        "parentUuid": None,
        "logicalParentUuid": parent,
        "sessionId": "s-1",
        "compactMetadata": metadata,
    }


def summary(name: str, parent: str, text: str) -> Line:
    return user(name, parent, text, isCompactSummary=True)


def usage(cost: int) -> Line:
    return {"usage": {"input_tokens": cost, "output_tokens": 1}}


def steps_of(ledger: StoreLedger, label: str) -> list[Step]:
    record = ledger.session(label)
    assert record is not None
    assert record.tip is not None
    return ledger.thread(record.tip)


def live_steps_of(ledger: StoreLedger, label: str) -> list[Step]:
    """The steps of a session without reverted ones."""
    return [*skip_reverted(reversed(steps_of(ledger, label)))][::-1]


def describe_steps(ledger: StoreLedger, label: str) -> list[str]:
    """The steps of a session in short: `input: Why?`. A period ends a turn."""
    return [
        f"{step.kind}: {' + '.join(map(_said, step.messages))}".rstrip(": ") + "." * step.closes
        for step in steps_of(ledger, label)
    ]


def read_next(ledger: StoreLedger, label: str) -> list[Message]:
    """The messages that a session sends next: the latest summary and kept messages, or all."""
    tail, tip = ThreadCache(ledger), steps_of(ledger, label)[-1]
    if tip.compaction is None:
        return [sent.message for sent in project_steps(steps_of(ledger, label), NullSizer())]
    compaction = tail.get_step(tip.compaction)
    sent = [
        *project_summary(compaction, NullSizer()),
        *project_steps(find_kept_steps(tail, compaction, tip.id), NullSizer()),
    ]
    return [each.message for each in sent]


def context_of(transcript: Transcript) -> list[Message]:
    """The messages that the program would send next, a lone summary under Nexus's own heading."""
    last = transcript.compactions[-1] if transcript.compactions else None
    if last and last.at == len(transcript.entries) and not last.context:  # it is still being written
        return context_of(replace(transcript, compactions=transcript.compactions[:-1]))
    messages = [entry.message for entry in transcript.context]
    if transcript.compactions:
        (*others,) = transcript.compactions[-1].context
        if len(others) == 1 and others[0].kind == "summary":
            said = others[0].message.content
            messages[:1] = [Message("user", f"{SUMMARY}\n{said}")] if said else []  # without words, it is no summary
    return messages


def repair_for_api(messages: Sequence[Message], api: str) -> list[Message]:
    """Messages as an API gets them, without the mark of a summary."""
    plain = [replace(each, extra={}) if "_summary" in each.extra else each for each in messages]
    return [message for _, message in apply_repair_rules(plain, RULES_BY_API[api]).messages]


def sample_names() -> list[str]:
    return sorted(path.name for path in Path(SAMPLES).iterdir())


def _said(message: Message) -> str:
    asked = "".join(f"{call.name}({call.id})" for call in message.tool_calls)
    brought = "".join(f"={each.text}" for each in message.tool_results)
    return f"{message.content}{asked}{brought}"
