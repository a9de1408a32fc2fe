"""Reader for ChatGPT exports, whose messages form a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.calls import parse_arguments
from nexus_core.transcripts.base import (
    SCORE_NONE,
    SCORE_OWN,
    Transcript,
    TranscriptEntry,
    TranscriptFormat,
    find_object,
    find_text,
    list_objects,
    locate_members,
    read_branches,
    trace_path,
)
from nexus_core.types.messages import ROLES, Message, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.transcripts.base import LineAccount, LineOutcome, LocatedValue, PathPosition
    from nexus_core.types.messages import Part, ResultPart, Role

FORMAT_NAME = "chatgpt"


def score_line(value: dict[str, Any]) -> int:
    """Score an object. A conversation has its messages in `mapping`."""
    return SCORE_OWN if isinstance(value.get("mapping"), dict) else SCORE_NONE


def read_conversation(text: str, found: Mapping[str, LocatedValue], account: LineAccount) -> Transcript:
    """Parse a conversation: the path to its current message, and branches."""
    nodes = locate_members(text, found["mapping"])
    account.lines = len(nodes) + len(found) - 1
    for name, piece in found.items():
        if name != "mapping":
            account.keep(piece.line, name, piece.value)
    return _ConversationReader(nodes, account).read({name: piece.value for name, piece in found.items()})


class _ConversationReader:
    def __init__(self, nodes: Mapping[str, LocatedValue], account: LineAccount) -> None:
        self._nodes = nodes
        self._account = account
        self._parents = {
            name: find_text(piece.value, "parent") if isinstance(piece.value, dict) else ""
            for name, piece in nodes.items()
        }

    def read(self, body: dict[str, Any]) -> Transcript:
        current = find_text(body, "current_node")
        main = trace_path(current if current in self._nodes else next(reversed(list(self._nodes)), ""), self._parents)
        entries, counts = self._read_path(main, "message")
        positions: dict[str, PathPosition] = {name: (None, count) for name, count in zip(main, counts, strict=True)}
        inner = set(self._parents.values())
        # Leaves first, newest first, because an export may list its nodes in any order.
        newest = list(self._nodes)[::-1]
        newest.sort(key=inner.__contains__)
        branches = read_branches(newest, self._parents, positions, lambda path: self._read_path(path, "branch"))
        return Transcript(
            format=FORMAT_NAME,
            api="",
            entries=tuple(entries),
            report=self._account.report(),
            id=find_text(body, "conversation_id") or find_text(body, "id"),
            branches=branches,
            metadata=self._account.metadata,
        )

    def _read_path(self, path: Sequence[str], outcome: LineOutcome) -> tuple[list[TranscriptEntry], list[int]]:
        """Return the entries of a path, and for each node the number of entries up to it."""
        call = ""
        entries: list[TranscriptEntry] = []
        counts: list[int] = []
        for name in path:
            piece = self._nodes.get(name)
            if piece is not None:  # a parent may be missing in the export
                entry = self._read_entry(name, piece, call, outcome)
                if entry is not None:
                    call = entry.message.tool_calls[-1].id if entry.message.tool_calls else call
                    entries.append(entry)
            counts.append(len(entries))
        return entries, counts

    def _read_entry(self, name: str, piece: LocatedValue, call: str, outcome: LineOutcome) -> TranscriptEntry | None:
        node = piece.value if isinstance(piece.value, dict) else {}
        body = find_object(node, "message")
        message = _read_message(body, name, call)
        if message is None:
            self._account.keep(piece.line, "node", piece.value)
            return None
        self._account.use(outcome, piece.line)
        time = body.get("create_time")
        return TranscriptEntry(
            message=message,
            lines=(piece.line,),
            ids=(name,),
            parent=self._parents[name],
            time="" if time is None else str(time),
            model=find_text(find_object(body, "metadata"), "model_slug") if message.role == "assistant" else "",
            raw=(node,),
        )


def _read_message(body: dict[str, Any], name: str, call: str) -> Message | None:
    """Parse a message.

    Returns None for a node that is empty or hidden from the model (weight 0).
    """
    author = find_object(body, "author")
    role: Role | None = next((role for role in ROLES if role == author.get("role")), None)
    parts = _read_parts(find_object(body, "content"))
    if role is None or not parts or body.get("weight") == 0:
        return None
    recipient = find_text(body, "recipient") or "all"
    if role == "assistant" and recipient != "all":
        raw = "\n".join(part.text for part in parts if isinstance(part, Text))
        return Message(role, (ToolCall(name, recipient, parse_arguments(raw), raw),))
    if role == "tool":
        results: Any = [part for part in parts if not isinstance(part, Reasoning)]
        return Message(role, (ToolResult(call, results, find_text(author, "name")),))
    return Message(role, parts)


def _read_parts(content: dict[str, Any]) -> list[Part]:
    given = content.get("parts")
    if isinstance(given, list):
        return [part for each in given if (part := _read_part(each))]
    if content.get("content_type") == "thoughts":
        thoughts = (find_text(thought, "content") for thought in list_objects(content.get("thoughts")))
        return [Reasoning(text=thought) for thought in thoughts if thought]
    text = find_text(content, "text") or find_text(content, "result")
    if text:
        return [Text(text)]
    return [Opaque(FORMAT_NAME, content)] if len(content) > 1 else []


def _read_part(given: object) -> ResultPart | None:
    if isinstance(given, dict):
        return Opaque(FORMAT_NAME, given)
    return Text(given) if isinstance(given, str) and given else None


FORMAT = TranscriptFormat(FORMAT_NAME, "a conversation of ChatGPT", score_line, read_document=read_conversation)
