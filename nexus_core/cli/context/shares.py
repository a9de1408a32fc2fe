"""Where the tokens of a request go: by zone, kind, layer, file and tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.cli.request.left_out import left_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nexus_core.cli.request.left_out import LeftOut
    from nexus_core.layers.context import LoadedContext
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.budget import TokenBudget
    from nexus_core.values.placement import Placement
    from nexus_core.values.section import Section

FRAMING = "framing"
"""What belongs to no section: the title, the separators, what an API puts around it."""
MARGIN = "margin"
"""What is added to the current message where tokens are estimated."""


class Share(NamedTuple):
    """A piece of a request and what it takes.

    Attributes:
        zone: Where it lands.
        kind: What it is about; "tool" for a tool.
        id: The section's, the tool's name, or the step.
        name: What a person calls it: the section's heading, the tool, who speaks.
        uri: Where it comes from.
        layer: The layer that it was found in, "" for none.
        plugin: The plugin that brought it, "" for none.
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
        """Whether it was read from a file."""
        return bool(self.layer)

    @property
    def origin(self) -> str:
        """The layer, else the plugin or whatever else it was computed by."""
        return self.layer or self.uri

    @property
    def is_message(self) -> bool:
        """True if it is a message, not a section or a tool."""
        return self.zone == "history" or (self.uri.startswith(("step:", "caller:")) and self.kind == "event")

    @property
    def is_section(self) -> bool:
        """Whether it is a section of the system prompt."""
        return self.zone == "static" and self.kind != "tool"


class Shares(NamedTuple):
    """A request in pieces.

    Attributes:
        pieces: The pieces, in the order of the request.
        used: Tokens by what they are for.
        left_out: What is not in it.
        budget: What they are held against; None where only a prompt is looked at.
    """

    pieces: tuple[Share, ...]
    used: dict[str, int]
    left_out: tuple[LeftOut, ...] = ()
    budget: TokenBudget | None = None

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.used.values())

    @property
    def sections(self) -> list[Share]:
        """The sections of the system prompt."""
        return [each for each in self.pieces if each.is_section]

    @property
    def tools(self) -> list[Share]:
        """The tools."""
        return [each for each in self.pieces if each.kind == "tool"]

    @property
    def margin(self) -> int:
        """The safety margin of the current message."""
        return 0 if self.budget is None else self.budget.margin

    @property
    def framing(self) -> int:
        """Tokens of the system prompt that belong to no section; negative if it has fewer than its sections alone."""
        return self.used.get("system", 0) - sum(each.tokens for each in self.sections)

    def zones(self) -> dict[str, int]:
        """Tokens by zone, and the safety margin; together the total."""
        used = self.used
        return {
            "static": used.get("system", 0) + used.get("tools", 0),
            "history": used.get("history", 0),
            "current": used.get("memory", 0) + used.get("event", 0) - self.margin,
            MARGIN: self.margin,
        }

    def kinds(self) -> dict[str, int]:
        """Tokens by kind: workspace, persona, tools, session, memory, event; together the total."""
        used = self.used
        kinds = {
            "workspace": 0,
            "persona": 0,
            FRAMING: self.framing,
            "tools": used.get("tools", 0),
            "session": used.get("history", 0),
            "memory": used.get("memory", 0),
            "event": used.get("event", 0) - self.margin,
            MARGIN: self.margin,
        }
        for kind, tokens in _sums(self.sections, lambda share: share.kind).items():
            kinds[kind] = kinds.get(kind, 0) + tokens
        return kinds

    def layers(self) -> dict[str, int]:
        """Tokens by layer, else by what computed them; messages as `session` and `event`; together the total."""
        fixed = [each for each in self.pieces if each.zone == "static"]
        told = [each for each in self.pieces if each.zone == "current" and not each.is_message]
        layers = _sums([*fixed, *told], lambda share: share.origin)
        zones = self.zones()
        rest = {
            FRAMING: zones["static"] - sum(each.tokens for each in fixed),
            "session": zones["history"],
            "event": zones["current"] - sum(each.tokens for each in told),
            MARGIN: self.margin,
        }
        return layers | {name: tokens for name, tokens in rest.items() if tokens}

    def files(self) -> dict[str, int]:
        """Tokens by file."""
        return _sums((each for each in self.pieces if each.is_file), lambda share: share.uri)


def shares_of(context: AssembledContext) -> Shares:
    """A request in pieces."""
    pieces = [_share(placed) for placed in context.placements if placed.decision.action != "dropped"]
    budget = context.token_budget
    return Shares(tuple(pieces), dict(budget.used), tuple(left_out(context)), budget)


def shares_of_prompt(context: LoadedContext, count: Callable[[Section], int], total: int) -> Shares:
    """The prompt of another agent in pieces.

    Args:
        context: What that agent reads.
        count: Says what a section takes.
        total: What all of it takes.
    """
    return Shares(tuple(_piece(section, count(section)) for section in context.sections), {"system": total})


def _share(placed: Placement) -> Share:
    source = placed.source
    name = placed.name if placed.kind == "tool" else placed.title
    return Share(placed.zone, placed.kind, placed.name, name, source.uri, source.layer, source.plugin, placed.tokens)


def _piece(section: Section, tokens: int) -> Share:
    uri, layer, plugin = "", "", ""
    if section.source is not None:
        uri, layer, plugin = section.source.uri, section.source.layer, section.source.plugin
    return Share("static", section.kind, section.id, section.title, uri, layer, plugin, tokens)


def _sums(shares: Iterable[Share], key: Callable[[Share], str]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for share in shares:
        sums[key(share)] = sums.get(key(share), 0) + share.tokens
    return sums
