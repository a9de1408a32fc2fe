"""`nexus context --tree`: zones, kinds, layers and pieces of a request, with what each takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.text.console import counted
from nexus_core.text.console import share as percent
from nexus_core.text.visible import visible_line
from nexus_core.values.source import source_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.cli.context.shares import Share, Shares

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
    """A request from the whole to its pieces, in their order."""
    root = _node("request")
    for share in shares.pieces:
        node = root
        node.shares.append(share)
        for name, source in _path(share):
            node = node.children.setdefault(f"{name} {source}", _node(name, source))
            node.shares.append(share)
    return root


def tree_lines(root: Node, total: int) -> Iterator[tuple[str, str, str, str]]:
    """Rows of a table: what it takes, its share, its name indented, where it comes from.

    Args:
        root: The request.
        total: What it takes as a whole; what belongs to no piece is told last.
    """
    yield from _lines(root._replace(shares=[]), 0, total, total)
    left = total - root.tokens
    if left > 0:
        yield f"{left:,}", percent(left, total), f"{_INDENT}framing", ""


def _lines(node: Node, depth: int, tokens: int, total: int) -> Iterator[tuple[str, str, str, str]]:
    is_said = not node.children and any(share.zone == "history" for share in node.shares)
    many = f" ({counted(len(node.shares), 'message')})" if is_said else ""
    yield (
        f"{tokens:,}",
        percent(tokens, total),
        f"{_INDENT * depth}{visible_line(node.name)}{many}",
        source_name(node.source),
    )
    for child in node.children.values():
        yield from _lines(child, depth + 1, child.tokens, total)


def _path(share: Share) -> Iterator[tuple[str, str]]:
    yield share.zone, ""
    yield share.kind, ""
    if share.zone == "history":  # there may be thousands of them
        yield share.name, ""
        return
    if share.layer:
        yield share.layer, ""
    yield share.name, share.uri


def _node(name: str, source: str = "") -> Node:
    return Node(name, source, [], {})
