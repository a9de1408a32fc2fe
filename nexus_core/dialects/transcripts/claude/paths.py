"""Which lines are on the main path, and which on branches."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.dialects.transcripts.tree import climb

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nexus_core.dialects.transcripts.claude.nodes import Node
    from nexus_core.dialects.transcripts.transcript import Entry


class Path(NamedTuple):
    """Lines that follow each other, in the order of the file.

    Attributes:
        nodes: The lines.
        parent: What the first of them follows, if that is on another path.
        chain: The subagent they belong to.
    """

    nodes: tuple[Node, ...]
    parent: str
    chain: str


class Places:
    """Says where a line stands: on which path, and how many entries of that come before what follows it.

    Args:
        paths: The main path and the others.
        entries: What was read from each.
        claimed: Lines that belong to the main path, though nothing on it may follow them.
    """

    def __init__(self, paths: Sequence[Path], entries: Sequence[Sequence[Entry]], claimed: Iterable[Node] = ()) -> None:
        self._places = {node.id: (0, node.record.number) for node in claimed}
        for number, path in enumerate(paths):
            self._places.update((node.id, (number, node.record.number)) for node in path.nodes)
        self._starts = [[entry.lines[0] for entry in read] for read in entries]

    def before(self, number: int, path: Path) -> tuple[int | None, int]:
        """Where a path leaves another, as `Branch.leaves` and `Branch.at` have it."""
        of, line = self._places.get(path.parent, (0, 0))
        if of == number:  # a circle
            return None, 0
        return of - 1 if of else None, bisect_right(self._starts[of], line)


class Paths:
    """Takes the tree apart into paths, the main one first; each line is on one path only.

    Args:
        nodes: All lines with a place in the tree, in the order of the file.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = {node.id: node for node in nodes}
        self._parents = {node.id: node.parent for node in nodes}
        self._taken: set[str] = set()
        self._replies: dict[tuple[str, str], list[Node]] = defaultdict(list)
        self._answers: dict[str, list[Node]] = defaultdict(list)
        for node in nodes:
            if node.reply:
                self._replies[node.chain, node.reply].append(node)
            for call in node.answers:
                self._answers[call].append(node)

    def main(self) -> Path:
        """What led to the newest line of the conversation; of a subagent's file, all of it is the subagent's."""
        newest = [node for node in self._nodes.values() if node.is_message or node.is_boundary]
        own = [node for node in newest if not node.chain]
        return self._take((own or newest)[-1]) if newest else Path((), "", "")

    def others(self) -> Iterator[Path]:
        """The other paths, that of the newest line first."""
        for node in reversed(list(self._nodes.values())):
            if node.is_message and node.id not in self._taken:
                yield self._take(node)

    def claim(self, names: Iterable[str]) -> None:
        """Take lines that belong to the main path, though nothing on it may follow them."""
        self._taken.update(names)

    def _take(self, leaf: Node) -> Path:
        names = climb(leaf.id, self._parents, self._taken)
        found = dict.fromkeys(names)
        self._join_replies(found)
        self._join_answers(found)
        self._taken.update(found)
        nodes = sorted([self._nodes[name] for name in found], key=attrgetter("record.number"))
        return Path(tuple(nodes), self._parents[names[0]], leaf.chain)

    def _join_replies(self, found: dict[str, None]) -> None:
        """The API's answers are written block by block; those beside the path belong to the same answer."""
        for name in list(found):
            node = self._nodes[name]
            if node.reply:
                self._add(found, self._replies.pop((node.chain, node.reply), ()))

    def _join_answers(self, found: dict[str, None]) -> None:
        """Of calls made together each has its result beside the others, so that all but one hang beside the path."""
        nodes = [self._nodes[name] for name in found]
        answered = {"", *(call for node in nodes for call in node.answers)}
        for node in nodes:
            for call in node.calls:
                if call not in answered:
                    answered.add(call)
                    self._add(found, [each for each in self._answers[call] if each.chain == node.chain][:1])

    def _add(self, found: dict[str, None], nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node.id not in self._taken:
                found[node.id] = None
