"""Reader for OpenCode: its database, its older tree of files, and what `opencode export` prints.

An export is a document with `info` of the session and `messages`, each with `info` and `parts`. The database
(`opencode.db`) and the tree (`storage/session/<project>/<session>.json`, `storage/message/<session>/*.json`,
`storage/part/<message>/*.json`) are put together as such documents. Name the database, or the file of the session.

A message of the model contains its tool calls together with their results, so it becomes several entries. Not in it:
the system prompt and the tools. Files of a message are included only if their URL contains them. What OpenCode still
has in the database's write-ahead log is not read.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core import Usage
from nexus_core.plugin import File, Image, Reasoning, Text, ToolCall, ToolResult
from nexus_core.plugin.transcripts import (
    SCORE_NONE,
    SCORE_OWN,
    EntryCollector,
    JsonLine,
    TranscriptError,
    TranscriptFormat,
    build_tool_call,
    build_tool_result,
    find_object,
    find_text,
    list_objects,
    read_count,
    read_document_records,
    read_image_url,
    read_time,
)
from nexus_plugins.transcripts._databases import open_database
from nexus_plugins.transcripts._opencode_writer import WRITER
from nexus_plugins.transcripts._pieces import ConversationTree, parse_piece

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nexus_core.plugin import Part
    from nexus_core.plugin.transcripts import LineAccount, LocatedValue, Transcript

NAME = "opencode"
_SILENT_PARTS = ("step-start", "step-finish", "snapshot", "patch", "retry", "compaction", "agent")
_SAFE_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


def score_line(value: dict[str, Any]) -> int:
    """Score an export, or a file of the tree."""
    listed = value.get("messages")
    if isinstance(value.get("info"), dict) and isinstance(listed, list):
        is_export = any(isinstance(each, dict) and {"info", "parts"} <= each.keys() for each in listed)
        return SCORE_OWN if is_export else SCORE_NONE
    return SCORE_OWN if _is_piece(value) else SCORE_NONE


def _is_piece(value: dict[str, Any]) -> bool:
    """True for a session, a message or a part in a file of its own."""
    time = find_object(value, "time")
    is_session = "projectID" in value and "directory" in value and bool(time)
    is_message = "sessionID" in value and ("role" in value or "messageID" in value)
    return is_session or is_message or ("start" in time and {"id", "type"} <= value.keys())


def read_document(text: str, found: Mapping[str, LocatedValue], account: LineAccount) -> Transcript:
    """Parse an export.

    Raises:
        TranscriptError: It is a single file of the tree.
    """
    if "messages" not in found or "info" not in found:
        raise TranscriptError(
            "this is a part of an OpenCode session, without the others",
            code="partial-session",
            path=account.name,
            hint="name the file of the session, storage/session/<project>/<session>.json, where OpenCode keeps it",
            nearest=NAME,
        )
    header, records = read_document_records(text, found, "messages", account)
    info = find_object(header.value, "info")
    collector = EntryCollector(NAME, account)
    collector.keep(header, "header")
    starts: dict[str, int] = {}  # entries before each message
    tail = ""  # the first message that the next compaction keeps
    for record in records:
        name = find_text(find_object(record.value, "info"), "id")
        starts[name] = collector.entry_count
        kept = collector.entry_count - starts[tail] if tail in starts else 0
        _add_message(record, collector, kept)
        tail = _find_tail(record) or tail
    parent, name = find_text(info, "parentID"), find_text(info, "id")
    return collector.build(
        id=parent or name, agent=name if parent else "", cwd=find_text(info, "directory") or _find_cwd(records)
    )


def _find_cwd(records: list[JsonLine]) -> str:
    infos = (find_object(record.value, "info") for record in records)
    return next((found for info in infos if (found := find_text(find_object(info, "path"), "cwd"))), "")


def _find_tail(record: JsonLine) -> str:
    """Return the message that a compaction names as the first one kept, "" for any other message."""
    parts = list_objects(record.value.get("parts"))
    return next((find_text(part, "tail_start_id") for part in parts if part.get("type") == "compaction"), "")


def _add_message(record: JsonLine, found: EntryCollector, kept: int) -> None:
    info, parts = find_object(record.value, "info"), list_objects(record.value.get("parts"))
    role, time = find_text(info, "role"), read_time(find_object(info, "time").get("created"))
    if role == "assistant":
        if info.get("summary") is True:
            summary = "\n".join(find_text(part, "text") for part in parts if part.get("type") == "text")
            found.add_compaction(record, summary, kept=kept, time=time)
        else:
            _add_reply(record, info, parts, found, time)
        return
    typed: list[Part] = []
    added: list[Part] = []
    for part in parts:
        read = _read_part(part, record, found)
        (added if part.get("synthetic") is True else typed).extend(read)
    name = find_text(info, "id")
    if typed or not added:
        found.add("user", typed, record, id=name, time=time)
    if added:
        found.add("user", added, record, id="" if typed else name, kind="injected", time=time)


def _add_reply(
    record: JsonLine, info: dict[str, Any], parts: list[dict[str, Any]], found: EntryCollector, time: str
) -> None:
    """Add a message of the model: entries for its texts and calls, and for the results, in turns."""
    rounds: list[tuple[list[Part], list[ToolResult]]] = [([], [])]
    for part in parts:
        read = _read_part(part, record, found)
        results = [each for each in read if isinstance(each, ToolResult)]
        spoken: list[Part] = [each for each in read if not isinstance(each, ToolResult)]
        is_next = part.get("type") == "step-start" or any(not isinstance(each, ToolCall) for each in spoken)
        if rounds[-1][1] and is_next:
            rounds.append(([], []))
        rounds[-1][0].extend(spoken)
        rounds[-1][1].extend(results)
    model = find_text(info, "modelID") or find_text(find_object(info, "model"), "modelID")
    usage, name = _read_usage(info), find_text(info, "id")
    for index, (spoken, results) in enumerate(rounds):
        is_last = index == len(rounds) - 1
        if spoken or (is_last and index == 0 and not results):
            found.add(
                "assistant",
                spoken,
                record,
                id=name if index == 0 else "",
                time=time,
                model=model,
                stop="tools" if any(isinstance(each, ToolCall) for each in spoken) else "",
                usage=usage if is_last else None,
            )
        if results:
            found.add("tool", results, record, time=time)


def _read_part(part: dict[str, Any], record: JsonLine, found: EntryCollector) -> list[Part]:
    kind = find_text(part, "type")
    if kind in ("text", "subtask"):
        text = find_text(part, "text") or find_text(part, "prompt")
        return [Text(text)] if text else []
    if kind == "reasoning":
        return [Reasoning(text=find_text(part, "text"), api=NAME)]
    if kind == "tool":
        return _read_tool(part)
    if kind == "file":
        return [_read_file(part)]
    if kind not in _SILENT_PARTS:
        found.note(record, f"unknown part {kind!a}: kept, not part of a message")
    return []


def _read_file(part: dict[str, Any]) -> Image | File:
    url, mime = find_text(part, "url"), find_text(part, "mime")
    if mime.startswith("image/") and url:
        return read_image_url(url)
    return File(name=find_text(part, "filename"), mime=mime, url=url)


def _read_tool(part: dict[str, Any]) -> list[Part]:
    state = find_object(part, "state")
    name = find_text(part, "callID") or find_text(part, "id")
    call = build_tool_call(name, part.get("tool"), state.get("input"))
    status = find_text(state, "status")
    if status not in ("completed", "error"):  # it is running, or was when the program ended
        return [call]
    content = state.get("error") if status == "error" else state.get("output")
    result = build_tool_result(name, content, NAME, name=call.name, is_error=status == "error")
    media = [_read_file(each) for each in list_objects(state.get("attachments"))]
    return [call, replace(result, parts=(*result.parts, *media))]


def _read_usage(info: dict[str, Any]) -> Usage | None:
    given = find_object(info, "tokens")
    if not given:
        return None
    cache = find_object(given, "cache")
    cached, written = read_count(cache.get("read")), read_count(cache.get("write"))
    reasoning = read_count(given.get("reasoning"))
    return Usage(
        input_tokens=read_count(given.get("input")) + cached + written,
        output_tokens=read_count(given.get("output")) + reasoning,
        cached_input_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=reasoning,
    )


def gather_files(path: Path) -> str | None:
    """Return the session of a tree as a document, or the sessions of a database as a list of documents."""
    if path.name.startswith("opencode") and path.suffix == ".db":
        return _gather_database(path)
    return _gather_tree(path) if _is_tree(path) else None


def list_conversation_files(path: Path) -> list[Path]:
    """Return the messages and parts of a session in a tree, [] for any other path.

    Raises:
        TranscriptError: There are too many.
    """
    if not _is_tree(path):
        return []
    tree, storage = ConversationTree(path), path.parents[2]
    messages = tree.list_files(_find_folder(tree, path, storage / "message"))
    parts = (tree.list_files(_find_folder(tree, message, storage / "part")) for message in messages)
    return [*messages, *(part for found in parts for part in found)]


def _find_folder(tree: ConversationTree, path: Path, parent: Path) -> Path:
    """Return the folder with the name of the id in a file, which is opened only if its own name is another one."""
    folder = parent / path.stem
    if folder.is_dir():
        return folder
    name = find_text(tree.read(path), "id")
    return parent / name if _SAFE_NAME.fullmatch(name) else folder


def _is_tree(path: Path) -> bool:
    return path.suffix == ".json" and path.parent.parent.name == "session" and not path.is_symlink()


def _gather_database(path: Path) -> str | None:
    with open_database(path, "session", "message", "part") as database:
        if database is None:
            return None
        documents = []
        for session in database.read_unique("session"):
            messages = []
            for row in database.read_unique("message", session_id=session.get("id")):
                info = {**parse_piece(row.get("data")), "id": row.get("id"), "sessionID": session.get("id")}
                parts = [
                    {**parse_piece(part.get("data")), "id": part.get("id"), "messageID": row.get("id")}
                    for part in database.read_rows("part", message_id=row.get("id"))
                ]
                messages.append({"info": info, "parts": parts})
            if messages:
                info = {
                    "id": session.get("id"),
                    "parentID": session.get("parent_id"),
                    "directory": session.get("directory"),
                    "title": session.get("title"),
                    "version": session.get("version"),
                }
                documents.append({"info": info, "messages": messages})
    return json.dumps(documents, ensure_ascii=False)


def _gather_tree(path: Path) -> str | None:
    tree, storage = ConversationTree(path), path.parents[2]
    info = tree.read(path)
    session = find_text(info, "id")
    if not _is_piece(info) or not _SAFE_NAME.fullmatch(session):
        return None
    messages = []
    for file in tree.list_files(storage / "message" / session):
        message = tree.read(file)
        name = find_text(message, "id")
        if find_text(message, "sessionID") == session and _SAFE_NAME.fullmatch(name):
            parts = [tree.read(each) for each in tree.list_files(storage / "part" / name)]
            messages.append({"info": message, "parts": [part for part in parts if part]})
    messages.sort(key=lambda each: _get_created(each["info"]))
    return json.dumps({"info": info, "messages": messages}, ensure_ascii=False)


def _get_created(info: Any) -> float:  # noqa: ANN401 - JSON
    created = find_object(info, "time").get("created")
    # An integer is compared as it is: it may be too large for a float.
    return created if isinstance(created, int | float) else 0


FORMAT = TranscriptFormat(
    NAME,
    "a session of OpenCode",
    score_line,
    read_document=read_document,
    gather_files=gather_files,
    list_conversation_files=list_conversation_files,
    writer=WRITER,
)
