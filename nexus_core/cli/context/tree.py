"""`nexus context --tree`: zones, kinds, layers and pieces of a request, with what each takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.cli.context.shares import FRAMING, MARGIN, Share
from nexus_core.text.console import counted
from nexus_core.text.console import share as percent
from nexus_core.text.visible import visible_line
from nexus_core.values.source import source_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.cli.context.shares import Shares

_INDENT = "  "


class Node(NamedTuple):
    """A part of a request, and what it consists of."""

    name: str
    source: str
    shares: list[Share]
    children: dict[str, Node]

    @property
    def tokens(self) -> int:
        """What it takes."""
        return sum(share.tokens for share in self.shares)

    def facts(self) -> dict[str, Any]:
        """It, for programs."""
        facts = {"name": self.name, "source": self.source, "tokens": self.tokens, "pieces": len(self.shares)}
        return {**facts, "children": [child.facts() for child in self.children.values()]}


def tree_of(shares: Shares) -> Node:
    """Return a request from the whole to its pieces, in their order; its tokens are the total of the request."""
    root = _node("request")
    for share in (*shares.pieces, *_rest(shares)):
        node = root
        node.shares.append(share)
        for name, source in _path(share):
            node = node.children.setdefault(f"{name} {source}", _node(name, source))
            node.shares.append(share)
    return root


def _rest(shares: Shares) -> Iterator[Share]:
    """What belongs to no piece: the framing of each zone, and the margin."""
    for zone, tokens in shares.zones().items():
        left = tokens - sum(each.tokens for each in shares.pieces if each.zone == zone)
        if left:
            yield Share(zone, FRAMING, "", FRAMING, "", "", "", left)


def tree_lines(root: Node) -> Iterator[tuple[str, str, str, str]]:
    """Rows of a table: tokens, their share of the request, the name indented, the source."""
    yield from _lines(root, 0, root.tokens)


def _lines(node: Node, depth: int, total: int) -> Iterator[tuple[str, str, str, str]]:
    is_said = not node.children and any(share.zone == "history" and share.kind != FRAMING for share in node.shares)
    many = f" ({counted(len(node.shares), 'message')})" if is_said else ""
    yield (
        f"{node.tokens:,}",
        percent(node.tokens, total),
        f"{_INDENT * depth}{visible_line(node.name)}{many}",
        source_name(node.source),
    )
    for child in node.children.values():
        yield from _lines(child, depth + 1, total)


def _path(share: Share) -> Iterator[tuple[str, str]]:
    yield share.zone, ""
    if share.zone == MARGIN:
        return
    yield share.kind, ""
    if share.kind == FRAMING:
        return
    if share.zone == "history":  # there may be thousands of them
        yield share.name, ""
        return
    if share.layer:
        yield share.layer, ""
    yield share.name, share.uri


def _node(name: str, source: str = "") -> Node:
    return Node(name, source, [], {})
