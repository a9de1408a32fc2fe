"""Tokens of a conversation by role, kind, tool and message."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from nexus_core.tokens.messages import count_tools
from nexus_core.types.base import dataclass
from nexus_core.types.messages import ROLES, File, Image, Message, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.types.budget import TokenCounter
    from nexus_core.types.messages import Part, Role, Tool

TokenKind = Literal["instructions", "definitions", "text", "reasoning", "calls", "results", "media", "other", "framing"]
"""The use of tokens: instructions, tool definitions, other text, reasoning, tool calls, tool results, images and
documents (`media`), blocks without a neutral form (`other`), and the overhead of messages (`framing`)."""

TOKEN_KINDS: tuple[TokenKind, ...] = get_args(TokenKind)
DEFINITION_TOKENS: TokenKind = "definitions"
UNKNOWN_TOOL_LABEL = "(unknown)"
"""Replaces the tool's name of a result without a call."""


class CategoryShare(NamedTuple):
    """The tokens of one category, and the number of its messages or parts."""

    name: str
    tokens: int
    pieces: int


class ToolShare(NamedTuple):
    """The tokens of a tool.

    Attributes:
        name: The name of the tool.
        definition: Tokens of its definition.
        calls: Tokens of all calls.
        results: Tokens of all results.
        times: The number of its calls or of its results, whichever is higher.
    """

    name: str
    definition: int
    calls: int
    results: int
    times: int

    @property
    def tokens(self) -> int:
        """Tokens of definition, calls and results."""
        return self.definition + self.calls + self.results


class MessageShare(NamedTuple):
    """The tokens of a message, and the running total up to it, including tools and instructions.

    Attributes:
        place: The index of the message.
        role: Its role.
        tokens: Its tokens.
        cumulative: Tokens of tools, instructions and all messages up to this one.
    """

    place: int
    role: Role
    tokens: int
    cumulative: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBreakdown:
    """The tokens of a conversation by role, kind, tool and message.

    Attributes:
        total: The tokens of the whole conversation.
        roles: Tokens by role, in a fixed order; `definitions` are those of tools.
        kinds: Tokens by use, in a fixed order.
        tools: Tokens by tool, the largest first.
        messages: Tokens by message, in their order.
    """

    total: int
    roles: tuple[CategoryShare, ...]
    kinds: tuple[CategoryShare, ...]
    tools: tuple[ToolShare, ...]
    messages: tuple[MessageShare, ...]

    def largest(self, limit: int) -> tuple[MessageShare, ...]:
        """Return the messages with the most tokens; of equal ones the earlier first."""
        return tuple(sorted(self.messages, key=lambda share: (-share.tokens, share.place))[:limit])


def break_down_tokens(
    messages: Iterable[Message], counter: TokenCounter, *, system: Iterable[Message] = (), tools: Iterable[Tool] = ()
) -> TokenBreakdown:
    """Return the tokens of a conversation by role, kind, tool and message. Roles and kinds add up to the total.

    Args:
        messages: The messages of the conversation.
        counter: The token counter.
        system: Instructions beside the messages.
        tools: Definitions of tools.
    """
    tally = _TokenTally(counter)
    for tool in tools:
        tally.add_tool(tool)
    for message in system:
        tally.add_message(message)
    return tally.build_breakdown([tally.add_listed(index, message) for index, message in enumerate(messages)])


class _TokenTally:
    """Running sums of tokens in every category."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._total = 0
        self._roles: dict[str, list[int]] = defaultdict(list)
        self._kinds: dict[str, list[int]] = defaultdict(list)
        self._definitions: dict[str, int] = defaultdict(int)
        self._calls: dict[str, list[int]] = defaultdict(list)
        self._results: dict[str, list[int]] = defaultdict(list)
        self._callers: dict[str, str] = {}

    def add_tool(self, tool: Tool) -> None:
        tokens = count_tools(self._counter, [tool])
        self._total += tokens
        self._roles[DEFINITION_TOKENS].append(tokens)
        self._kinds[DEFINITION_TOKENS].append(tokens)
        self._definitions[tool.name] += tokens

    def add_listed(self, index: int, message: Message) -> MessageShare:
        tokens = self.add_message(message)
        return MessageShare(index, message.role, tokens, self._total)

    def add_message(self, message: Message) -> int:
        tokens = self._counter.count_messages([message])
        self._total += tokens
        self._roles[message.role].append(tokens)
        left = tokens
        for part in message.parts:
            left -= self._add_part(part, message)
        self._kinds["framing"].append(left)
        return tokens

    def build_breakdown(self, messages: list[MessageShare]) -> TokenBreakdown:
        return TokenBreakdown(
            total=self._total,
            roles=_build_shares(self._roles, ("system", DEFINITION_TOKENS, *ROLES[1:])),
            kinds=_build_shares(self._kinds, TOKEN_KINDS),
            tools=self._build_tool_shares(),
            messages=tuple(messages),
        )

    def _add_part(self, part: Part, message: Message) -> int:
        tokens = self._count_part(part, message)
        kind: TokenKind = _classify_part(part, message.role)
        if isinstance(part, ToolCall):
            self._callers[part.id] = part.name
            self._calls[part.name].append(tokens)
        if isinstance(part, ToolResult):
            self._results[self._callers.get(part.call_id) or part.name or UNKNOWN_TOOL_LABEL].append(tokens)
            media = [self._count_part(each, message) for each in part.parts if isinstance(each, Image | File)]
            self._kinds["media"] += media
            self._kinds[kind].append(tokens - sum(media))
        else:
            self._kinds[kind].append(tokens)
        return tokens

    def _count_part(self, part: Part, message: Message) -> int:
        """Return the tokens of a part without the overhead of its message."""
        only = replace(message, parts=(part,), name="")
        return self._counter.count_messages([only]) - self._counter.count_messages([replace(only, parts=())])

    def _build_tool_shares(self) -> tuple[ToolShare, ...]:
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


def _classify_part(part: Part, role: Role) -> TokenKind:
    if isinstance(part, Text):
        return "instructions" if role == "system" else "text"
    kinds: dict[type, TokenKind] = {
        Reasoning: "reasoning",
        ToolCall: "calls",
        ToolResult: "results",
        Image: "media",
        File: "media",
    }
    return kinds.get(type(part), "other")


def _build_shares(tokens: dict[str, list[int]], names: Iterable[str]) -> tuple[CategoryShare, ...]:
    return tuple(CategoryShare(name, sum(tokens[name]), len(tokens[name])) for name in names if tokens.get(name))
