"""The lines of a session as nodes of a tree."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.transcripts.lines import mapping_under, objects_in, word_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.lines import Record

SPEAKERS = ("user", "assistant")


class Node(NamedTuple):
    """A line that has a place in the tree.

    Attributes:
        id: Its name.
        parent: The name of the line it follows, in this file; "" for a first one.
        chain: The subagent it belongs to; "" for the conversation itself.
        record: The line.
        is_message: Whether somebody speaks.
        is_boundary: Whether a compaction begins here.
        reply: The API's name for the answer that the line has a part of.
        calls: The ids of the calls in it.
        answers: The ids of the calls whose results it has.
    """

    id: str
    parent: str
    chain: str
    record: Record
    is_message: bool
    is_boundary: bool
    reply: str = ""
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()

    @property
    def is_summary(self) -> bool:
        """Whether it stands for what was compacted."""
        return self.is_message and self.record.value.get("isCompactSummary") is True


def is_message(value: dict[str, Any]) -> bool:
    """Whether somebody speaks in a line; errors of the API are shown as if somebody did, but nobody is sent them."""
    return (
        value.get("type") in SPEAKERS
        and isinstance(value.get("message"), dict)
        and value.get("isApiErrorMessage") is not True
    )


def read_nodes(records: Sequence[Record], account: Account) -> list[Node]:
    """The nodes in the order of the file. Lines that are no messages are kept as they are, named or not."""
    nodes: dict[str, Node] = {}
    spoken = [is_message(record.value) for record in records]
    names = [word_in(record.value, "uuid") for record in records]
    linking = _Linking(records, spoken, names, account)
    for record, speaks, name in zip(records, spoken, names, strict=True):
        value = record.value
        if name in nodes and speaks > nodes[name].is_message:
            name = ""  # noqa: PLW2901 - what had that name before was no message
        elif name in nodes:
            account.keep(record.number, "repeated", value, "skipped")
            account.note(record.number, f"the same uuid as in line {nodes[name].record.number}")
            continue
        is_boundary = not speaks and _is_boundary(value)
        if not speaks and not is_boundary:
            account.keep(record.number, kind_of(value), value)
        if name or speaks or is_boundary:
            node = linking.node(name or f"line {record.number}", record, speaks=speaks)
            nodes[node.id] = node
    return list(nodes.values())


def kind_of(value: dict[str, Any]) -> str:
    """What the program calls a line: its type and subtype."""
    inner = mapping_under(value, "attachment")
    words = (word_in(value, "type") or "untyped", word_in(value, "subtype") or word_in(inner, "type"))
    return "api-error" if value.get("isApiErrorMessage") is True else "/".join(filter(None, words))


class _Linking:
    """Says what each line follows."""

    def __init__(
        self, records: Sequence[Record], spoken: Sequence[bool], names: Sequence[str], account: Account
    ) -> None:
        self._account = account
        self._named = {*names} - {""}
        # In some files hardly a line says what it follows; where most do, one that follows nothing is a beginning.
        said = compress(records, spoken)
        self._threaded = 2 * sum([word_in(record.value, "parentUuid") != "" for record in said]) >= sum(spoken)
        self._last: dict[str, str] = {}

    def node(self, name: str, record: Record, *, speaks: bool) -> Node:
        value = record.value
        chain = word_in(value, "parent_tool_use_id")  # of what a subagent prints
        if value.get("isSidechain") is True:
            chain = word_in(value, "agentId") or "sidechain"
        parent = self._parent(record, self._last.get(chain, ""))
        self._last[chain] = name
        if not speaks:
            return Node(name, parent, chain, record, is_message=False, is_boundary=_is_boundary(value))
        message = value["message"]
        calls: list[str] = []
        answers: list[str] = []
        for block in objects_in(message.get("content")):
            kind = block.get("type")
            if kind == "tool_use":
                calls.append(word_in(block, "id"))
            elif kind == "tool_result":
                answers.append(word_in(block, "tool_use_id"))
        reply = word_in(message, "id") if value["type"] == "assistant" else ""
        return Node(name, parent, chain, record, True, False, reply, tuple(calls), tuple(answers))  # noqa: FBT003 - named

    def _parent(self, record: Record, previous: str) -> str:
        value = record.value
        given = word_in(value, "parentUuid") or word_in(value, "logicalParentUuid")
        if given in self._named:
            return given
        if given:
            if previous:
                self._account.note(record.number, "it follows something that is not in this file; taken in file order")
            return previous
        starts = value.get("parentUuid", "") is None and self._threaded
        continues = _is_boundary(value) or value.get("isCompactSummary") is True
        return "" if starts and not continues else previous


def _is_boundary(value: dict[str, Any]) -> bool:
    return value.get("type") == "system" and value.get("subtype") == "compact_boundary"
