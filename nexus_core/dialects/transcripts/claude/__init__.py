"""Sessions of Claude Code: `~/.claude/projects/<directory>/<session>.jsonl`, and what it prints as `stream-json`.

nodes.py         lines as nodes of a tree; paths.py: the main path and the branches
entries.py       lines become messages, those of one answer one message
compactions.py   where a session was compacted, and what was left of it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.transcripts.claude.compactions import find_boundaries, read_compactions
from nexus_core.dialects.transcripts.claude.entries import FORMAT, read_entries
from nexus_core.dialects.transcripts.claude.nodes import SPEAKERS, is_message, kind_of, read_nodes
from nexus_core.dialects.transcripts.claude.paths import Paths, Places
from nexus_core.dialects.transcripts.lines import word_in
from nexus_core.dialects.transcripts.recognition import NONE, OWN, SHARED
from nexus_core.dialects.transcripts.transcript import Branch, Transcript

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.claude.nodes import Node
    from nexus_core.dialects.transcripts.claude.paths import Path
    from nexus_core.dialects.transcripts.lines import Record
    from nexus_core.dialects.transcripts.transcript import BranchKind, Entry

_PLACED = ("parentUuid", "isSidechain", "leafUuid")
_KINDS = ("attachment", "file-history-snapshot", "progress", "queue-operation", "result", "summary", "system")


def score_line(value: dict[str, Any]) -> int:
    """Score a line: one of a tree, one in which somebody speaks, or one of the kinds that only Claude Code writes."""
    kind = value.get("type")
    if not isinstance(kind, str) or "payload" in value:
        return NONE
    message = value.get("message")
    if isinstance(message, dict) and "parts" in message and "content" not in message:  # Gemini's shape: Qwen Code
        return NONE
    if (kind in SPEAKERS and is_message(value)) or not value.keys().isdisjoint(_PLACED):
        return OWN
    is_named = "sessionId" in value or "session_id" in value
    if kind in _KINDS:
        return OWN if is_named or "snapshot" in value else NONE
    return SHARED if is_named else NONE


def read_session(records: Sequence[Record], account: Account) -> Transcript:
    """A session, or what a subagent wrote into a file of its own."""
    nodes = read_nodes(records, account)
    paths = Paths(nodes)
    path = paths.main()
    boundaries = find_boundaries(nodes, path)
    claimed = [node for boundary in boundaries for node in boundary.nodes]
    apart = {node.id for node in claimed}
    paths.claim(apart)
    entries = read_entries((node for node in path.nodes if node.id not in apart), account, "message")
    compactions = tuple(read_compactions(boundaries, entries, account))
    branches = _branches(paths, path, entries, claimed, account)
    for node in nodes:
        if node.is_boundary and node.id not in apart:  # on a branch
            account.keep(node.record.number, kind_of(node.record.value), node.record.value)
    ids = _session_ids(records)
    return Transcript(
        format=FORMAT,
        api="anthropic",
        entries=tuple(entries),
        report=account.report(),
        id=ids[0] if ids else "",
        other_ids=tuple(ids[1:]),
        agent=path.chain,
        cwd=next((found for record in records if (found := word_in(record.value, "cwd"))), ""),
        branches=branches,
        compactions=compactions,
        metadata=account.metadata,
    )


def _branches(
    paths: Paths, main: Path, entries: Sequence[Entry], claimed: Iterable[Node], account: Account
) -> tuple[Branch, ...]:
    others = list(paths.others())[::-1]
    if not others:
        return ()
    read = [tuple(read_entries(path.nodes, account, "branch")) for path in others]
    places = Places([main, *others], [entries, *read], claimed)
    return tuple(
        _branch(path, said, *places.before(number, path))
        for number, (path, said) in enumerate(zip(others, read, strict=True), 1)
    )


def _branch(path: Path, entries: tuple[Entry, ...], leaves: int | None, at: int) -> Branch:
    kind: BranchKind = "subagent" if path.chain else "fork"
    return Branch(kind=kind, entries=entries, parent=path.parent, name=path.chain, leaves=leaves, at=at)


def _session_ids(records: Sequence[Record]) -> list[str]:
    """Return the ids of the sessions that lines belong to: a session that is resumed gets another one.

    The first of them names the conversation, as it is the only one that stays when the file grows.
    """
    names = (word_in(record.value, "sessionId") or word_in(record.value, "session_id") for record in records)
    return list(dict.fromkeys(filter(None, names)))
