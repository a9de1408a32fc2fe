"""Reader for Gemini CLI: `~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl`, formerly `.json`.

A line is the header, a message, a change of the header (`$set`), or a rewind (`$rewindTo`). A message is written again,
with the same id, when its tool calls or token counts become known; the last version counts. `$set.messages` replaces
everything that the model reads, after a compression of the chat. The older format is one document with all messages.

A message of the model has its tool calls together with their results, so it becomes two entries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.gemini import read_content
from nexus_core.errors import MessageError
from nexus_core.transcripts.base import (
    SCORE_NONE,
    SCORE_OWN,
    SCORE_SHARED,
    JsonLine,
    Transcript,
    TranscriptCompaction,
    TranscriptEntry,
    TranscriptFormat,
    build_opaque_message,
    find_object,
    find_text,
    list_objects,
    locate_elements,
    read_branches,
    require_shallow,
    trace_path,
    try_read,
)
from nexus_core.transcripts.gemini_cli_writer import WRITER
from nexus_core.types.messages import Message, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.transcripts.base import EntryKind, LineAccount, LineOutcome, LocatedValue, PathPosition
    from nexus_core.types.messages import Role

FORMAT_NAME = "gemini-cli"
_API = "gemini"
_NOTICE_TYPES = ("error", "info", "warning")
_INJECTED_TAGS = ("<session_context>", "<hook_context>")
"""Beginnings of the messages that the program sends in the user's name."""


def score_line(value: dict[str, Any]) -> int:
    """Score a header, a message, a change of the header, a rewind, or the document of the older format."""
    kind = value.get("type")
    if "projectHash" in value and "sessionId" in value:
        return SCORE_OWN
    if kind == "gemini":
        return SCORE_OWN if "content" in value or "toolCalls" in value else SCORE_NONE
    if "$set" in value or "$rewindTo" in value:
        return SCORE_SHARED
    is_message = kind in ("user", *_NOTICE_TYPES) and "message" not in value and "uuid" not in value
    return SCORE_SHARED if is_message and {"id", "timestamp", "content"} <= value.keys() else SCORE_NONE


def read_session(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse a session of JSON Lines."""
    return _SessionReader(records, account).read()


def read_document(text: str, found: Mapping[str, LocatedValue], account: LineAccount) -> Transcript:
    """Parse a session of the older format: its fields are the header, and `messages` has the messages."""
    listed = found.get("messages")
    pieces = list(locate_elements(text, listed)) if listed and isinstance(listed.value, list) else []
    header = {name: piece.value for name, piece in found.items() if not pieces or name != "messages"}
    first = min((piece.line for piece in found.values()), default=1)
    records = [JsonLine(first, header)]
    for piece in pieces:
        if isinstance(piece.value, dict):
            records.append(JsonLine(piece.line, piece.value))
        else:
            account.keep(piece.line, "broken", piece.value, "skipped")
            account.note(piece.line, "expected a message")
    account.lines = len(pieces) + 1
    return _SessionReader(records, account).read()


class _Node:
    """A message or a compression of the chat, in a tree: a rewind begins a branch.

    Attributes:
        records: The versions of a message, oldest first; the line of a compression.
        replacement: The messages that the model reads from a compression on, by id; None for a message.
    """

    def __init__(self, record: JsonLine, replacement: dict[str, list[JsonLine]] | None = None) -> None:
        self.records = [record]
        self.replacement = replacement


class _SessionReader:
    def __init__(self, records: Sequence[JsonLine], account: LineAccount) -> None:
        self._account = account
        self._header: dict[str, Any] = {}
        self._nodes: dict[str, _Node] = {}
        self._parents: dict[str, str] = {}
        self._path: dict[str, str] = {}  # key of each node on the current path, by the id of its message
        self._tip = ""
        self._answered: set[str] = set()  # calls whose results are messages of their own
        for record in records:
            self._add(record)

    def read(self) -> Transcript:
        main = trace_path(self._tip, self._parents)
        entries, compactions, positions = self._read_main_path(main)
        branches = read_branches(
            list(self._nodes)[::-1], self._parents, positions, lambda path: self._read_branch(path, "branch")
        )
        session, agent = find_text(self._header, "sessionId"), find_text(self._header, "kind")
        return Transcript(
            format=FORMAT_NAME,
            api=_API,
            entries=tuple(entries),
            report=self._account.report(),
            id=session,
            agent=session if agent == "subagent" else "",
            branches=tuple(replace(branch, kind="rolled-back") for branch in branches),
            compactions=tuple(compactions),
            metadata=self._account.metadata,
        )

    # ---- the tree of messages -------------------------------------------------------------------------------------

    def _add(self, record: JsonLine) -> None:
        value = record.value
        if isinstance(value.get("$rewindTo"), str):
            self._rewind(record, value["$rewindTo"])
        elif isinstance(value.get("type"), str):
            self._add_message(record)
        elif isinstance(value.get("$set"), dict):
            self._update_header(record, value["$set"])
        else:
            self._account.keep(record.number, "header" if "sessionId" in value else "untyped", value)
            self._header |= value

    def _add_message(self, record: JsonLine) -> None:
        name = find_text(record.value, "id")
        self._answered.update(_find_result_ids(record.value))
        if name and name in self._path:  # a later version
            self._nodes[self._path[name]].records.append(record)
            for key in self._path.values():
                replaced = self._nodes[key].replacement
                if replaced is not None and name in replaced:
                    replaced[name].append(record)
            return
        self._append(name, _Node(record), record.number)

    def _append(self, name: str, node: _Node, line: int) -> None:
        key = name if name and name not in self._nodes else f"{name}#{line}"
        self._nodes[key] = node
        self._parents[key] = self._tip
        self._path[name or key] = key
        self._tip = key

    def _rewind(self, record: JsonLine, name: str) -> None:
        """Take back a message and all later ones. A message that is not there takes back everything."""
        self._account.keep(record.number, "$rewindTo", record.value)
        names = list(self._path)
        if name not in self._path:
            self._account.note(record.number, "rewinds to a message that is not in the file, so everything is undone")
        index = names.index(name) if name in self._path else 0
        self._path = {each: self._path[each] for each in names[:index]}
        self._tip = next(reversed(self._path.values()), "")

    def _update_header(self, record: JsonLine, changes: dict[str, Any]) -> None:
        listed = list_objects(changes.get("messages"))
        self._header |= {name: value for name, value in changes.items() if name != "messages"}
        if not listed:
            self._account.keep(record.number, "$set", record.value)
            return
        replacement: dict[str, list[JsonLine]] = {}
        for index, each in enumerate(listed):
            self._answered.update(_find_result_ids(each))
            replacement[find_text(each, "id") or f"#{index}"] = [JsonLine(record.number, each)]
        self._append("", _Node(record, replacement), record.number)

    # ---- entries --------------------------------------------------------------------------------------------------

    def _read_main_path(
        self, path: Sequence[str]
    ) -> tuple[list[TranscriptEntry], list[TranscriptCompaction], dict[str, PathPosition]]:
        entries: list[TranscriptEntry] = []
        compactions: list[TranscriptCompaction] = []
        positions: dict[str, PathPosition] = {}
        for key in path:
            node = self._nodes[key]
            if node.replacement is None:
                entries += self._read_message(key, node.records, "message")
            else:
                compactions.append(self._read_compaction(node, len(entries)))
            positions[key] = None, len(entries)
        return entries, compactions, positions

    def _read_branch(self, path: Sequence[str], outcome: LineOutcome) -> tuple[list[TranscriptEntry], list[int]]:
        """Return the entries of a path, and for each node the number of entries up to it."""
        entries: list[TranscriptEntry] = []
        counts = []
        for key in path:
            node = self._nodes[key]
            if node.replacement is None:
                entries += self._read_message(key, node.records, outcome)
            else:
                self._account.keep(node.records[0].number, "$set", node.records[0].value)
            counts.append(len(entries))
        return entries, counts

    def _read_compaction(self, node: _Node, at: int) -> TranscriptCompaction:
        record, replaced = node.records[0], node.replacement or {}
        self._account.use("compaction", record.number)
        context: list[TranscriptEntry] = []
        for name, versions in replaced.items():
            kind: EntryKind = "said" if name in self._nodes or context else "summary"
            entries = self._build_entries(name, versions, kind)
            # The first version is a part of this line, which the compaction has as a whole.
            context += [entry._replace(raw=entry.raw[1:]) for entry in entries]
        first = context[0] if context and context[0].kind == "summary" else None
        return TranscriptCompaction(
            line=record.number,
            at=at,
            kept_from=at,
            summary=first.message.content if first else "",
            context=tuple(context),
            time=find_text(find_object(record.value, "$set"), "lastUpdated"),
            raw=record.value,
        )

    def _read_message(self, key: str, records: Sequence[JsonLine], outcome: LineOutcome) -> list[TranscriptEntry]:
        """Return the entries of a message, none if the model does not read it."""
        last = records[-1].value
        kind = find_text(last, "type")
        if kind not in ("user", "gemini") or (kind == "user" and _is_command(last)):
            keep = self._account.keep if kind in ("user", *_NOTICE_TYPES) else self._account.keep_unknown
            for record in records:
                keep(record.number, f"{kind}/command" if kind == "user" else kind, record.value)
            return []
        self._account.use("merged", *(record.number for record in records[:-1]))
        self._account.use(outcome, records[-1].number)
        return self._build_entries(key, records, "said")

    def _build_entries(self, key: str, records: Sequence[JsonLine], kind: EntryKind) -> list[TranscriptEntry]:
        record = records[-1]
        body = record.value
        is_reply = body.get("type") == "gemini"
        read = _read_reply if is_reply else _read_user_message
        role: Role = "assistant" if is_reply else "user"
        message = try_read(read, body, self._account, record.number) or build_opaque_message(role, FORMAT_NAME, body)
        if not is_reply and message.content.lstrip().startswith(_INJECTED_TAGS):
            kind = "injected"
        name = find_text(body, "id")
        entry = TranscriptEntry(
            message=message,
            lines=tuple(each.number for each in records),
            ids=(name,) if name else (),
            parent=self._parents.get(key, ""),
            kind=kind,
            time=find_text(body, "timestamp"),
            model=find_text(body, "model") if is_reply else "",
            stop="tools" if message.tool_calls else "",
            usage=_read_usage(body) if is_reply else None,
            raw=tuple(each.value for each in records),
        )
        results = try_read(self._read_results, body, self._account, record.number) if is_reply else None
        if results is None:
            return [entry]
        return [entry, TranscriptEntry(message=results, lines=(record.number,), parent=name, time=entry.time)]

    def _read_results(self, body: dict[str, Any]) -> Message | None:
        """Return the results of a message's tool calls, except those that another message has."""
        calls = list_objects(body.get("toolCalls"))
        parts: list[dict[str, Any]] = []
        for call in calls:
            if find_text(call, "id") not in self._answered:
                parts += _list_result_parts(call)
        if not parts:
            return None
        return _read_parts("user", parts)


def _is_command(body: dict[str, Any]) -> bool:
    """True if the program answered itself, or there is nothing to send."""
    content = body.get("content")
    if not content:
        return True
    listed = content if isinstance(content, list) else [content]
    texts = [
        each if isinstance(each, str) else find_text(each, "text") for each in listed if isinstance(each, str | dict)
    ]
    text = "".join(texts).strip()
    return text.startswith("/") or text == "?"


def _read_user_message(body: dict[str, Any]) -> Message:
    return _read_parts("user", _list_parts(body.get("content")))


def _read_reply(body: dict[str, Any]) -> Message:
    """Parse a message of the model: thoughts, text and tool calls.

    Newer versions have all of them in `content`, older ones in fields of their own.
    """
    parts = _list_parts(body.get("content"))
    if not any(part.get("thought") for part in parts):
        thoughts = list_objects(body.get("thoughts"))
        parts = [*({"text": _join_thought(each), "thought": True} for each in thoughts), *parts]
    if not any("functionCall" in part for part in parts):
        for call in list_objects(body.get("toolCalls")):
            given = {"id": find_text(call, "id"), "name": find_text(call, "name"), "args": find_object(call, "args")}
            parts.append({"functionCall": given})
    return _read_parts("model", parts)


def _join_thought(thought: dict[str, Any]) -> str:
    subject, description = find_text(thought, "subject"), find_text(thought, "description")
    return f"**{subject}** {description}" if subject else description


def _read_parts(role: str, parts: list[dict[str, Any]]) -> Message:
    require_shallow(parts)
    return read_content({"role": role, "parts": parts})


def _list_parts(content: object) -> list[dict[str, Any]]:
    """Return the parts of a text, a part, or a list of both; empty texts are left out.

    Raises:
        MessageError: It is something else.
    """
    if content is None or content == "":
        return []
    found: list[dict[str, Any]] = []
    for each in content if isinstance(content, list) else [content]:
        if not isinstance(each, str | dict):
            raise MessageError("expected text or parts", path="content")
        if each not in ("", {"text": ""}):
            found.append({"text": each} if isinstance(each, str) else each)
    return found


def _list_result_parts(call: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a tool call's result; none if it has no result yet."""
    name, label = find_text(call, "id"), find_text(call, "name")
    parts = _list_parts(call.get("result"))
    found: list[dict[str, Any]] = []
    for part in parts:
        response = find_object(part, "functionResponse")
        if response and find_text(response, "id") in ("", name):
            found.append({**part, "functionResponse": {"name": label, **response, "id": name}})
        elif not response:
            found.append(part)
    if parts and not any("functionResponse" in part for part in found):
        text = "\n".join(find_text(part, "text") for part in found)
        found.insert(0, {"functionResponse": {"id": name, "name": label, "response": {"output": text}}})
        found[1:] = [part for part in found[1:] if set(part) != {"text"}]
    return found


def _find_result_ids(body: dict[str, Any]) -> list[str]:
    """Return the calls whose results a user's message has, as newer versions write them."""
    content = body.get("content") if body.get("type") == "user" else None
    return [
        find_text(find_object(part, "functionResponse"), "id")
        for part in list_objects(content)
        if "functionResponse" in part
    ]


def _read_usage(body: dict[str, Any]) -> Usage | None:
    """Return the usage of a reply: `input` includes cached tokens, `output` excludes thoughts."""
    given = body.get("tokens")
    if not isinstance(given, dict):
        return None

    def count(key: str) -> int:
        found = given.get(key)
        return found if type(found) is int and found >= 0 else 0

    return Usage(
        input_tokens=count("input") + count("tool"),
        output_tokens=count("output") + count("thoughts"),
        cached_input_tokens=count("cached"),
        reasoning_tokens=count("thoughts"),
    )


FORMAT = TranscriptFormat(
    FORMAT_NAME,
    "a session of Gemini CLI",
    score_line,
    read_lines=read_session,
    read_document=read_document,
    writer=WRITER,
)
