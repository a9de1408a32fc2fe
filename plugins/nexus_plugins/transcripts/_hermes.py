"""Reader for Hermes: `~/.hermes/sessions/session_<id>.json`, and the database `~/.hermes/state.db`.

A session is a document with messages in the format of OpenAI. The database has the same messages in a table; of its
rows those are read that Hermes sends or shows (`active` or `compacted`), and each session becomes a document.

Times are in the database only. Neither has the tokens of a single call. What Hermes still has in the database's
write-ahead log is not read.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nexus_core import Message, get_dialect
from nexus_core.plugin import Reasoning, Text
from nexus_core.plugin.transcripts import (
    SCORE_NONE,
    SCORE_OWN,
    EntryCollector,
    JsonLine,
    TranscriptFormat,
    build_opaque_message,
    find_text,
    is_shallow,
    read_document_records,
    read_time,
    try_read,
)
from nexus_plugins.transcripts._databases import open_database

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nexus_core.plugin import Part
    from nexus_core.plugin.transcripts import LineAccount, LocatedValue, Transcript

NAME = "hermes"
_REASONING_KEYS = ("reasoning", "reasoning_content")
_SENTINEL = "\x00json:"
"""Beginning of a content in the database that is JSON."""


def score_line(value: dict[str, Any]) -> int:
    """Score a document."""
    is_session = {"session_id", "session_start", "messages"} <= value.keys() and isinstance(value["messages"], list)
    return SCORE_OWN if is_session else SCORE_NONE


def read_document(text: str, found: Mapping[str, LocatedValue], account: LineAccount) -> Transcript:
    """Parse a session."""
    header, records = read_document_records(text, found, "messages", account)
    collector = EntryCollector(NAME, account)
    collector.keep(header, "header")
    model, system = find_text(header.value, "model"), find_text(header.value, "system_prompt")
    for record in records:
        _add_message(record, collector, model, account)
    return collector.build(
        api="openai",
        id=find_text(header.value, "session_id"),
        cwd=find_text(header.value, "cwd"),
        asked=model,
        system=(Message("system", system),) if system else (),
    )


def _add_message(record: JsonLine, found: EntryCollector, model: str, account: LineAccount) -> None:
    value = record.value
    # The dialect keeps fields that it does not know; these are shown as parts.
    body = {key: each for key, each in value.items() if key not in (*_REASONING_KEYS, "timestamp", "finish_reason")}
    read = get_dialect("openai").read
    message = (try_read(read, body, account, record.number) if is_shallow(body) else None) or build_opaque_message(
        "assistant" if value.get("role") == "assistant" else "user", NAME, body
    )
    parts: list[Part] = [part for part in message.parts if not isinstance(part, Text) or part.text]
    thoughts = dict.fromkeys(find_text(value, key) for key in _REASONING_KEYS)
    parts = [*(Reasoning(text=each, api=NAME) for each in thoughts if each), *parts]
    is_reply = message.role == "assistant"
    found.add(
        message.role,
        parts,
        record,
        time=read_time(value.get("timestamp")),
        model=model if is_reply else "",
        stop="tools" if message.tool_calls else "end" if value.get("finish_reason") == "stop" else "",
    )


def gather_files(path: Path) -> str | None:
    """Return the sessions of a database as a list of documents."""
    if path.name != "state.db":
        return None
    with open_database(path, "sessions", "messages") as database:
        if database is None:
            return None
        documents = []
        for session in database.read_unique("sessions"):
            shown = [
                row
                for row in database.read_rows("messages", session_id=session.get("id"))
                if row.get("active", 1) or row.get("compacted")
            ]
            if shown:
                documents.append(_build_document(session, shown))
    return json.dumps(documents, ensure_ascii=False)


def _build_document(session: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    keys = ("model", "cwd", "system_prompt", "title", "source")
    return {
        "session_id": session.get("id"),
        "session_start": session.get("started_at"),
        **{key: session[key] for key in keys if session.get(key)},
        "messages": [_build_message(row) for row in rows],
    }


def _build_message(row: dict[str, Any]) -> dict[str, Any]:
    content = row.get("content")
    if isinstance(content, str) and content.startswith(_SENTINEL):
        content = _parse(content.removeprefix(_SENTINEL))
    found = {"role": row.get("role"), "content": content}
    calls = row.get("tool_calls")
    if calls:
        found["tool_calls"] = _parse(calls) if isinstance(calls, str) else calls
    keys = ("tool_call_id", "tool_name", "timestamp", "finish_reason", *_REASONING_KEYS)
    found |= {key: row[key] for key in keys if row.get(key)}
    if "tool_name" in found:
        found["name"] = found.pop("tool_name")
    return found


def _parse(text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    # One value that is nested too deeply would refuse the whole database.
    return text if isinstance(value, dict | list) and not is_shallow(value) else value


FORMAT = TranscriptFormat(
    NAME, "a session of Hermes", score_line, read_document=read_document, gather_files=gather_files
)
