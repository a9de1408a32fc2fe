"""Reader for Claude Code: `~/.claude/projects/<directory>/<session>.jsonl`.

It also reads the output of `--output-format stream-json`. Lines form a tree: the path to the newest line is the
conversation, all other paths are branches. The lines of one reply become one message.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.anthropic import DIALECT
from nexus_core.errors import MessageError
from nexus_core.transcripts.base import (
    SCORE_NONE,
    SCORE_OWN,
    SCORE_SHARED,
    Transcript,
    TranscriptBranch,
    TranscriptCompaction,
    TranscriptEntry,
    TranscriptFormat,
    build_opaque_message,
    find_object,
    find_text,
    list_objects,
    trace_path,
    try_read,
)
from nexus_core.transcripts.claude_writer import WRITER
from nexus_core.types.messages import Reply

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from nexus_core.transcripts.base import BranchKind, EntryKind, JsonLine, LineAccount, LineOutcome

FORMAT_NAME = "claude-code"
MESSAGE_TYPES = ("user", "assistant")


class LineNode(NamedTuple):
    """A line that is part of the tree.

    Attributes:
        id: The line's id.
        parent: Id of the line before it in this file; "" for a root.
        chain: The subagent that it belongs to; "" for the main conversation.
        record: The line.
        is_message: True if it is a message.
        is_boundary: True if a compaction starts here.
        reply: The API's id of the reply that the line is part of.
        call_ids: Ids of the tool calls in it.
        result_ids: Call ids of the tool results in it.
    """

    id: str
    parent: str
    chain: str
    record: JsonLine
    is_message: bool
    is_boundary: bool
    reply: str = ""
    call_ids: tuple[str, ...] = ()
    result_ids: tuple[str, ...] = ()

    @property
    def is_summary(self) -> bool:
        """True if it is the summary of a compaction."""
        return self.is_message and self.record.value.get("isCompactSummary") is True


def is_message_line(value: dict[str, Any]) -> bool:
    """Return True if the line is a message.

    API errors look like one, but are never sent to the model.
    """
    return (
        value.get("type") in MESSAGE_TYPES
        and isinstance(value.get("message"), dict)
        and value.get("isApiErrorMessage") is not True
    )


def find_chain(value: dict[str, Any]) -> str:
    """Return the subagent that a line belongs to, "" for the main conversation."""
    if value.get("isSidechain") is True:
        return find_text(value, "agentId") or "sidechain"
    return find_text(value, "parent_tool_use_id")  # set in the output of a subagent


def read_nodes(records: Sequence[JsonLine], account: LineAccount) -> list[LineNode]:
    """Return the nodes in file order.

    Lines that are not messages are also kept as metadata.
    """
    nodes: dict[str, LineNode] = {}
    others: dict[str, list[LineNode]] = defaultdict(list)  # of an id that several messages have
    message_flags = [is_message_line(record.value) for record in records]
    names = [find_text(record.value, "uuid") for record in records]
    builder = _NodeBuilder(records, message_flags, names, account)
    for record, is_message, name in zip(records, message_flags, names, strict=True):
        value, repeated = record.value, ""
        earlier = [nodes[name], *others[name]] if name in nodes else []
        if earlier and is_message and not any(_has_content_of(value, each) for each in earlier):
            repeated, name = name, ""  # noqa: PLW2901 - the earlier line with that id is not a message, or another one
        elif earlier:
            account.keep(record.number, "repeated", value, "skipped")
            account.note(record.number, f"the same uuid as in line {nodes[name].record.number}")
            continue
        is_boundary = not is_message and _is_compact_boundary(value)
        if not is_message and not is_boundary:
            is_known = value.get("type") in (*MESSAGE_TYPES, *_LINE_TYPES, *_STATE_TYPES)
            keep = account.keep if is_known else account.keep_unknown
            keep(record.number, get_line_kind(value), value)
        if name or is_message or is_boundary:
            node = builder.build(name or f"line {record.number}", record, is_message=is_message)
            nodes[node.id] = node
            if repeated:
                others[repeated].append(node)
    return list(nodes.values())


def _has_content_of(value: dict[str, Any], node: LineNode) -> bool:
    """Return True if a message repeats that of another line, perhaps with other usage."""
    return node.is_message and value["message"].get("content") == node.record.value["message"].get("content")


def get_line_kind(value: dict[str, Any]) -> str:
    """Return the program's name of a line: its type and subtype."""
    inner = find_object(value, "attachment")
    names = (find_text(value, "type") or "untyped", find_text(value, "subtype") or find_text(inner, "type"))
    return "api-error" if value.get("isApiErrorMessage") is True else "/".join(filter(None, names))


class _NodeBuilder:
    """Builds nodes and finds their parents."""

    def __init__(
        self, records: Sequence[JsonLine], message_flags: Sequence[bool], names: Sequence[str], account: LineAccount
    ) -> None:
        self._account = account
        self._ids = {*names} - {""}
        # In some files hardly any line has a parent. If most have one, a line without is a root.
        messages = compress(records, message_flags)
        linked = sum([find_text(record.value, "parentUuid") != "" for record in messages])
        self._has_parents = 2 * linked >= sum(message_flags)
        self._last: dict[str, str] = {}

    def build(self, name: str, record: JsonLine, *, is_message: bool) -> LineNode:
        value = record.value
        chain = find_chain(value)
        parent = self._find_parent(record, self._last.get(chain, ""))
        self._last[chain] = name
        if not is_message:
            return LineNode(name, parent, chain, record, is_message=False, is_boundary=_is_compact_boundary(value))
        message = value["message"]
        call_ids: list[str] = []
        result_ids: list[str] = []
        for block in list_objects(message.get("content")):
            kind = block.get("type")
            if kind == "tool_use":
                call_ids.append(find_text(block, "id"))
            elif kind == "tool_result":
                result_ids.append(find_text(block, "tool_use_id"))
        reply = find_text(message, "id") if value["type"] == "assistant" else ""
        return LineNode(
            name,
            parent,
            chain,
            record,
            is_message=True,
            is_boundary=False,
            reply=reply,
            call_ids=tuple(call_ids),
            result_ids=tuple(result_ids),
        )

    def _find_parent(self, record: JsonLine, previous: str) -> str:
        value = record.value
        given = find_text(value, "parentUuid") or find_text(value, "logicalParentUuid")
        if given in self._ids:
            return given
        if given:
            if previous:
                self._account.note(record.number, "it follows something that is not in this file; taken in file order")
            return previous
        is_root = value.get("parentUuid", "") is None and self._has_parents
        is_compaction = _is_compact_boundary(value) or value.get("isCompactSummary") is True
        return "" if is_root and not is_compaction else previous


def _is_compact_boundary(value: dict[str, Any]) -> bool:
    return value.get("type") == "system" and value.get("subtype") == "compact_boundary"


class LinePath(NamedTuple):
    """A path of the tree, in file order.

    Attributes:
        nodes: The lines.
        parent: Id of the line before the first one, on another path; "" for none.
        chain: The subagent that they belong to.
    """

    nodes: tuple[LineNode, ...]
    parent: str
    chain: str


class PathPositions:
    """Positions of lines: the path, and the number of its entries up to the line.

    Args:
        paths: The main path and the others.
        entries: The entries of each path.
        claimed: Further lines of the main path, which may have no child on it.
    """

    def __init__(
        self, paths: Sequence[LinePath], entries: Sequence[Sequence[TranscriptEntry]], claimed: Iterable[LineNode] = ()
    ) -> None:
        self._positions = {node.id: (0, node.record.number) for node in claimed}
        for number, path in enumerate(paths):
            self._positions.update((node.id, (number, node.record.number)) for node in path.nodes)
        self._starts = [[entry.lines[0] for entry in read] for read in entries]

    def find_fork(self, number: int, path: LinePath) -> tuple[int | None, int]:
        """Return `leaves` and `at` of a path's `TranscriptBranch`."""
        parent_path, line = self._positions.get(path.parent, (0, 0))
        if parent_path == number:  # a cycle
            return None, 0
        return parent_path - 1 if parent_path else None, bisect_right(self._starts[parent_path], line)


class LineTree:
    """Splits the tree into paths, the main one first. Each line is on one path only.

    Args:
        nodes: All lines of the tree, in file order.
    """

    def __init__(self, nodes: Sequence[LineNode]) -> None:
        self._nodes = {node.id: node for node in nodes}
        self._parents = {node.id: node.parent for node in nodes}
        self._taken: set[str] = set()
        self._replies: dict[tuple[str, str], list[LineNode]] = defaultdict(list)
        self._results: dict[str, list[LineNode]] = defaultdict(list)
        for node in nodes:
            if node.reply:
                self._replies[node.chain, node.reply].append(node)
            for call_id in node.result_ids:
                self._results[call_id].append(node)

    def take_main_path(self) -> LinePath:
        """Return the path to the newest line. In a subagent's file, that of the subagent."""
        newest_first = (node for node in reversed(self._nodes.values()) if node.is_message or node.is_boundary)
        newest = next(newest_first, None)
        if newest is None:
            return LinePath((), "", "")
        if newest.chain:  # a subagent has the last word
            newest = next((node for node in newest_first if not node.chain), newest)
        return self._take(newest)

    def take_other_paths(self) -> Iterator[LinePath]:
        """Yield the other paths, that of the newest line first."""
        for node in reversed(list(self._nodes.values())):
            if node.is_message and node.id not in self._taken:
                yield self._take(node)

    def claim(self, names: Iterable[str]) -> None:
        """Assign further lines to the main path, which may have no child on it."""
        self._taken.update(names)

    def _take(self, leaf: LineNode) -> LinePath:
        names = trace_path(leaf.id, self._parents, self._taken)
        found = dict.fromkeys(names)
        self._add_reply_lines(found)
        self._add_result_lines(found)
        self._taken.update(found)
        nodes = sorted([self._nodes[name] for name in found], key=attrgetter("record.number"))
        return LinePath(tuple(nodes), self._parents[names[0]], leaf.chain)

    def _add_reply_lines(self, found: dict[str, None]) -> None:
        """Add all lines of each reply.

        A reply has a line per block, and some of them are beside the path.
        """
        for name in list(found):
            node = self._nodes[name]
            if node.reply:
                self._add(found, self._replies.pop((node.chain, node.reply), ()))

    def _add_result_lines(self, found: dict[str, None]) -> None:
        """Add the tool results of parallel calls.

        They are siblings, so only one of them is on the path.
        """
        nodes = [self._nodes[name] for name in found]
        answered = {"", *(call_id for node in nodes for call_id in node.result_ids)}
        for node in nodes:
            for call_id in node.call_ids:
                if call_id not in answered:
                    answered.add(call_id)
                    self._add(found, [each for each in self._results[call_id] if each.chain == node.chain][:1])

    def _add(self, found: dict[str, None], nodes: Sequence[LineNode]) -> None:
        for node in nodes:
            if node.id not in self._taken:
                found[node.id] = None


_REPLY_FIELDS = ("id", "role", "model", "content", "stop_reason")
_USAGE_FIELDS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
    "output_tokens_details",
)
"""Fields that are parsed of a reply and its usage. `TranscriptEntry.raw` has all fields."""


def read_entries(nodes: Iterable[LineNode], account: LineAccount, outcome: LineOutcome) -> list[TranscriptEntry]:
    """Parse the messages of a path, ordered by their first lines.

    Other lines are ignored.
    """
    groups: dict[tuple[str, str], list[LineNode]] = {}
    for node in nodes:
        if node.is_message:
            key = (node.reply, "") if node.reply else ("", node.id)
            groups.setdefault(key, []).append(node)
    return [read_entry(group, account, outcome) for group in groups.values()]


def read_entry(nodes: Sequence[LineNode], account: LineAccount, outcome: LineOutcome) -> TranscriptEntry:
    """Parse a message from its lines."""
    account.use(outcome, nodes[0].record.number)
    is_input = nodes[0].record.value["type"] == "user"
    return _read_input_entry(nodes, account) if is_input else _read_reply_entry(nodes, account)


def _read_input_entry(nodes: Sequence[LineNode], account: LineAccount) -> TranscriptEntry:
    """Parse a user message or tool result, which always has one line."""
    number, value = nodes[0].record
    body: dict[str, Any] = value["message"]
    message = try_read(DIALECT.read, body, account, number) or build_opaque_message("user", FORMAT_NAME, body)
    return TranscriptEntry(
        message=message,
        lines=(number,),
        ids=_collect_ids(nodes),
        parent=find_text(value, "parentUuid"),
        kind=_classify_entry(value),
        time=find_text(value, "timestamp"),
        raw=(value,),
    )


def _read_reply_entry(nodes: Sequence[LineNode], account: LineAccount) -> TranscriptEntry:
    """Parse a reply, which has one line per block."""
    values = [node.record.value for node in nodes]
    numbers = tuple([node.record.number for node in nodes])
    account.use("merged", *numbers[1:])
    reply = _read_reply([value["message"] for value in values], account, numbers[0])
    return TranscriptEntry(
        message=reply.messages[0],
        lines=numbers,
        ids=_collect_ids(nodes),
        parent=find_text(values[0], "parentUuid"),
        kind=_classify_entry(values[0]),
        time=find_text(values[0], "timestamp"),
        model=reply.model,
        reply=reply.id,
        stop=reply.stop,
        usage=reply.usage,
        raw=tuple(values),
    )


def _collect_ids(nodes: Sequence[LineNode]) -> tuple[str, ...]:
    return tuple([node.id for node in nodes if "uuid" in node.record.value])


def _read_reply(bodies: Sequence[dict[str, Any]], account: LineAccount, line: int) -> Reply:
    body = {key: bodies[-1][key] for key in _REPLY_FIELDS if key in bodies[-1]}
    if len(bodies) > 1:
        body["content"] = _merge_content(bodies)
    usage = next((given for each in reversed(bodies) if (given := each.get("usage"))), None)
    if isinstance(usage, dict):
        body["usage"] = {key: usage[key] for key in _USAGE_FIELDS if key in usage}
    reply = try_read(DIALECT.read_reply, body, account, line)
    if reply:
        return reply
    try:
        message = DIALECT.read({"role": "assistant", "content": body.get("content")})
    except MessageError:  # the same error as above, which has a note
        message = build_opaque_message("assistant", FORMAT_NAME, body)
    return Reply(messages=(message,), id=find_text(body, "id"), model=find_text(body, "model"))


def _merge_content(bodies: Sequence[dict[str, Any]]) -> list[Any]:
    """Return the blocks of all lines.

    A tool call that is repeated with more arguments counts only once.
    """
    blocks: dict[object, Any] = {}
    for line_index, body in enumerate(bodies):
        given = body.get("content")
        listed = given if isinstance(given, list) else [{"type": "text", "text": given}]
        for index, block in enumerate(listed):
            is_call = isinstance(block, dict) and block.get("type") == "tool_use"
            blocks[find_text(block, "id") if is_call else (line_index, index)] = block
    return list(blocks.values())


def _classify_entry(value: dict[str, Any]) -> EntryKind:
    if value.get("isCompactSummary") is True:
        return "summary"
    if value.get("isMeta") is True:
        return "injected"
    is_notification = "origin" in value and find_object(value, "origin").get("kind") == "task-notification"
    return "injected" if is_notification else "said"


class CompactionLines(NamedTuple):
    """The lines of a compaction: boundary and summary, one of which may be missing."""

    boundary: LineNode | None
    summary: LineNode | None

    @property
    def nodes(self) -> tuple[LineNode, ...]:
        """The lines that exist."""
        return tuple(node for node in self if node)

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of the boundary line."""
        return find_object(self.boundary.record.value, "compactMetadata") if self.boundary else {}


def find_compactions(nodes: Iterable[LineNode], path: LinePath) -> list[CompactionLines]:
    """Return the compactions on the main path, oldest first."""
    found: list[CompactionLines] = []
    for node in nodes:
        if node.chain != path.chain:
            continue
        if node.is_boundary:
            found.append(CompactionLines(node, None))
        elif node.is_summary:
            is_open = bool(found) and found[-1].summary is None
            boundary = found.pop().boundary if is_open else None
            found.append(CompactionLines(boundary, node))
    names = {node.id for node in path.nodes} if found else set()
    return [each for each in found if _is_on_path(each, names)]


def read_compactions(
    compactions: Sequence[CompactionLines], entries: Sequence[TranscriptEntry], account: LineAccount
) -> Iterator[TranscriptCompaction]:
    """Yield the parsed compactions of the main path.

    Args:
        compactions: Lines of the compactions.
        entries: Entries of the main path, without summaries.
        account: Collects the outcome of each line.
    """
    if not compactions:  # as in most files
        return
    starts = [entry.lines[0] for entry in entries]
    indices = {name: index for index, entry in enumerate(entries) for name in entry.ids}
    for compaction in compactions:
        at = bisect_left(starts, compaction.nodes[0].record.number)
        kept = [indices[name] for name in _list_kept_ids(compaction.metadata) if name in indices]
        yield _read_compaction(compaction, at, min([at, *kept]), account)


def _read_compaction(
    compaction: CompactionLines, at: int, kept_from: int, account: LineAccount
) -> TranscriptCompaction:
    first = compaction.nodes[0].record
    summary = read_entry([compaction.summary], account, "compaction") if compaction.summary else None
    if compaction.boundary:
        account.use("compaction", first.number)
    if summary is None:
        account.note(first.number, "a compaction without its summary")
    before = compaction.metadata.get("preTokens")
    return TranscriptCompaction(
        line=first.number,
        at=at,
        kept_from=kept_from,
        summary=summary.message.content if summary else "",
        context=(summary,) if summary else (),
        id=compaction.nodes[0].id,
        time=find_text(first.value, "timestamp"),
        tokens_before=before if isinstance(before, int) else None,
        raw=first.value,
    )


def _is_on_path(compaction: CompactionLines, names: Container[str]) -> bool:
    if any(node.id in names for node in compaction.nodes):
        return True
    # The next line may be a child of the last kept one, so that the path bypasses the compaction's lines.
    kept = _list_kept_ids(compaction.metadata)
    return bool(kept) and kept[-1] in names


def _list_kept_ids(metadata: dict[str, Any]) -> list[str]:
    listed = find_object(metadata, "preservedMessages").get("uuids")
    if isinstance(listed, list):
        return [name for name in listed if isinstance(name, str)]
    segment = find_object(metadata, "preservedSegment")
    return [name for name in (find_text(segment, "headUuid"), find_text(segment, "tailUuid")) if name]


_TREE_FIELDS = ("parentUuid", "isSidechain", "leafUuid")
_STATE_TYPES = (
    *("agent-color", "agent-name", "agent-setting", "ai-title", "attribution-snapshot", "content-replacement"),
    *("custom-title", "last-prompt", "mode", "permission-mode", "pr-link", "rate_limit_event", "stream_event", "tag"),
    *("task-summary", "worktree-state"),
)
"""Types of lines about the program's state, which are no part of the conversation."""
_LINE_TYPES = ("attachment", "file-history-snapshot", "progress", "queue-operation", "result", "summary", "system")


def score_line(value: dict[str, Any]) -> int:
    """Score a line: part of the tree, a message, or a type of Claude Code only."""
    kind = value.get("type")
    if not isinstance(kind, str) or "payload" in value:
        return SCORE_NONE
    message = value.get("message")
    if isinstance(message, dict) and "parts" in message and "content" not in message:  # Gemini's shape: Qwen Code
        return SCORE_NONE
    if (kind in MESSAGE_TYPES and is_message_line(value)) or not value.keys().isdisjoint(_TREE_FIELDS):
        return SCORE_OWN
    is_named = "sessionId" in value or "session_id" in value
    if kind in _LINE_TYPES:
        return SCORE_OWN if is_named or "snapshot" in value else SCORE_NONE
    return SCORE_SHARED if is_named else SCORE_NONE


_BARE_BLOCKS = {"tool_use": ("assistant", "input"), "tool_result": ("user", "output")}
"""Types of lines that are a block without a message, as older versions wrote them: its role, and what it must have."""


def _wrap_bare_blocks(records: Sequence[JsonLine], account: LineAccount) -> Sequence[JsonLine]:
    """Return the lines with a message around each bare call and result."""
    if not any(_is_bare_block(record.value) for record in records):
        return records
    wrapped: list[JsonLine] = []
    chains: dict[str, _BareCalls] = defaultdict(_BareCalls)
    for record in records:
        value, calls = record.value, chains[find_chain(record.value)]
        if not _is_bare_block(value):
            if value.get("type") == "user" and _classify_entry(value) == "said":
                calls.give_up()
            wrapped.append(record)
            continue
        role, _ = _BARE_BLOCKS[value["type"]]
        if role == "assistant":
            block = {"type": "tool_use", "id": calls.add(record), "name": find_text(value, "name")}
            block["input"] = value["input"]
        else:
            block = {"type": "tool_result", "tool_use_id": calls.answer(record, account), "content": value["output"]}
        wrapped.append(record._replace(value=value | {"type": role, "message": {"role": role, "content": [block]}}))
    return wrapped


class _BareCalls:
    """The calls on lines of their own in one chain, and which of them has no result yet."""

    def __init__(self) -> None:
        self._open: dict[str, None] = {}  # in file order
        self._last = ""
        self._known: dict[str, str] = {}  # call ids by uuid, because a line may be repeated

    def add(self, record: JsonLine) -> str:
        """Return the id of a call."""
        uuid = find_text(record.value, "uuid")
        name = find_text(record.value, "id") or uuid or f"line-{record.number}"
        if uuid not in self._known:
            self._open[name] = None
            self._last = name
        if uuid:
            self._known[uuid] = name
        return name

    def answer(self, record: JsonLine, account: LineAccount) -> str:
        """Return the id of the call that a result answers: without an id, the oldest one that has no result."""
        uuid, name = find_text(record.value, "uuid"), find_text(record.value, "tool_use_id")
        name = name or self._known.get(uuid, "")
        if not name:
            if len(self._open) > 1:
                account.note(record.number, "a result without the id of its call; taken in file order")
            name = next(iter(self._open), self._last)
        self._open.pop(name, None)
        if uuid:
            self._known[uuid] = name
        return name

    def give_up(self) -> None:
        """Leave the calls so far without a result, because the user wrote something after them."""
        self._open.clear()


def _is_bare_block(value: dict[str, Any]) -> bool:
    kind = find_text(value, "type")
    return kind in _BARE_BLOCKS and _BARE_BLOCKS[kind][1] in value and "message" not in value


def read_session(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    """Parse a session, or the separate file of a subagent."""
    records = _wrap_bare_blocks(records, account)
    nodes = read_nodes(records, account)
    tree = LineTree(nodes)
    path = tree.take_main_path()
    compaction_lines = find_compactions(nodes, path)
    claimed = [node for lines in compaction_lines for node in lines.nodes]
    claimed_ids = {node.id for node in claimed}
    tree.claim(claimed_ids)
    entries = read_entries((node for node in path.nodes if node.id not in claimed_ids), account, "message")
    compactions = tuple(read_compactions(compaction_lines, entries, account))
    branches = _read_branches(tree, path, entries, claimed, account)
    for node in nodes:
        if node.is_boundary and node.id not in claimed_ids:  # on a branch
            account.keep(node.record.number, get_line_kind(node.record.value), node.record.value)
    ids = _list_session_ids(records)
    return Transcript(
        format=FORMAT_NAME,
        api="anthropic",
        entries=tuple(entries),
        report=account.report(),
        id=ids[0] if ids else "",
        other_ids=tuple(ids[1:]),
        agent=path.chain,
        cwd=next((found for record in records if (found := find_text(record.value, "cwd"))), ""),
        branches=branches,
        compactions=compactions,
        metadata=account.metadata,
    )


def _read_branches(
    tree: LineTree,
    main: LinePath,
    entries: Sequence[TranscriptEntry],
    claimed: Iterable[LineNode],
    account: LineAccount,
) -> tuple[TranscriptBranch, ...]:
    others = list(tree.take_other_paths())[::-1]
    if not others:
        return ()
    read = [tuple(read_entries(path.nodes, account, "branch")) for path in others]
    positions = PathPositions([main, *others], [entries, *read], claimed)
    return tuple(
        _build_branch(path, branch_entries, *positions.find_fork(number, path))
        for number, (path, branch_entries) in enumerate(zip(others, read, strict=True), 1)
    )


def _build_branch(
    path: LinePath, entries: tuple[TranscriptEntry, ...], leaves: int | None, at: int
) -> TranscriptBranch:
    kind: BranchKind = "subagent" if path.chain else "fork"
    return TranscriptBranch(kind=kind, entries=entries, parent=path.parent, name=path.chain, leaves=leaves, at=at)


def _list_session_ids(records: Sequence[JsonLine]) -> list[str]:
    """Return the session ids of all lines, in order. A resumed session gets a new id.

    The first is the id of the conversation, because it stays the same when the file grows.
    """
    names = (find_text(record.value, "sessionId") or find_text(record.value, "session_id") for record in records)
    return list(dict.fromkeys(filter(None, names)))


FORMAT = TranscriptFormat(FORMAT_NAME, "a session of Claude Code", score_line, read_lines=read_session, writer=WRITER)
