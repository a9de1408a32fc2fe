"""Tokens of a request by zone, kind, layer, file and tool, and as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.cli.request_report import list_left_out
from nexus_core.text.console import format_count
from nexus_core.text.console import format_percent as percent
from nexus_core.text.safety import visible_line
from nexus_core.types.prompt import format_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nexus_core.cli.request_report import LeftOutPiece
    from nexus_core.layers.context import LoadedContext
    from nexus_core.request.memories import InjectedMemory
    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.budget import TokenBudget
    from nexus_core.types.prompt import Placement, Section

FRAMING = "framing"
"""Label for text outside sections: the title, the separators, what an API puts around it."""
MEMORY = "memory"
"""The kind of memories, wherever they are in a request."""
MARGIN = "margin"
"""Label for the margin added to the current message if tokens are estimated."""


class TokenShare(NamedTuple):
    """A piece of a request and what it takes.

    Attributes:
        zone: Where it lands.
        kind: What it is about; "tool" for a tool.
        id: The section's, the tool's name, or the step.
        name: What a person calls it: the section's heading, the tool, who speaks.
        uri: Where it comes from.
        layer: The layer that it was found in, "" for none.
        plugin: The plugin that contributed it, "" for none.
        tokens: What it takes.
    """

    zone: str
    kind: str
    id: str
    name: str
    uri: str
    layer: str
    plugin: str
    tokens: int

    @property
    def is_file(self) -> bool:
        """True if it was read from a file."""
        return bool(self.layer)

    @property
    def origin(self) -> str:
        """The layer, else the plugin or whatever else it was computed by."""
        return self.layer or self.uri

    @property
    def is_message(self) -> bool:
        """True if it is a message, not a section or a tool."""
        is_past = self.zone == "history" and self.kind != MEMORY
        return is_past or (self.uri.startswith(("step:", "caller:")) and self.kind == "event")

    @property
    def is_past_memory(self) -> bool:
        """True if it is a memory in an earlier message."""
        return self.zone == "history" and self.kind == MEMORY

    @property
    def is_section(self) -> bool:
        """True if it is a section of the system prompt."""
        return self.zone == "static" and self.kind != "tool"


class RequestShares(NamedTuple):
    """A request divided into pieces.

    Attributes:
        pieces: The pieces, in the order of the request.
        used: Tokens by what they are for.
        left_out: What is not in it.
        budget: What they are held against; None where only a prompt is looked at.
    """

    pieces: tuple[TokenShare, ...]
    used: dict[str, int]
    left_out: tuple[LeftOutPiece, ...] = ()
    budget: TokenBudget | None = None

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.used.values())

    @property
    def sections(self) -> list[TokenShare]:
        """The sections of the system prompt."""
        return [each for each in self.pieces if each.is_section]

    @property
    def tools(self) -> list[TokenShare]:
        """The tools."""
        return [each for each in self.pieces if each.kind == "tool"]

    @property
    def margin(self) -> int:
        """The safety margin of the current message."""
        return 0 if self.budget is None else self.budget.margin

    @property
    def framing(self) -> int:
        """Tokens of the system prompt that belong to no section. Negative if its sections have more."""
        return self.used.get("system", 0) - sum(each.tokens for each in self.sections)

    @property
    def past_memories(self) -> int:
        """Tokens of the memories in earlier messages."""
        return sum(each.tokens for each in self.pieces if each.is_past_memory)

    def zones(self) -> dict[str, int]:
        """Tokens by zone, and the safety margin. Their sum is the total."""
        used = self.used
        return {
            "static": used.get("system", 0) + used.get("tools", 0),
            "history": used.get("history", 0),
            "current": used.get("memory", 0) + used.get("event", 0) - self.margin,
            MARGIN: self.margin,
        }

    def kinds(self) -> dict[str, int]:
        """Tokens by kind: workspace, persona, tools, session, memory, event. Their sum is the total."""
        used = self.used
        kinds = {
            "workspace": 0,
            "persona": 0,
            FRAMING: self.framing,
            "tools": used.get("tools", 0),
            "session": used.get("history", 0) - self.past_memories,
            MEMORY: used.get("memory", 0) + self.past_memories,
            "event": used.get("event", 0) - self.margin,
            MARGIN: self.margin,
        }
        for kind, tokens in _sum_tokens(self.sections, lambda share: share.kind).items():
            kinds[kind] = kinds.get(kind, 0) + tokens
        return kinds

    def layers(self) -> dict[str, int]:
        """Tokens by layer, else by plugin, with `memory`, and messages as `session` and `event`.

        Their sum is the total.
        """
        fixed = [each for each in self.pieces if each.zone == "static"]
        current = [each for each in self.pieces if each.zone == "current" and not each.is_message]
        past = [each for each in self.pieces if each.is_past_memory]
        # A memory comes from a step or a note, which are not layers.
        layers = _sum_tokens([*fixed, *current, *past], lambda share: MEMORY if share.kind == MEMORY else share.origin)
        zones = self.zones()
        rest = {
            FRAMING: zones["static"] - sum(each.tokens for each in fixed),
            "session": zones["history"] - self.past_memories,
            "event": zones["current"] - sum(each.tokens for each in current),
            MARGIN: self.margin,
        }
        return layers | {name: tokens for name, tokens in rest.items() if tokens}

    def files(self) -> dict[str, int]:
        """Tokens by file."""
        return _sum_tokens((each for each in self.pieces if each.is_file), lambda share: share.uri)


class SentMemory(NamedTuple):
    """A memory in a request.

    Attributes:
        memory: The memory.
        tokens: Its tokens in the request; None if a renderer rewrote the message that has it.
        message: The step of the earlier message that has it; "" if it is not in an earlier message.
    """

    memory: InjectedMemory
    tokens: int | None
    message: str = ""


def find_sent_memories(
    context: AssembledContext, injected: Iterable[InjectedMemory], read_text: Callable[[InjectedMemory], str]
) -> Iterator[SentMemory]:
    """Yield the memories that a request of a session has.

    Args:
        context: The request.
        injected: The memories that the session has sent.
        read_text: Returns the text of a memory in its message, or "" if it is unknown.
    """
    placed = [each for each in context.placements if each.decision.action != "dropped"]
    now = {each.name: each.tokens for each in placed if each.kind == MEMORY}
    free = {each.name: each.tokens for each in placed if each.zone == "history" and each.kind == "session"}
    texts = "\n".join(message.content for message in context.history if message.role == "user")
    for each in injected:
        if not each.is_sent:
            continue
        if each.turn in ("", context.turn_id):
            if each.section_id in now:
                yield SentMemory(each, now[each.section_id])
        elif each.step in free:
            if each.tokens is None or read_text(each) not in texts:
                yield SentMemory(each, None)
                continue
            tokens = min(each.tokens, free[each.step])
            free[each.step] -= tokens
            yield SentMemory(each, tokens, each.step)


def split_request(context: AssembledContext, memories: Iterable[SentMemory] = ()) -> RequestShares:
    """Return the pieces of a request with their tokens.

    Args:
        context: The request.
        memories: The memories in it; those of earlier messages are pieces of their own.
    """
    recalled: dict[str, list[TokenShare]] = {}
    for each in memories:
        if each.message and each.tokens:
            recalled.setdefault(each.message, []).append(_share_from_memory(each.memory, each.tokens))
    pieces = [
        share
        for placement in context.placements
        if placement.decision.action != "dropped"
        for share in _split_placement(placement, recalled)
    ]
    budget = context.token_budget
    return RequestShares(tuple(pieces), dict(budget.used), tuple(list_left_out(context)), budget)


def _split_placement(placement: Placement, recalled: Mapping[str, Sequence[TokenShare]]) -> Iterator[TokenShare]:
    """Yield a piece of a request, after the memories in it if it is an earlier message."""
    memories = recalled.get(placement.name, ()) if placement.zone == "history" else ()
    yield from memories
    share = _share_from_placement(placement)
    yield share._replace(tokens=share.tokens - sum(each.tokens for each in memories))


def _share_from_memory(memory: InjectedMemory, tokens: int) -> TokenShare:
    source = memory.source
    return TokenShare(
        "history", MEMORY, memory.section_id, memory.title, source.uri, source.layer, source.plugin, tokens
    )


def split_prompt(context: LoadedContext, count: Callable[[Section], int], total: int) -> RequestShares:
    """Return the prompt of another agent in pieces.

    Args:
        context: What that agent reads.
        count: Says what a section takes.
        total: What all of it takes.
    """
    return RequestShares(
        tuple(_share_from_section(section, count(section)) for section in context.sections), {"system": total}
    )


def _share_from_placement(placement: Placement) -> TokenShare:
    source = placement.source
    name = placement.name if placement.kind == "tool" else placement.title
    return TokenShare(
        placement.zone, placement.kind, placement.name, name, source.uri, source.layer, source.plugin, placement.tokens
    )


def _share_from_section(section: Section, tokens: int) -> TokenShare:
    uri, layer, plugin = "", "", ""
    if section.source is not None:
        uri, layer, plugin = section.source.uri, section.source.layer, section.source.plugin
    return TokenShare("static", section.kind, section.id, section.title, uri, layer, plugin, tokens)


def _sum_tokens(shares: Iterable[TokenShare], key: Callable[[TokenShare], str]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for share in shares:
        sums[key(share)] = sums.get(key(share), 0) + share.tokens
    return sums


_TREE_INDENT = "  "


class ShareNode(NamedTuple):
    """A part of a request, and what it consists of."""

    name: str
    source: str
    shares: list[TokenShare]
    children: dict[str, ShareNode]

    @property
    def tokens(self) -> int:
        """The number of its tokens."""
        return sum(share.tokens for share in self.shares)

    def to_json(self) -> dict[str, Any]:
        """Return the node and its children as JSON."""
        facts = {"name": self.name, "source": self.source, "tokens": self.tokens, "pieces": len(self.shares)}
        return {**facts, "children": [child.to_json() for child in self.children.values()]}


def build_share_tree(shares: RequestShares) -> ShareNode:
    """Return the tree of a request and its pieces, in order. The root has the total tokens."""
    root = _make_node("request")
    for share in (*shares.pieces, *_list_remaining_shares(shares)):
        node = root
        node.shares.append(share)
        for name, source in _get_tree_path(share):
            node = node.children.setdefault(f"{name} {source}", _make_node(name, source))
            node.shares.append(share)
    return root


def _list_remaining_shares(shares: RequestShares) -> Iterator[TokenShare]:
    """Yield the shares that belong to no piece: the framing of each zone, and the margin."""
    for zone, tokens in shares.zones().items():
        left = tokens - sum(each.tokens for each in shares.pieces if each.zone == zone)
        if left:
            yield TokenShare(zone, FRAMING, "", FRAMING, "", "", "", left)


def format_share_tree(root: ShareNode) -> Iterator[tuple[str, str, str, str]]:
    """Yield rows of a table: tokens, their share of the request, the name indented, the source."""
    yield from _format_node(root, 0, root.tokens)


def _format_node(node: ShareNode, depth: int, total: int) -> Iterator[tuple[str, str, str, str]]:
    is_said = not node.children and any(
        share.zone == "history" and share.kind not in (FRAMING, MEMORY) for share in node.shares
    )
    many = f" ({format_count(len(node.shares), 'message')})" if is_said else ""
    yield (
        f"{node.tokens:,}",
        percent(node.tokens, total),
        f"{_TREE_INDENT * depth}{visible_line(node.name)}{many}",
        format_source(node.source),
    )
    for child in node.children.values():
        yield from _format_node(child, depth + 1, total)


def _get_tree_path(share: TokenShare) -> Iterator[tuple[str, str]]:
    yield share.zone, ""
    if share.zone == MARGIN:
        return
    yield share.kind, ""
    if share.kind == FRAMING:
        return
    if share.zone == "history" and share.kind != MEMORY:  # there may be thousands of them
        yield share.name, ""
        return
    if share.layer:
        yield share.layer, ""
    yield share.name, share.uri


def _make_node(name: str, source: str = "") -> ShareNode:
    return ShareNode(name, source, [], {})
