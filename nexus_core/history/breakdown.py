"""Where the tokens of a conversation go: by who speaks, by kind, by tool, by message."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from nexus_core.tokens.messages import count_tools
from nexus_core.values.fast_dataclass import dataclass
from nexus_core.values.message import ROLES, Message
from nexus_core.values.parts import File, Image, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.conversation import Tool
    from nexus_core.values.counting import TokenCounter
    from nexus_core.values.message import Role
    from nexus_core.values.parts import Part

Kind = Literal["instructions", "definitions", "text", "reasoning", "calls", "results", "media", "other", "framing"]
"""What tokens are for: words of the system, definitions of tools, other words, thoughts, calls of tools and their
results, pictures and documents, blocks that Nexus has no word for, and what a message costs beyond its content."""

KINDS: tuple[Kind, ...] = get_args(Kind)
DEFINITIONS: Kind = "definitions"
UNKNOWN_TOOL = "(unknown)"
"""Stands for the tool of a result that nobody asked for."""


class Share(NamedTuple):
    """The tokens of one kind, and of how many messages or parts they are."""

    name: str
    tokens: int
    pieces: int


class ToolShare(NamedTuple):
    """What a tool takes.

    Attributes:
        name: The tool.
        definition: Tokens of its definition.
        calls: Tokens of all calls.
        results: Tokens of all results.
        times: How often it was called; how many results there are, if that is more.
    """

    name: str
    definition: int
    calls: int
    results: int
    times: int

    @property
    def tokens(self) -> int:
        """All of it."""
        return self.definition + self.calls + self.results


class MessageShare(NamedTuple):
    """What a message takes, and what all up to it take together with what stands beside the messages."""

    place: int
    role: Role
    tokens: int
    cumulative: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Where the tokens of a conversation go.

    Attributes:
        total: All of them.
        roles: By who speaks, in a fixed order; `definitions` are those of tools.
        kinds: By what they are for, in a fixed order.
        tools: By tool, the largest first.
        messages: By message, in their order.
    """

    total: int
    roles: tuple[Share, ...]
    kinds: tuple[Share, ...]
    tools: tuple[ToolShare, ...]
    messages: tuple[MessageShare, ...]

    def largest(self, limit: int) -> tuple[MessageShare, ...]:
        """The messages that take most; of equal ones the earlier first."""
        return tuple(sorted(self.messages, key=lambda share: (-share.tokens, share.place))[:limit])


def break_down(
    messages: Iterable[Message], counter: TokenCounter, *, system: Iterable[Message] = (), tools: Iterable[Tool] = ()
) -> Breakdown:
    """Say where the tokens of a conversation go. Every sum is the total.

    Args:
        messages: The conversation.
        counter: Who counts.
        system: Instructions that stand beside it.
        tools: Definitions of tools.
    """
    tally = _Tally(counter)
    for tool in tools:
        tally.define(tool)
    for message in system:
        tally.add(message)
    return tally.broken_down([tally.place(place, message) for place, message in enumerate(messages)])


class _Tally:
    """Adds up what is counted."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._total = 0
        self._roles: dict[str, list[int]] = defaultdict(list)
        self._kinds: dict[str, list[int]] = defaultdict(list)
        self._definitions: dict[str, int] = defaultdict(int)
        self._calls: dict[str, list[int]] = defaultdict(list)
        self._results: dict[str, list[int]] = defaultdict(list)
        self._callers: dict[str, str] = {}

    def define(self, tool: Tool) -> None:
        tokens = count_tools(self._counter, [tool])
        self._total += tokens
        self._roles[DEFINITIONS].append(tokens)
        self._kinds[DEFINITIONS].append(tokens)
        self._definitions[tool.name] += tokens

    def place(self, place: int, message: Message) -> MessageShare:
        tokens = self.add(message)
        return MessageShare(place, message.role, tokens, self._total)

    def add(self, message: Message) -> int:
        tokens = self._counter.count_messages([message])
        self._total += tokens
        self._roles[message.role].append(tokens)
        left = tokens
        for part in message.parts:
            left -= self._add_part(part, message)
        self._kinds["framing"].append(left)
        return tokens

    def broken_down(self, messages: list[MessageShare]) -> Breakdown:
        return Breakdown(
            total=self._total,
            roles=_shares(self._roles, ("system", DEFINITIONS, *ROLES[1:])),
            kinds=_shares(self._kinds, KINDS),
            tools=self._tool_shares(),
            messages=tuple(messages),
        )

    def _add_part(self, part: Part, message: Message) -> int:
        tokens = self._alone(part, message)
        kind: Kind = _kind_of(part, message.role)
        if isinstance(part, ToolCall):
            self._callers[part.id] = part.name
            self._calls[part.name].append(tokens)
        if isinstance(part, ToolResult):
            self._results[self._callers.get(part.call_id) or part.name or UNKNOWN_TOOL].append(tokens)
            media = [self._alone(each, message) for each in part.parts if isinstance(each, Image | File)]
            self._kinds["media"] += media
            self._kinds[kind].append(tokens - sum(media))
        else:
            self._kinds[kind].append(tokens)
        return tokens

    def _alone(self, part: Part, message: Message) -> int:
        """What a part takes, without what its message costs beyond it."""
        only = replace(message, parts=(part,), name="")
        return self._counter.count_messages([only]) - self._counter.count_messages([replace(only, parts=())])

    def _tool_shares(self) -> tuple[ToolShare, ...]:
        names = {*self._definitions, *self._calls, *self._results}
        shares = [
            ToolShare(
                name,
                self._definitions.get(name, 0),
                sum(self._calls.get(name, ())),
                sum(self._results.get(name, ())),
                max(len(self._calls.get(name, ())), len(self._results.get(name, ()))),
            )
            for name in names
        ]
        return tuple(sorted(shares, key=lambda share: (-share.tokens, share.name)))


def _kind_of(part: Part, role: Role) -> Kind:
    if isinstance(part, Text):
        return "instructions" if role == "system" else "text"
    kinds: dict[type, Kind] = {
        Reasoning: "reasoning",
        ToolCall: "calls",
        ToolResult: "results",
        Image: "media",
        File: "media",
    }
    return kinds.get(type(part), "other")


def _shares(tokens: dict[str, list[int]], names: Iterable[str]) -> tuple[Share, ...]:
    return tuple(Share(name, sum(tokens[name]), len(tokens[name])) for name in names if tokens.get(name))
