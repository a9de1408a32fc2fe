"""A conversation exported from ChatGPT: messages in a tree, by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.arguments import parsed
from nexus_core.dialects.transcripts.document import members
from nexus_core.dialects.transcripts.lines import mapping_under, objects_in, word_in
from nexus_core.dialects.transcripts.recognition import NONE, OWN
from nexus_core.dialects.transcripts.transcript import Entry, Transcript
from nexus_core.dialects.transcripts.tree import climb, read_branches
from nexus_core.values.message import ROLES, Message
from nexus_core.values.parts import Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.document import Piece
    from nexus_core.dialects.transcripts.transcript import Outcome
    from nexus_core.dialects.transcripts.tree import Place
    from nexus_core.values.message import Role
    from nexus_core.values.parts import Part, ResultPart

FORMAT = "chatgpt"


def score_line(value: dict[str, Any]) -> int:
    """Score an object: a conversation has its messages in a mapping."""
    return OWN if isinstance(value.get("mapping"), dict) else NONE


def read_conversation(text: str, found: Mapping[str, Piece], account: Account) -> Transcript:
    """A conversation: what led to its current message, and the branches beside."""
    nodes = members(text, found["mapping"])
    account.lines = len(nodes) + len(found) - 1
    for name, piece in found.items():
        if name != "mapping":
            account.keep(piece.line, name, piece.value)
    return _Reading(nodes, account).transcript({name: piece.value for name, piece in found.items()})


class _Reading:
    def __init__(self, nodes: Mapping[str, Piece], account: Account) -> None:
        self._nodes = nodes
        self._account = account
        self._parents = {
            name: word_in(piece.value, "parent") if isinstance(piece.value, dict) else ""
            for name, piece in nodes.items()
        }

    def transcript(self, body: dict[str, Any]) -> Transcript:
        current = word_in(body, "current_node")
        main = climb(current if current in self._nodes else next(reversed(list(self._nodes)), ""), self._parents)
        entries, counts = self._entries(main, "message")
        places: dict[str, Place] = {name: (None, count) for name, count in zip(main, counts, strict=True)}
        inner = set(self._parents.values())
        # Leaves first, the newest of them first: an export may list its nodes in any order.
        newest = list(self._nodes)[::-1]
        newest.sort(key=inner.__contains__)
        branches = read_branches(newest, self._parents, places, lambda path: self._entries(path, "branch"))
        return Transcript(
            format=FORMAT,
            api="",
            entries=tuple(entries),
            report=self._account.report(),
            id=word_in(body, "conversation_id") or word_in(body, "id"),
            branches=branches,
            metadata=self._account.metadata,
        )

    def _entries(self, path: Sequence[str], outcome: Outcome) -> tuple[list[Entry], list[int]]:
        """What is said on a path, and how much of it up to each node."""
        call = ""
        entries: list[Entry] = []
        counts: list[int] = []
        for name in path:
            piece = self._nodes.get(name)
            if piece is not None:  # or a parent that was not exported
                entry = self._entry(name, piece, call, outcome)
                if entry is not None:
                    call = entry.message.tool_calls[-1].id if entry.message.tool_calls else call
                    entries.append(entry)
            counts.append(len(entries))
        return entries, counts

    def _entry(self, name: str, piece: Piece, call: str, outcome: Outcome) -> Entry | None:
        node = piece.value if isinstance(piece.value, dict) else {}
        body = mapping_under(node, "message")
        message = _read_message(body, name, call)
        if message is None:
            self._account.keep(piece.line, "node", piece.value)
            return None
        self._account.use(outcome, piece.line)
        time = body.get("create_time")
        return Entry(
            message=message,
            lines=(piece.line,),
            ids=(name,),
            parent=self._parents[name],
            time="" if time is None else str(time),
            model=word_in(mapping_under(body, "metadata"), "model_slug") if message.role == "assistant" else "",
            raw=(node,),
        )


def _read_message(body: dict[str, Any], name: str, call: str) -> Message | None:
    """A message; None for a node that says nothing, or that the model is not told."""
    author = mapping_under(body, "author")
    role: Role | None = next((role for role in ROLES if role == author.get("role")), None)
    parts = _read_parts(mapping_under(body, "content"))
    if role is None or not parts or body.get("weight") == 0:
        return None
    recipient = word_in(body, "recipient") or "all"
    if role == "assistant" and recipient != "all":
        raw = "\n".join(part.text for part in parts if isinstance(part, Text))
        return Message(role, (ToolCall(name, recipient, parsed(raw), raw),))
    if role == "tool":
        results: Any = [part for part in parts if not isinstance(part, Reasoning)]
        return Message(role, (ToolResult(call, results, word_in(author, "name")),))
    return Message(role, parts)


def _read_parts(content: dict[str, Any]) -> list[Part]:
    given = content.get("parts")
    if isinstance(given, list):
        return [part for each in given if (part := _read_part(each))]
    if content.get("content_type") == "thoughts":
        thoughts = (word_in(thought, "content") for thought in objects_in(content.get("thoughts")))
        return [Reasoning(text=thought) for thought in thoughts if thought]
    words = word_in(content, "text") or word_in(content, "result")
    if words:
        return [Text(words)]
    return [Opaque(FORMAT, content)] if len(content) > 1 else []


def _read_part(given: object) -> ResultPart | None:
    if isinstance(given, dict):
        return Opaque(FORMAT, given)
    return Text(given) if isinstance(given, str) and given else None
